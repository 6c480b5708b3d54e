package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// redriveItems asks for a redrive of some items of the step reserve, and returns why it is refused.
func redriveItems(t *testing.T, eng *engine.Engine, indexes string) string {
	t.Helper()
	_, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbRedrive, Step: "reserve", Indexes: indexes})
	if err != nil {
		return err.Error()
	}
	return ""
}

// twice has the items that were called twice or more, by the output of the agent.
func (s *stock) twice() (items []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, n := range s.keys {
		if n > 1 {
			items = append(items, key[strings.Index(key, "part_"):])
		}
	}
	slices.Sort(items)
	return items
}

// Only the items that a redrive names are done again, through all parts, and under their keys. The others stay tolerated.
func TestOnlyNamedItemsAreRedriven(t *testing.T) {
	bad := true
	s := &stock{fails: func(item int) bool { return bad && item%50 == 7 }}
	eng := openMap(t, s, ", concurrency: 20, tolerate: {items: 5}")
	if j := runMap(t, eng, 230); j.ProcessState != makegood.JobProcessed || j.Steps[0].Items.Failed != 5 {
		t.Fatalf("%s (%s): %+v", j.ProcessState, j.Reason, j.Steps[0].Items)
	}
	s.mu.Lock()
	bad = false
	s.mu.Unlock()
	for indexes, want := range map[string]string{
		"7,8": "item 8 of step reserve has not failed", "107-108": "item 108 of step reserve has not failed", "7,230": "step reserve has no item 230: it has 230, from 0",
		"150": "item 150 of step reserve has not failed", "0-1000": "more than 1000 items", "seven": `"seven" names no items`, "100000": "there is no item 100000",
	} {
		if got := redriveItems(t, eng, indexes); !strings.Contains(got, want) {
			t.Errorf("--index %s: got %q, want %s", indexes, got, want)
		}
	}
	if _, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbRedrive, Indexes: "7"}); err == nil || !strings.Contains(err.Error(), "step is missing") {
		t.Errorf("items without a step: %v", err)
	}
	for _, step := range []string{"count", "none"} {
		if _, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbRedrive, Step: step, Indexes: "7"}); err == nil || !strings.Contains(err.Error(), "there is no step "+step+" with a map") {
			t.Errorf("items of %s: %v", step, err)
		}
	}
	if got := s.twice(); got != nil {
		t.Fatalf("after refusals %v were done again", got)
	}
	if why := redriveItems(t, eng, "207, 7"); why != "" {
		t.Fatal(why)
	}
	j := waitFor(t, eng, "o-1")
	if got := s.twice(); len(got) != 2 || !strings.HasSuffix(got[0], "/item_7/1") || !strings.HasPrefix(got[0], "part_0~") || !strings.HasPrefix(got[1], "part_2~") {
		t.Errorf("%v were done again, want item 7 of the parts 0 and 2", got)
	}
	if j.ProcessState != makegood.JobProcessed || j.Steps[0].Items.Failed != 3 {
		t.Errorf("%s (%s): %+v, want 3 failed items still", j.ProcessState, j.Reason, j.Steps[0].Items)
	}
	e := j.History[len(j.History)-1]
	if e.Items != 2 || e.Indexes != "7,207" || e.Step != "reserve" {
		t.Errorf("the history has %+v", e)
	}
	if got := redriveItems(t, eng, "7"); !strings.Contains(got, "item 7 of step reserve has not failed") {
		t.Errorf("redriven again: %q", got)
	}
	ask(t, eng, "o-1", makegood.VerbRedrive)
	if j = waitFor(t, eng, "o-1"); j.Steps[0].Items.Failed != 0 || len(s.twice()) != 5 {
		t.Errorf("a redrive of all: %+v, and %v were done again", j.Steps[0].Items, s.twice())
	}
}

