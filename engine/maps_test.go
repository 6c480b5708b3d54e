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
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// stock is an agent that does items: it counts the calls of each key, and how many are under way at once.
type stock struct {
	mu        sync.Mutex
	keys      map[string]int
	now, most int
	undone    int
	fails     func(item int) bool
	takes     time.Duration
}

type line struct {
	Item  int    `json:"item"`
	Index int    `json:"index"`
	Order string `json:"order"`
}

func (s *stock) agent() agent.Handler {
	return agent.New("stock", agent.Do("reserve", func(ctx context.Context, l line) (string, error) {
		s.mu.Lock()
		s.now++
		s.most = max(s.most, s.now)
		if s.keys == nil {
			s.keys = map[string]int{}
		}
		s.keys[agent.TaskOf(ctx).Key]++
		fails := s.fails != nil && s.fails(l.Item)
		s.mu.Unlock()
		time.Sleep(s.takes)
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
		if fails {
			return "", agent.NotApplied(agent.Final(errors.New("out of stock")))
		}
		return fmt.Sprintf("%s-%d-%d", l.Order, l.Item, l.Index), nil
	}).Undo("release", func(context.Context, line, *string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.undone++
		return nil
	}))
}

func openMap(t *testing.T, s *stock, fields string) *engine.Engine {
	t.Helper()
	undo := func(context.Context, json.RawMessage, *json.RawMessage) error { return nil }
	same := func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }
	count := agent.New("count", agent.Do("count", same), agent.Do("reserve", same).Undo("release", undo), agent.Undo("free", undo))
	files := fstest.MapFS{"order.yaml": {Data: []byte(mapOrder(fields, "stock", "action: release"))}}
	return openWith(t, &shop{}, files, s.agent(), count)
}

func runMap(t *testing.T, eng *engine.Engine, n int) makegood.Job {
	t.Helper()
	return submitAndWait(t, eng, "o-1", fmt.Sprintf(`{"n":%d}`, n))
}

// mapOrder is the workflow order, whose map has further fields. agent does an item, and undo says how it is undone.
func mapOrder(fields, agent, undo string) string {
	return `
name: order
steps:
  - name: reserve
    map: {over: "${ [range(.input.n)] }"` + fields + `}
    agent: ` + agent + `
    with: {item: "${ .item }", index: "${ .index }", order: "${ .job.id }"}
    undo: {` + undo + `}
  - {name: count, agent: count, with: "${ .steps.reserve.output }", undo: none}
`
}

func TestAStepIsDoneOnceForEachItem(t *testing.T) {
	for i := range 12 {
		n, fields := []int{0, 1, 20, 100, 101, 250}[i/2], []string{"", ", batch: 10"}[i%2]
		t.Run(fmt.Sprint(n, fields), func(t *testing.T) {
			s := &stock{}
			j := runMap(t, openMap(t, s, fields), n)
			var out []string
			if err := json.Unmarshal(j.Steps[1].Output, &out); err != nil || len(out) != n || j.ProcessState != makegood.JobProcessed {
				t.Fatalf("%s (%s), %d outputs: %v", j.ProcessState, j.Reason, len(out), err)
			}
			for i, o := range out {
				if o != fmt.Sprintf("o-1-%d-%d", i, i) {
					t.Errorf("item %d: %s", i, o)
				}
			}
			if len(s.keys) != n {
				t.Errorf("%d keys for %d items", len(s.keys), n)
			}
		})
	}
}

func TestFailedItemsAreToleratedAndRedriven(t *testing.T) {
	bad := true
	s := &stock{fails: func(item int) bool { return bad && item%50 == 7 }}
	eng := openMap(t, s, ", concurrency: 20, tolerate: {items: 5}")
	j := runMap(t, eng, 230)
	if j.ProcessState != makegood.JobProcessed {
		t.Fatalf("%s: %s", j.ProcessState, j.Reason)
	}
	var out []*string
	if err := json.Unmarshal(j.Steps[1].Output, &out); err != nil || len(out) != 230 || out[7] != nil || out[8] == nil {
		t.Fatalf("%d outputs: %v", len(out), err)
	}
	if s.most > 20 {
		t.Errorf("%d items were under way at once", s.most)
	}
	s.mu.Lock()
	bad = false
	s.mu.Unlock()
	ask(t, eng, "o-1", makegood.VerbRedrive)
	if j = waitFor(t, eng, "o-1"); j.ProcessState != makegood.JobProcessed {
		t.Fatal(j.ProcessState, j.Reason)
	}
	if err := json.Unmarshal(j.Steps[0].Output, &out); err != nil || slices.Contains(out, nil) {
		t.Errorf("not all outputs are there: %v", err)
	}
	twice := 0
	for _, n := range s.keys {
		if n == 2 {
			twice++
		}
	}
	if len(s.keys) != 230 || twice != 5 {
		t.Errorf("%d keys, %d of them twice: want 230, and the 5 that had failed", len(s.keys), twice)
	}
}

