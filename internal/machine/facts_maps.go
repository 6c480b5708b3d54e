package machine

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// The items of a map are steps of jobs, and the jobs are the parts of the map (internal/domain, maps.go). The core has
// three rules for them: a part has so many items under way at most, so many may fail, and those that failed are done
// again when that is asked for, under their keys.

// full reports whether a part has as many steps under way as it may have, counted with those about to begin.
func (t *turn) full() bool {
	if t.w.Part == nil {
		return false
	}
	return len(t.wants)+underWay(&t.job) >= stepsAtOnce(t.w, &t.job)
}

// tolerance is how many items of a part may fail: as the definition says, or an edit over it.
func (t *turn) tolerance() makegood.Tolerance {
	if may := t.job.EditOf("").Tolerate; may != nil {
		return *may
	}
	return t.w.Part.Tolerate
}

// itemFailed reports whether a step is an item of a map that has failed and was passed by. One that a person has
// settled has not.
func (t *turn) itemFailed(i int) bool {
	a := &t.job.Steps[i].Forward
	return t.w.Part != nil && t.w.Steps[i].Map == nil && a.State == job.Skipped && a.Error != nil && t.job.Settled(*a) == nil
}

// failedItems is how many items of a step have failed, where it is done.
func (t *turn) failedItems(i int) int {
	a := &t.job.Steps[i].Forward
	switch {
	case t.itemFailed(i):
		return t.itemsIn(i) - a.Answered
	case t.w.Steps[i].Map != nil && a.State == job.Done && a.RepeatTries == 0 && t.job.Settled(*a) == nil:
		return a.FailureCount
	default:
		return 0
	}
}

// redriven is how many failed items of a step a request does again, and which, if it names some.
func (t *turn) redriven(i int, e job.Requested) (n int, named job.Indexes) {
	n = t.failedItems(i)
	switch {
	case n == 0 || e.Step != "" && e.Step != t.job.Steps[i].Name:
		return 0, ""
	case e.Indexes == "":
		return n, ""
	case t.w.Part == nil:
		named = e.Indexes
	default: // All steps of a part but the last have as many items as the first.
		named = e.Indexes.Within(i*t.itemsIn(0), t.itemsIn(i))
	}
	return min(n, len(named.List())), named
}

// intolerable says that a part has more failures than may be, with so many more; empty: it has not.
func (t *turn) intolerable(more int) string {
	failed, ended := more, more
	for i := range t.job.Steps {
		failed += t.failedItems(i)
		if through(t.job.Steps[i].Forward.State) {
			ended += t.itemsIn(i)
		}
	}
	may := t.tolerance()
	switch {
	case may.Items > 0 && failed > may.Items, may == (makegood.Tolerance{}) && failed > 0:
		return fmt.Sprintf("%d items have failed, and %d may", failed, may.Items)
	case may.Share > 0 && ended >= may.After && float64(failed) > may.Share*float64(ended)+rounding:
		return fmt.Sprintf("%d of %d items have failed, and a share of %v may", failed, ended, may.Share)
	default:
		return ""
	}
}

// rounding is by how much a share of the items may come out too small: 0.29 of 100 is 28.999999999999996.
const rounding = 1e-6

// standsBehind reports whether a step that began behind a step is not over yet on the way back. Only a redriven step is
// out beside those behind it.
func (t *turn) standsBehind(i int) bool {
	return slices.ContainsFunc(t.graph.followers[i], func(f int) bool {
		s := &t.job.Steps[f]
		stands := s.Forward.State == job.Dispatched || s.Forward.State == job.Waiting || (s.Forward.State == job.Done || s.Forward.Unknown) && !t.undoOver(f)
		return stands || t.standsBehind(f)
	})
}

// redriving reports whether a side is out because its failed items are done again.
func (t *turn) redriving(at side) bool {
	a := t.activity(at)
	return !at.undo && t.isChild(at) && a.State == job.Dispatched && a.Repeats > 0
}

// itemsIn is how many items of a map a step of a part has.
func (t *turn) itemsIn(i int) int {
	if m := t.w.Steps[i].Map; m != nil {
		return m.Count
	}
	return max(1, domain.BatchSize(t.w, i))
}

// FailedItems is how many items of a job that does items of a map have failed.
func FailedItems(w makegood.Workflow, j job.Job) (failed int) {
	for i := range j.Steps {
		failed += FailedIn(w, j, i)
	}
	return failed
}

// FailedIn is how many items of the i-th step of a job that does items of a map have failed.
func FailedIn(w makegood.Workflow, j job.Job, i int) int {
	t := turn{w: w, job: j}
	return t.failedItems(i)
}
