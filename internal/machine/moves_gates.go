package machine

import (
	"time"
)

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
	a.Queued, a.OpenedAt, a.LookAt = false, time.Time{}, time.Time{}
	a.At, a.Cause = t.now, t.cause
	a.LookAt = t.nextLook(at)
	return true
}