// Of a batch the named items are done again. Done ones of the batch stay done, and the other failed ones as they are, one
// that might be tried again too.
func TestOnlyNamedItemsOfABatchAreRedriven(t *testing.T) {
	bad, tries := true, map[int]int{}
	s := &shelf{fails: func(item int) error {
		tries[item]++
		switch {
		case bad && (item == 13 || item == 17):
			return agent.Final(errors.New("sold out"))
		case bad && (item == 3 || item == 14):
			return errors.New("busy")
		default:
			return nil
		}
	}}
	eng := openBatch(t, s, ", concurrency: 10, tolerate: {items: 4}", "")
	if j := submitAndWait(t, eng, "o-1", `{"n":25}`); j.ProcessState != makegood.JobProcessed || j.Steps[0].Items.Failed != 4 {
		t.Fatalf("%s (%s): %+v", j.ProcessState, j.Reason, j.Steps[0].Items)
	}
	if got := redriveItems(t, eng, "13,15"); !strings.Contains(got, "item 15 of step reserve has not failed") {
		t.Errorf("an item of the batch that is done: %q", got)
	}
	s.mu.Lock()
	bad = false
	clear(tries)
	s.mu.Unlock()
	for _, c := range []struct {
		indexes string
		tried   []int
		failed  int
	}{{"17", []int{17}, 3}, {"14,3", []int{3, 14}, 1}, {"13", []int{13}, 0}} {
		if why := redriveItems(t, eng, c.indexes); why != "" {
			t.Fatal(why)
		}
		j := waitFor(t, eng, "o-1")
		if got := slices.Sorted(maps.Keys(tries)); !slices.Equal(got, c.tried) || j.Steps[0].Items.Failed != c.failed {
			t.Errorf("--index %s: %v were done again, and %d have failed still; want %v and %d", c.indexes, got, j.Steps[0].Items.Failed, c.tried, c.failed)
		}
		clear(tries)
	}
	j := waitFor(t, eng, "o-1")
	want := make([]string, 25)
	for i := range want {
		want[i] = fmt.Sprintf(`"shelf %d"`, i)
	}
	if got := string(j.Steps[0].Output); got != "["+strings.Join(want, ",")+"]" {
		t.Errorf("output %s", got)
	}
}

// An item that is a job with a map of its own is done, if that map tolerates its failures: a redrive of the job above
// does not reach them. That of the job of the item does, and leaves the output above as it is.
func TestARedriveReachesTheItemsOfItsOwnMaps(t *testing.T) {
	bad := true
	s := &stock{fails: func(item int) bool { return bad && item == 11 }}
	eng := openWith(t, &shop{}, fstest.MapFS{"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: reserve, map: {over: "${ [range(3)] }", tolerate: {items: 1}}, agent: workflow, action: box, with: {box: "${ .item }"}}
`)}, "box.yaml": {Data: []byte(`
name: box
steps:
  - {name: fill, map: {over: "${ [range(3)] }", tolerate: {items: 1}}, agent: stock, action: reserve, with: {item: "${ .input.box * 10 + .item }", order: x}, undo: {action: release}}
`)}}, s.agent())
	j := runMap(t, eng, 0)
	if j.ProcessState != makegood.JobProcessed || !strings.Contains(string(j.Steps[0].Output), "null") || j.Steps[0].Items.Failed != 0 {
		t.Fatalf("%s (%s): %s, %+v", j.ProcessState, j.Reason, j.Steps[0].Output, j.Steps[0].Items)
	}
	s.mu.Lock()
	bad = false
	s.mu.Unlock()
	if _, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbRedrive}); err == nil || !strings.Contains(err.Error(), "none of its maps that have ended has a failed item") {
		t.Errorf("a redrive of the job above: %v", err)
	}
	if got := redriveItems(t, eng, "1"); !strings.Contains(got, "none of its items has failed") {
		t.Errorf("a redrive of its item: %q", got)
	}
	var box string
	for of, err := range eng.List(t.Context(), api.Filter{IDPrefix: j.Steps[0].Child + "~item_1~"}) {
		if err != nil {
			t.Fatal(err)
		}
		if of.Workflow == "box" {
			box = of.ID
		}
	}
	ask(t, eng, box, makegood.VerbRedrive)
	if inner := waitFor(t, eng, box); inner.ProcessState != makegood.JobProcessed || inner.Steps[0].Items.Failed != 0 {
		t.Errorf("the job of the item is %s (%s): %+v", inner.ProcessState, inner.Reason, inner.Steps[0].Items)
	}
	if above := waitFor(t, eng, "o-1"); string(above.Steps[0].Output) != string(j.Steps[0].Output) {
		t.Errorf("the output above is %s, was %s", above.Steps[0].Output, j.Steps[0].Output)
	}
}
