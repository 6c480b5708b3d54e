package machine

import (
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Every exception in a job's course is noted where it happens, before its consequences. An event that changes no
// state leaves no entry, and the same event over the same job leaves the same ones. An unclaimed attempt gets an
// entry only if it is given up: one that is sent again, or gets a successor, has not failed.

// note adds an entry to the job's history.
func (t *turn) note(e job.Entry) {
	e.At = t.now
	e.StartedAt = shown(e.StartedAt)
	e.LockedBy = holder(e.LockedBy)
	t.entries = append(t.entries, e)
}

// noteOf adds an entry about the latest attempt of a side.
func (t *turn) noteOf(at side, e job.Entry) {
	e.Step, e.Undo, e.Attempt = t.name(at), at.undo, t.activity(at).Attempt
	t.note(e)
}

// shown is a time of a claim, if it can be shown: an agent writes it, and JSON has no other years.
func shown(at time.Time) time.Time {
	if at = domain.Instant(at); at.Year() > 9999 || at.Year() < 1 {
		return time.Time{}
	}
	return at
}

// holder returns the holder of an attempt, shortened for storage: the agent writes this text, so it may be anything.
func holder(lockedBy string) string {
	if len(lockedBy) > limits.MaxLockedByBytes {
		return ""
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, lockedBy), "")
}
