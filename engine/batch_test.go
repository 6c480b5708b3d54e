package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// shelf does batches of items by one call, and notes the items of each.
type shelf struct {
	mu    sync.Mutex
	calls []string
	fails func(item int) error
	// undone has the output that the undo of each key was told.
	undone map[string]string
}

func (s *shelf) agent() agent.Handler {
	return agent.New("shelf", agent.DoBatch("reserve", func(_ context.Context, items []*agent.Item[line, string]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		var call []string
		for _, i := range items {
			call = append(call, i.Key)
			if err := s.fails(i.In.Item); err != nil {
				i.Fail(err)
				continue
			}
			i.Done(fmt.Sprint("shelf ", i.In.Item))
		}
		s.calls = append(s.calls, strings.Join(call, " "))
		return nil
	}), agent.Undo("release", func(ctx context.Context, _ line, done *string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		told := "unknown"
		if done != nil {
			told = *done
		}
		s.undone[agent.TaskOf(ctx).Undo.ForwardKey] = told
		return nil
	}))
}

func openBatch(t *testing.T, s *shelf, fields, then string) *engine.Engine {
	t.Helper()
	files := oneStep("undo", `{name: reserve, map: {over: "${ [range(.input.n)] }", batch: 10`+fields+`}, agent: shelf, retry: {attempts: 2, backoff: 1ms},
    with: {item: "${ .item }"}, undo: {action: release}}`+then)
	s.undone = map[string]string{}
	fails := func(context.Context, any) (any, error) { return nil, agent.Final(errors.New("no card")) }
	return openWith(t, &shop{}, files, s.agent(), agent.New("bank", agent.Do("charge", fails)))
}

// Of a batch of ten items two fail. The next attempt is for the one item whose failure is not final, and a redrive does
// the other under its key.
func TestOnlyFailedItemsOfABatchAreTriedAgain(t *testing.T) {
	tries := map[int]int{}
	bad := true
	s := &shelf{fails: func(item int) error {
		tries[item]++
		switch {
		case item == 13 && tries[item] == 1:
			return errors.New("busy")
		case item == 17 && bad:
			return agent.Kind("sold_out", agent.NotApplied(agent.Final(errors.New("sold out"))))
		default:
			return nil
		}
	}}
	eng := openBatch(t, s, ", concurrency: 10, tolerate: {items: 1}", "")
	j := submitAndWait(t, eng, "o-1", `{"n":25}`)
	if j.ProcessState != makegood.JobProcessed {
		t.Fatalf("%s: %s", j.ProcessState, j.Reason)
	}
	keys := func(items ...int) string {
		var all []string
		for _, i := range items {
			all = append(all, fmt.Sprintf("%s/item_%d/1/%d", j.Steps[0].Child, i/10*10, i%10))
		}
		return strings.Join(all, " ")
	}
	want := []string{
		keys(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), keys(10, 11, 12, 13, 14, 15, 16, 17, 18, 19), keys(13), keys(20, 21, 22, 23, 24),
	}
	got := slices.Clone(s.calls)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("calls:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	items := j.Steps[0].Items
	if items == nil || items.Done != 24 || items.Failed != 1 || len(items.Failures) != 1 {
		t.Fatalf("items: %+v", items)
	}
	if f := items.Failures[0]; f.Index != 17 || f.Kind != "sold_out" || !strings.Contains(f.Reason, "item 7: sold out") {
		t.Errorf("the failure is shown as %+v", f)
	}
	var out []*string
	if err := json.Unmarshal(j.Steps[0].Output, &out); err != nil || len(out) != 25 || out[17] != nil || *out[13] != "shelf 13" {
		t.Errorf("output %s: %v", j.Steps[0].Output, err)
	}
	s.mu.Lock()
	bad, s.calls = false, nil
	s.mu.Unlock()
	ask(t, eng, "o-1", makegood.VerbRedrive)
	if j, err := eng.Wait(t.Context(), "o-1"); err != nil || j.ProcessState != makegood.JobProcessed || j.Steps[0].Items.Done != 25 {
		t.Errorf("%s (%s), %+v: %v", j.ProcessState, j.Reason, j.Steps[0].Items, err)
	}
	if want := keys(17); len(s.calls) != 1 || s.calls[0] != want {
		t.Errorf("calls of the redrive: %q, want %s", s.calls, want)
	}
}

// Each item is undone under its own key, with its output where it is known to be done.
func TestTheItemsOfABatchAreUndone(t *testing.T) {
	s := &shelf{fails: func(item int) error {
		if item == 3 {
			return agent.Final(errors.New("lost"))
		}
		return nil
	}}
	eng := openBatch(t, s, ", tolerate: {items: 1}", "\n  - {name: charge, agent: bank, undo: none}")
	j := submitAndWait(t, eng, "o-1", `{"n":12}`)
	if j.ProcessState != makegood.JobUndone || len(s.undone) != 12 {
		t.Fatalf("%s (%s), %d undone", j.ProcessState, j.Reason, len(s.undone))
	}
	for i := range 12 {
		key, want := fmt.Sprintf("%s/item_%d/1/%d", j.Steps[0].Child, i/10*10, i%10), fmt.Sprint("shelf ", i)
		if i == 3 {
			want = "unknown"
		}
		if s.undone[key] != want {
			t.Errorf("undo of %s was told %q, want %q", key, s.undone[key], want)
		}
	}
	if items := j.Steps[0].Items; items.Undone != 12 {
		t.Errorf("items: %+v", items)
	}
}

// An agent that does not answer as for a batch fails the step, and says how it should.
func TestABatchWantsAnswers(t *testing.T) {
	odd := handler{"shelf", func(context.Context, makegood.Task) (json.RawMessage, error) {
		return json.RawMessage(`{"ok":true}`), nil
	}}
	files := oneStep("stop", `{name: reserve, map: {over: "${ [1,2] }", batch: 2, tolerate: {items: 2}}, agent: shelf, undo: none}`)
	j := submitAndWait(t, openWith(t, &shop{}, files, odd), "o-1", `{}`)
	if f := j.Steps[0].Items.Failures; len(f) != 1 || f[0].Items != 2 || !strings.Contains(f[0].Reason, "the output of a batch is a list of answers") {
		t.Errorf("%s: %+v", j.ProcessState, f)
	}
}

type handler struct {
	name string
	do   func(context.Context, makegood.Task) (json.RawMessage, error)
}

func (h handler) Name() string { return h.name }

func (h handler) Handle(ctx context.Context, t makegood.Task) (json.RawMessage, error) {
	return h.do(ctx, t)
}
