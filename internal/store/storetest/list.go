package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// listRules hold a store that is a store.Lister; they skip any other.
func listRules() []rule {
	rules := []rule{
		{"a list holds every job once, in pages of any size", listInPages},
		{"a list holds what its filter says, and nothing else", listFiltered},
		{"a list shows a job as it is: state, failures, key and birth", listShows},
		{"a job that was parked is listed in Error", listParked},
		{"a list of paused jobs holds those, in whatever state, and no others", listPaused},
	}
	return onlyOf[store.Lister](append(rules, filterRules()...))
}

func listInPages(w *world) {
	want := map[string]bool{}
	for i := range 7 {
		want[w.create(w.listable(fmt.Sprint("a", i))).ID] = true
	}
	for _, limit := range []int{1, 2, 3, 7, 100} {
		w.eventually(fmt.Sprintf("jobs in pages of %d", limit), func() (got, wanted any) {
			seen := map[string]bool{}
			for _, l := range w.list(store.Filter{Workflow: w.id("flow")}, limit) {
				seen[l.ID] = true
			}
			return seen, want
		})
	}
}

func listFiltered(w *world) {
	for _, state := range domain.ProcessStates() {
		for _, workflow := range []string{"flow", "other"} {
			j := w.listable(workflow + "-" + string(state))
			j.Workflow, j.ProcessState = w.id(workflow), state
			if state.Finished() {
				j.CompleteBy = time.Time{}
			}
			w.create(j)
		}
	}
	for _, state := range domain.ProcessStates() {
		want := []string{w.id("flow-" + string(state))}
		w.eventually("jobs of the workflow in "+string(state), func() (got, wanted any) {
			return w.listedIDs(store.Filter{Workflow: w.id("flow"), State: state}), want
		})
		both := []string{w.id("flow-" + string(state)), w.id("other-" + string(state))}
		w.eventually("jobs in "+string(state), func() (got, wanted any) {
			return w.listedIDs(store.Filter{State: state}), both
		})
	}
	w.same("jobs of a workflow that nobody runs", w.listedIDs(store.Filter{Workflow: w.id("none")}), []string(nil))
}

func listShows(w *world) {
	j := w.create(w.listable("a"))
	seen := j.CompleteBy
	j.ProcessState, j.FailureCount, j.CompleteBy = makegood.JobError, 3, w.at(limits.FarKey)
	w.want("save", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
	want := []store.Listed{{
		ID: j.ID, Workflow: j.Workflow, Definition: j.Definition, ProcessState: makegood.JobError, FailureCount: 3,
		CompleteBy: j.CompleteBy, CreatedAt: j.CreatedAt, Deadline: j.Deadline,
	}}
	w.eventually("the job in the list", func() (got, wanted any) {
		return w.list(store.Filter{Workflow: j.Workflow}, 10), want
	})
	w.eventually("its state before that", func() (got, wanted any) {
		return w.listedIDs(store.Filter{Workflow: j.Workflow, State: makegood.JobPending}), []string(nil)
	})
	seen, j.Rev, j.ProcessState = j.CompleteBy, j.Rev+1, makegood.JobProcessing
	w.want("save", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
	w.eventually("Error, when it has gone on", func() (got, wanted any) {
		return w.listedIDs(store.Filter{Workflow: j.Workflow, State: makegood.JobError}), []string(nil)
	})
}

func listParked(w *world) {
	j := w.create(w.listable("a"))
	w.harness.Damage(j.ID)
	w.want("park", w.store.Park(w.ctx, j.ID, j.CompleteBy, "cannot be decoded", w.at(limits.FarKey)), nil)
	w.eventually("the parked job", func() (got, wanted any) {
		return w.listedIDs(store.Filter{Workflow: w.id("flow"), State: makegood.JobError}), []string{j.ID}
	})
}

func listPaused(w *world) {
	var want []string
	for i, state := range []makegood.ProcessState{makegood.JobPending, makegood.JobProcessing, makegood.JobUndoing} {
		for _, workflow := range []string{"flow", "other"} {
			j := w.listable(fmt.Sprint(workflow, i))
			j.Workflow, j.ProcessState = w.id(workflow), state
			w.create(j)
			paused := w.listable(fmt.Sprint("paused-", workflow, i))
			paused.Workflow, paused.ProcessState, paused.PausedAt = w.id(workflow), state, w.at(0)
			if w.create(paused); workflow == "flow" {
				want = append(want, paused.ID)
			}
		}
	}
	for _, limit := range []int{1, 2, 100} {
		w.eventually(fmt.Sprintf("paused jobs of the workflow in pages of %d", limit), func() (got, wanted any) {
			var ids []string
			for _, l := range w.list(store.Filter{Paused: true, Workflow: w.id("flow")}, limit) {
				ids = append(ids, l.ID)
			}
			slices.Sort(ids)
			return ids, want
		})
	}
}

// listable returns a job of a workflow that no other test lists.
func (w *world) listable(name string) job.Job {
	j := w.job(name)
	j.Workflow = w.id("flow")
	return j
}

// list reads a list to its end, holds each page to its limit and no job to come twice, and returns this test's jobs,
// without the jobs themselves, which a list has only as their own items do.
func (w *world) list(filter store.Filter, limit int) []store.Listed {
	w.Helper()
	var mine []store.Listed
	seen := map[string]bool{}
	for cursor, pages := "", 0; ; pages++ {
		read, err := w.store.(store.Lister).ListJobs(w.ctx, filter, cursor, limit)
		page, next := read.Jobs, read.Cursor
		if err != nil {
			w.Fatalf("list: %v", err)
		}
		if len(page) > limit {
			w.Fatalf("list: got %d jobs, the limit is %d", len(page), limit)
		}
		for _, l := range page {
			if seen[l.ID] {
				w.Fatalf("list: got %s twice", l.ID)
			}
			seen[l.ID] = true
			if strings.HasPrefix(l.ID, w.id("")) {
				l.Job = job.Job{}
				mine = append(mine, l)
			}
		}
		if next == "" {
			return mine
		}
		if cursor = next; pages > 100_000 {
			w.Fatalf("list: no end after %d pages", pages)
		}
	}
}

// listedIDs returns the ids of this test's jobs that match, sorted.
func (w *world) listedIDs(filter store.Filter) []string {
	w.Helper()
	var ids []string
	for _, l := range w.list(filter, 100) {
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	return ids
}
