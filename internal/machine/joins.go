package machine

import (
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// begins starts a step that is next, and skips one that can no longer begin.
func (t *turn) begins(i int) {
	s := t.w.Steps[i]
	switch {
	case s.Only == makegood.OnlyOnError:
		t.beginsOnError(i)
	case s.Any:
		t.beginsByAny(i)
	case t.allThrough(i):
		t.start(side{i, false})
	}
}

// beginsOnError starts a step that another went to. It waits until all steps that may go to it have ended, so that it
// reads the same of their outcomes when it is sent again.
func (t *turn) beginsOnError(i int) {
	switch {
	case !t.allThrough(i):
	case slices.ContainsFunc(t.graph.needs[i], func(n int) bool { return t.job.Steps[n].Forward.WentTo == t.job.Steps[i].Name }):
		t.start(side{i, false})
	default:
		t.skip(i)
	}
}

// beginsByAny starts a step when the first of those that it needs is done. Which one that was is kept: of two that are
// done later both would be there when its task is sent again.
func (t *turn) beginsByAny(i int) {
	a := &t.job.Steps[i].Forward
	for _, n := range t.graph.needs[i] {
		if need := t.job.Steps[n]; a.By == "" && need.Forward.State == job.Done {
			a.By = need.Name
		}
	}
	switch {
	case a.By != "":
		t.start(side{i, false})
	case t.allThrough(i):
		t.skip(i)
	}
}

// allThrough reports whether all have ended that come right before a step.
func (t *turn) allThrough(i int) bool {
	return !slices.ContainsFunc(t.graph.needs[i], func(n int) bool { return !through(t.job.Steps[n].Forward.State) })
}

// skip ends a step that is not to be done.
func (t *turn) skip(i int) {
	a := &t.job.Steps[i].Forward
	a.State, a.FinishedAt = job.Skipped, t.now
}
