package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// oneStep is the workflow order with one step, under a policy for failures.
func oneStep(onFailure, step string) fstest.MapFS {
	return fstest.MapFS{"order.yaml": {Data: []byte("name: order\nonFailure: " + onFailure + "\nsteps:\n  - " + step + "\n")}}
}

func submitAndWait(t *testing.T, eng *engine.Engine, id, input string) makegood.Job {
	t.Helper()
	if _, err := eng.Submit(t.Context(), makegood.Submission{ID: id, Workflow: "order", Input: json.RawMessage(input)}); err != nil {
		t.Fatal(err)
	}
	return waitFor(t, eng, id)
}

func ask(t *testing.T, eng *engine.Engine, id string, verb makegood.Verb) {
	t.Helper()
	if _, err := eng.Request(t.Context(), id, api.Request{Verb: verb}); err != nil {
		t.Fatal(err)
	}
}

// Items are any JSON. The agent gets the item as its input, its output stands in the item's place, and a value that is
// no list fails the step with a reason.
func TestItemsAreAnyJSON(t *testing.T) {
	eng := openWith(t, &shop{}, oneStep("stop", `{name: a, map: {over: "${ .input }"}, agent: echo, retry: {attempts: 1}, undo: none}`), agent.New("echo",
		agent.Do("a", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })))
	for i, list := range []string{`[null,false,[[1]],{"a":null},"ü\u0000😀",9007199254740993,1e400,0.1000000000000000055]`, `[[],[]]`, `[]`} {
		if j := submitAndWait(t, eng, fmt.Sprintf("good-%d", i), list); string(j.Steps[0].Output) != list {
			t.Errorf("%s: %s (%s) %s", list, j.ProcessState, j.Reason, j.Steps[0].Output)
		}
	}
	for input, want := range map[string]string{
		`null`: "gives null, want a list", `{}`: "gives {}, want a list", `"[1]"`: `gives "[1]", want a list`,
		"[" + strings.Repeat("1,", makegood.MaxItems) + "1]": "more than 100000 items",
	} {
		if j := submitAndWait(t, eng, fmt.Sprintf("bad-%d", len(want)), input); j.ProcessState != makegood.JobError || !strings.Contains(j.Reason, want) {
			t.Errorf("got %s: %s, want that it %s", j.ProcessState, j.Reason, want)
		}
	}
}

// A large output can be read by its own job alone. The list has no place for it, and the items are done.
func TestItemsWithLargeOutputsAreDone(t *testing.T) {
	large := agent.New("large", agent.Do("large", func(context.Context, int) (string, error) { return strings.Repeat("x", 300<<10), nil }),
		agent.Do("ref", func(ctx context.Context, _ int) (makegood.Payload, error) {
			return agent.WritePayload(ctx, "text/plain", strings.NewReader("abc"))
		}))
	for action, n := range map[string]int{"large": 2, "ref": 102} {
		eng := openWith(t, &shop{}, oneStep("stop", `{name: a, map: {over: "${ [range(.input)] }"}, agent: large, action: `+action+`, undo: none}`), large)
		j := submitAndWait(t, eng, "o", fmt.Sprint(n))
		if want := fmt.Sprintf(`{"items":%d,"failed":0,"parts":[`, n); j.ProcessState != makegood.JobProcessed || !strings.HasPrefix(string(j.Steps[0].Output), want) {
			t.Errorf("%s: %s (%s) %s, want the manifest", action, j.ProcessState, j.Reason, j.Steps[0].Output)
		}
	}
}

