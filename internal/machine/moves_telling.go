package machine

import (
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
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

// announce notes that people must be told of the job's present state.
func (t *turn) announce(operator, listener bool) {
	t.job.Seq++
	t.job.Untold = append(t.job.Untold, job.Announcement{
		Seq: t.job.Seq, ProcessState: t.job.ProcessState, Reason: t.job.Reason, At: t.now,
		Operator: operator, Listener: listener,
	})
	t.giveUpOldest()
}

// giveUpOldest bounds the undelivered announcements: those for the listener alone go first, oldest first.
func (t *turn) giveUpOldest() {
	if len(t.job.Untold) <= job.MaxUntold {
		return
	}
	oldest := max(0, slices.IndexFunc(t.job.Untold, func(a job.Announcement) bool { return !a.Operator }))
	if t.job.Untold[oldest].Listener {
		t.job.Unheard++
	}
	t.job.Untold = slices.Delete(t.job.Untold, oldest, oldest+1)
}

// tell notes that the listener must be told, if the state has changed. stop has already noted an Error.
func (t *turn) tell(was makegood.ProcessState) {
	is := t.job.ProcessState
	if is != was && is != makegood.JobError && t.job.ReplyTo != "" {
		t.announce(false, true)
	}
}

// A workflow states how long its jobs are expected to take. An operator is told, once a round, of a job that will
// take longer, while there is time left to act; the notice has no other effect. The time counts like the job's
// timeout: from its start, over all rounds that begin by themselves, not during a pause, and anew after a resubmit. A
// job that waits for a person, or for an absent agent, can be late too, and its operator should hear so. A job that
// is being undone for good, or has stopped, will not be done, and has its own announcements.

// expect grants the job the time that its workflow expects it to take.
func (t *turn) expect() {
	told := !t.job.ExpectBy.IsZero() && t.job.WarnAt.IsZero()
	expect := t.w.Expect.Std()
	t.job.ExpectBy, t.job.WarnAt = time.Time{}, time.Time{}
	if expect == 0 {
		return
	}
	t.job.ExpectBy = domain.Instant(t.from().Add(expect))
	if !told {
		t.job.WarnAt = domain.Instant(t.job.ExpectBy.Add(-expect / limits.ExpectMargin))
	}
}

// expectLater moves the expected time by the time that the job stood still.
func (t *turn) expectLater(stood time.Duration) {
	for _, at := range []*time.Time{&t.job.ExpectBy, &t.job.WarnAt} {
		if !at.IsZero() {
			*at = at.Add(stood)
		}
	}
}

// foresee tells an operator of a job that will miss its expected time: a retry, a round or a wait is known to end
// after it, or nearly all of the time is over. A wait that the workflow itself asks for is no reason to worry: after
// one, the last part is measured from the time left then.
func (t *turn) foresee() {
	if t.job.WarnAt.IsZero() || !t.job.Expected() {
		return
	}
	waits, soonest := t.soonest()
	if waits.After(t.now) && waits.Before(t.job.ExpectBy) {
		margin := t.job.ExpectBy.Sub(waits) / limits.ExpectMargin
		t.job.WarnAt = later(t.job.WarnAt, domain.Instant(t.job.ExpectBy.Add(-margin)))
	}
	if !soonest.After(t.job.ExpectBy) && !passed(t.job.WarnAt, t.now) {
		return
	}
	t.job.WarnAt = time.Time{}
	why := limits.Clip(t.standsAt())
	t.announce(true, false)
	last := &t.job.Untold[len(t.job.Untold)-1]
	last.ExpectBy, last.Reason = t.job.ExpectBy, why
	t.note(job.Entry{Kind: makegood.EntryLate, Reason: why})
}
