package machine

import (
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// mustQueue reports whether the latest attempt of a side must stand before the gate of its agent.
func (t *turn) mustQueue(at side) bool {
	switch {
	case !t.limited(at):
		return false
	case t.unstored:
		return true
	}
	permit := t.question(AskPermit, at)
	permit.Agent = agentOf(t.w.Steps[at.step], at.undo)
	found, known := t.ask(permit)
	return !known || found.Finding != job.FoundAdmitted
}

// admitAll sends the tasks of those attempts before gates that may begin, and reports whether one may.
func (t *turn) admitAll() (admitted bool) {
	for i := range t.job.Steps {
		if at, out := t.out(i); out && t.activity(at).Queued && t.wanted(at) && t.going() {
			admitted = t.admit(at) || admitted
		}
	}
	return admitted
}

// admit sends the task of an attempt that stands before a gate, if it has a permit by now or its agent has no gate any
// more, and reports whether it did. Its times begin now.
func (t *turn) admit(at side) bool {
	a := t.activity(at)
	if t.holds(at, a.Opened()) {
		return true // The job is to stand still.
	}
	if t.mustQueue(at) {
		return false
	}
	leaveOut(a, t.now)
	a.Queued, a.QueuedOver, a.OpenedAt, a.LookAt = false, 0, time.Time{}, time.Time{}
	a.At, a.Cause = t.now, t.cause
	a.LookAt = t.nextLook(at)
	return true
}
