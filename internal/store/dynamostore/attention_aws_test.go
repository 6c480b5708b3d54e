//go:build aws

package dynamostore

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

// all reads a list to its end, in pages of two.
func all(t *testing.T, page func(cursor string) (store.Page, error)) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		read, err := page(cursor)
		must(t, "list", err)
		jobs, next := read.Jobs, read.Cursor
		if len(jobs) > 2 {
			t.Fatalf("got %d jobs, the limit is 2", len(jobs))
		}
		for _, l := range jobs {
			ids = append(ids, l.ID)
		}
		if cursor = next; cursor == "" {
			return ids
		}
	}
}

// The newest first, over all shards and pages, for the price of a query a shard and a read of the items
// that are shown; and no scan.
func TestJobsThatWaitForAPersonAreListedInOrder(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	var inError, paused []string
	for i := range 30 {
		j := aJob(fmt.Sprintf("waits-%02d", i))
		j.CreatedAt = j.CreatedAt.Add(time.Duration(i/6) * time.Millisecond)
		switch i % 3 {
		case 0:
			j.ProcessState = makegood.JobError
			inError = append([]string{j.ID}, inError...)
		case 1:
			j.PausedAt = j.CreatedAt
			paused = append([]string{j.ID}, paused...)
		}
		must(t, "create", s.Create(t.Context(), j))
	}
	tab.spent.take()
	same(t, "jobs in Error", all(t, func(cursor string) (store.Page, error) {
		return s.ListJobs(t.Context(), store.Filter{State: makegood.JobError}, cursor, 2)
	}), inError)
	same(t, "paused jobs", all(t, func(cursor string) (store.Page, error) {
		return s.ListJobs(t.Context(), store.Filter{Paused: true}, cursor, 2)
	}), paused)
	same(t, "paused jobs of a workflow that nobody runs", all(t, func(cursor string) (store.Page, error) {
		return s.ListJobs(t.Context(), store.Filter{Paused: true, Workflow: "none"}, cursor, 2)
	}), []string(nil))
	for _, c := range tab.spent.take() {
		if c.operation == "ListJobs" {
			t.Errorf("got a scan of the table for %v units, want none", c.total)
		}
	}
}

// A job enters the index Attention once and leaves it once; saves while it waits do not move it.
func TestWaitingForAPersonCostsAUnitEachWay(t *testing.T) {
	tab := newTable(t)
	s := tab.open(t)
	j := aJob("waits-1")
	must(t, "create", s.Create(t.Context(), j))
	tab.spent.take()
	for _, state := range []makegood.ProcessState{makegood.JobError, makegood.JobError, makegood.JobProcessing, makegood.JobProcessing} {
		j.ProcessState, j.Rev = state, j.Rev+1
		must(t, "save", s.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}))
	}
	_, _, got := sum(tab.spent.take())
	same(t, "what each save cost", got, []string{"Save 1+1", "Save 1+0", "Save 1+1", "Save 1+0"})
}