// A person closes the job of a map and settles its step: its one failure was of the attempt, and of no item.
func TestASettledMapIsNotRedriven(t *testing.T) {
	s := &stock{fails: func(item int) bool { return item == 1 }}
	eng := openWith(t, &shop{}, oneStep("stop", `{name: a, map: {over: "${ [range(3)] }"}, agent: stock, action: reserve, with: {item: "${ .item }"}, undo: {action: release}}`), s.agent())
	if _, err := eng.Submit(t.Context(), makegood.Submission{ID: "o", Workflow: "order"}); err != nil {
		t.Fatal(err)
	}
	for begun := false; !begun; time.Sleep(time.Millisecond) {
		for _, err := range eng.List(t.Context(), api.Filter{IDPrefix: "o~"}) {
			if begun = true; err != nil {
				t.Fatal(err)
			}
		}
	}
	child := waitFor(t, eng, childOf(t, eng, "o").ID)
	ask(t, eng, child.ID, makegood.VerbCancel)
	if j := waitFor(t, eng, "o"); j.ProcessState != makegood.JobError {
		t.Fatalf("%s: %s, want Error", j.ProcessState, j.Reason)
	}
	if _, err := eng.Settle(t.Context(), "o", api.StepRef{Step: "a"}, api.SettleOptions{Output: json.RawMessage(`[7]`)}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, eng, "o")
	if _, err := eng.Request(t.Context(), "o", api.Request{Verb: makegood.VerbRedrive}); err == nil || !strings.Contains(err.Error(), "none of its maps that have ended has a failed item") {
		t.Errorf("redriven: %v, want that no item has failed", err)
	}
}

// A job that is cancelled while a part does a failed item again waits for the item, and undoes all of them once.
func TestACancelWithinARedriveUndoesEachItemOnce(t *testing.T) {
	const n = 103
	begun, may, again := make(chan bool), make(chan bool), atomic.Bool{}
	s := &stock{fails: func(item int) bool { return item == 1 && !again.Load() }}
	hold := agent.New("hold", agent.Do("reserve", func(ctx context.Context, l line) (any, error) {
		if again.Load() {
			begun <- true
			<-may
		}
		if s.fails(l.Item) {
			return nil, agent.NotApplied(agent.Final(errors.New("out of stock")))
		}
		return l.Item, nil
	}).Undo("release", func(_ context.Context, l line, _ *any) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.keys == nil {
			s.keys = map[string]int{}
		}
		s.keys[fmt.Sprint(l.Item)]++
		return nil
	}))
	eng := openWith(t, &shop{}, oneStep("undo", `{name: a, map: {over: "${ [range(.input)] }", tolerate: {items: 1}}, agent: hold, action: reserve, with: {item: "${ .item }"}, undo: {action: release}}`), hold)
	if j := submitAndWait(t, eng, "o", fmt.Sprint(n)); j.ProcessState != makegood.JobProcessed {
		t.Fatalf("%s: %s", j.ProcessState, j.Reason)
	}
	again.Store(true)
	ask(t, eng, "o", makegood.VerbRedrive)
	<-begun
	ask(t, eng, "o", makegood.VerbCancel)
	close(may)
	j := waitFor(t, eng, "o")
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.ProcessState != makegood.JobCancelled || len(s.keys) != n {
		t.Errorf("%s (%s): %d items undone, want %d", j.ProcessState, j.Reason, len(s.keys), n)
	}
	for item, times := range s.keys {
		if times != 1 {
			t.Errorf("item %s was undone %d times", item, times)
		}
	}
}

// Parts are born long after their job, on an engine whose file says something else by then. They go by the definition
// that the job has.
func TestPartsGoByTheDefinitionOfTheirJob(t *testing.T) {
	dir := t.TempDir()
	begun, may := make(chan bool, 1), make(chan bool)
	var olds, news atomic.Int32
	open := func(name string) *running {
		return run(t, engine.Options{Dir: dir, Workflows: oneStep("stop", `{name: a, map: {over: "${ [range(203)] }", concurrency: 1}, agent: `+name+`, action: do, undo: none}`), Agents: []agent.Handler{
			agent.New("former", agent.Do("do", func(ctx context.Context, _ json.RawMessage) (any, error) {
				select {
				case begun <- true: // the first one
					select {
					case <-may:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				default:
				}
				olds.Add(1)
				return nil, nil
			})),
			agent.New("later", agent.Do("do", func(context.Context, json.RawMessage) (any, error) { news.Add(1); return nil, nil })),
		}})
	}
	eng := open("former")
	if _, err := eng.Submit(t.Context(), makegood.Submission{ID: "o", Workflow: "order"}); err != nil {
		t.Fatal(err)
	}
	<-begun
	eng.close(t)
	begun <- true // None waits any more.
	eng = open("later")
	defer eng.close(t)
	if j := waitFor(t, eng.Engine, "o"); j.ProcessState != makegood.JobProcessed || news.Load() != 0 || olds.Load() < 203 {
		t.Errorf("%s (%s): %d items by the former definition, %d by the later", j.ProcessState, j.Reason, olds.Load(), news.Load())
	}
}