func TestAMapWithTooManyFailuresIsUndone(t *testing.T) {
	s := &stock{fails: func(item int) bool { return item%50 == 7 }}
	j := runMap(t, openMap(t, s, ", concurrency: 20, tolerate: {items: 3}"), 230)
	if j.ProcessState != makegood.JobUndone || s.undone != len(s.keys)-4 {
		t.Errorf("%s: %s; %d of %d undone", j.ProcessState, j.Reason, s.undone, len(s.keys))
	}
}

// A list of more than 256 KB is a large payload by itself, and JSON lines are one that a person writes.
func TestTheItemsOfAMapMayBeALargePayload(t *testing.T) {
	const n = 4000
	list := agent.New("list", agent.Do("list", func(context.Context, json.RawMessage) ([]string, error) {
		return slices.Repeat([]string{strings.Repeat("x", 100)}, n), nil
	}), agent.Do("lines", func(ctx context.Context, _ json.RawMessage) (makegood.Payload, error) {
		return agent.WritePayload(ctx, "application/jsonl", strings.NewReader(strings.Repeat("{\"a\": 1}\n\n", n)))
	}))
	for _, action := range []string{"list", "lines"} {
		t.Run(action, func(t *testing.T) {
			s := &stock{}
			eng := openWith(t, &shop{}, fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: all, agent: list, action: ` + action + `, undo: none}
  - {name: reserve, map: {over: "${ .steps.all.output }", outputs: manifest}, agent: stock, with: {item: "${ .index }", index: "${ .item | length }"}, undo: {action: release}}
`)}}, s.agent(), list)
			j := runMap(t, eng, 0)
			if j.ProcessState != makegood.JobProcessed || len(s.keys) != n {
				t.Errorf("%s (%s), %d items, want %d", j.ProcessState, j.Reason, len(s.keys), n)
			}
		})
	}
}

// The traps of peers: the same item twice is two items, a redrive of items that are done by now is refused and changes
// nothing, and keys stay what they were above a thousand items.
func TestARedriveOf312Of10000ItemsKeepsTheirKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const n = 10_000
	bad := true
	s := &stock{fails: func(item int) bool { return bad && item%32 == 7 && item < 312*32 }}
	eng := openMap(t, s, ", concurrency: 1000, tolerate: {share: 0.2, after: 100}, outputs: manifest")
	outputs := func(j makegood.Job) (m struct{ Items, Failed int }) {
		if err := json.Unmarshal(j.Steps[0].Output, &m); err != nil || j.ProcessState != makegood.JobProcessed {
			t.Fatalf("%s (%s): %v", j.ProcessState, j.Reason, err)
		}
		return m
	}
	if m := outputs(runMap(t, eng, n)); m.Failed != 312 || m.Items != n {
		t.Fatalf("%d of %d items have failed, want 312 of %d", m.Failed, m.Items, n)
	}
	s.mu.Lock()
	bad = false
	s.mu.Unlock()
	// First those of four parts, by their places.
	if why := redriveItems(t, eng, "7,39,71,103,3207,9959,9927"); why != "" {
		t.Fatal(why)
	}
	if m, twice := outputs(waitFor(t, eng, "o-1")), s.twice(); m.Failed != 305 || len(twice) != 7 {
		t.Errorf("%d items have failed still, and %v were done again, want 305, and 7", m.Failed, twice)
	}
	ask(t, eng, "o-1", makegood.VerbRedrive)
	if m := outputs(waitFor(t, eng, "o-1")); m.Failed != 0 {
		t.Errorf("%d items have failed still", m.Failed)
	}
	again := map[int]int{}
	for _, calls := range s.keys {
		again[calls]++
	}
	if len(again) != 2 || again[1] != n-312 || again[2] != 312 {
		t.Errorf("keys by how often they were called: %v, want %d once and 312 twice", again, n-312)
	}
	_, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbRedrive})
	if err == nil || !strings.Contains(err.Error(), "has a failed item") {
		t.Errorf("redriven again: %v, want that no item has failed", err)
	}
	if j, err := eng.Get(t.Context(), "o-1"); err != nil || j.ProcessState != makegood.JobProcessed {
		t.Errorf("then it is %s (%v), want it as it was", j.ProcessState, err)
	}
}

func TestTheSameItemTwiceIsTwoItems(t *testing.T) {
	s := &stock{}
	eng := openWith(t, &shop{}, fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: reserve, map: {over: "${ [7, 7, 7] }"}, agent: stock, with: {item: "${ .item }"}, undo: {action: release}}
`)}}, s.agent())
	if j := runMap(t, eng, 0); j.ProcessState != makegood.JobProcessed || len(s.keys) != 3 {
		t.Errorf("%s (%s): %d keys, want 3", j.ProcessState, j.Reason, len(s.keys))
	}
}

// A job of its own may do an item, and the workflow of that job may have a map, too. Where the last step of the order
// fails, all items of all these jobs are undone.
func TestItemsMayBeJobsWithMapsOfTheirOwn(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			s := &stock{}
			last := agent.New("last", agent.Do("last", func(context.Context, any) (any, error) {
				if fails {
					return nil, agent.NotApplied(agent.Final(errors.New("no")))
				}
				return nil, nil
			}))
			eng := openWith(t, &shop{}, fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: boxes, map: {over: "${ [range(5)] }", concurrency: 2}, agent: workflow, action: box, with: {box: "${ .item }"}}
  - {name: last, agent: last, undo: none}
`)}, "box.yaml": {Data: []byte(`
name: box
steps:
  - {name: fill, map: {over: "${ [range(3)] }"}, agent: stock, action: reserve, with: {item: "${ .input.box * 10 + .item }", order: x}, undo: {action: release}}
`)}}, s.agent(), last)
			j := runMap(t, eng, 0)
			want, undone := makegood.JobProcessed, 0
			if fails {
				want, undone = makegood.JobUndone, 15
			}
			if j.ProcessState != want || len(s.keys) != 15 || s.undone != undone {
				t.Errorf("%s (%s): %d items done, %d undone", j.ProcessState, j.Reason, len(s.keys), s.undone)
			}
			if got := string(j.Steps[0].Output); !fails && got != `[["x-0-0","x-1-0","x-2-0"],["x-10-0","x-11-0","x-12-0"],["x-20-0","x-21-0","x-22-0"],["x-30-0","x-31-0","x-32-0"],["x-40-0","x-41-0","x-42-0"]]` {
				t.Errorf("output %s", got)
			}
		})
	}
}

// A redrive by a corrected definition does the failed items as that says, and leaves those that are done.
func TestFailedItemsAreRedrivenByACorrectedDefinition(t *testing.T) {
	s := &stock{fails: func(item int) bool { return item%50 == 7 }}
	eng := openMap(t, s, ", tolerate: {items: 9}")
	if j := runMap(t, eng, 230); j.ProcessState != makegood.JobProcessed {
		t.Fatalf("%s: %s", j.ProcessState, j.Reason)
	}
	redriveBy := func(undo string) error {
		if _, err := eng.Define(t.Context(), "order.yaml", []byte(mapOrder(", tolerate: {items: 9}", "count", undo))); err != nil {
			t.Fatal(err)
		}
		_, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbRedrive, Definition: api.CurrentDefinition})
		return err
	}
	for _, undo := range []string{"action: free", "action: release"} { // another action, and another agent
		if err := redriveBy(undo); err == nil || !strings.Contains(err.Error(), "the definition has another") {
			t.Errorf("items that are done are undone by %s: %v, want it refused", undo, err)
		}
	}
	if err := redriveBy("agent: stock, action: release"); err != nil {
		t.Fatal(err)
	}
	j, err := eng.Wait(t.Context(), "o-1")
	var out []json.RawMessage
	if err != nil || json.Unmarshal(j.Steps[0].Output, &out) != nil || len(out) != 230 || string(out[7]) != `{"index":7,"item":7,"order":"o-1"}` || string(out[8]) != `"o-1-8-8"` {
		t.Errorf("%s (%s), %v: outputs 7 and 8 are %s and %s", j.ProcessState, j.Reason, err, out[7], out[8])
	}
}

// A map without items has no effect that could stand: its undo is done.
func TestAMapWithoutItemsIsUndone(t *testing.T) {
	eng := openMap(t, &stock{}, "")
	runMap(t, eng, 0)
	ask(t, eng, "o-1", makegood.VerbUndo)
	j := waitFor(t, eng, "o-1")
	if j.ProcessState != makegood.JobUndone || strings.Contains(j.Reason, "reserve") || j.Steps[0].Items == nil || j.Steps[0].Items.All != 0 {
		t.Errorf("%s: %s", j.ProcessState, j.Reason)
	}
}
