package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
)

// deadlinePassed acts on everything that is due. It is only a hint that something may be: it acts if
// the key that the Supervisor saw is still the one stored, and has passed.
func (t *turn) deadlinePassed(e makegood.DeadlinePassed) Verdict {
	switch {
	case !e.Key.Equal(t.job.CompleteBy):
		return Verdict{Kind: Stale, Reason: "CompleteBy has moved since it was seen"}
	case t.now.Before(e.Key):
		return Verdict{Kind: Stale, Reason: "CompleteBy has not passed here"}
	case t.job.ProcessState == makegood.Error && t.job.Told():
		// Still in front of a person: remind him.
		t.announce()
		return Verdict{Kind: Applied}
	case !t.active() || t.job.Paused():
		// Nothing is due; the key goes up, and what was not told is told again.
		return Verdict{Kind: Applied}
	}
	if t.forwards() && passed(t.job.Deadline, t.now) {
		t.timeUp()
	}
	for i := range t.job.Steps {
		if !t.active() {
			break
		}
		t.dueStep(i)
	}
	return Verdict{Kind: Applied}
}

// passed reports whether a time that is set has come.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// timeUp ends the forward direction of a job that took too long.
func (t *turn) timeUp() {
	reason := fmt.Sprintf("the job's timeout of %s passed", t.w.Timeout)
	if t.w.OnFailure.Action == makegood.FailureStop || !t.w.HasUndo() {
		t.stop(reason)
		return
	}
	t.turnRound(makegood.Undone, reason)
}

func (t *turn) dueStep(i int) {
	for _, undo := range []bool{false, true} {
		a := t.activity(i, undo)
		switch a.State {
		case makegood.Backoff:
			if undo != t.forwards() && passed(a.At, t.now) {
				t.openAttempt(i, undo)
			}
		case makegood.Dispatched:
			t.dueAttempt(i, undo)
		}
	}
}

// dueAttempt judges an attempt that is out: silence past CompleteBy is a failure; not having been
// claimed by StartBy is none, and only sends the same attempt again.
func (t *turn) dueAttempt(i int, undo bool) {
	a := t.activity(i, undo)
	claim, claimed := claimOf(*t.job, t.job.Steps[i].Name, *a)
	due := t.attemptDue(i, undo)
	if !passed(due, t.now) {
		return
	}
	t.onClaims = true
	if claimed || t.w.Steps[i].Shared {
		t.silence(i, undo, claim)
		return
	}
	a.Resent++
	a.At, a.Cause = t.now, t.cause
}

// silence ends an attempt that started and did not reply in time. What it did is unknown.
func (t *turn) silence(i int, undo bool, claim makegood.Claim) {
	a := t.activity(i, undo)
	t.noteStart(i, a)
	claim.Attempt = a.Attempt
	a.Silent = claim
	t.endAttempt(i, *a)
	t.attemptFailed(i, undo, makegood.StepError{
		Message: "no reply by CompleteBy", Retryable: true, Applied: makegood.AppliedUnknown,
	})
}

// attemptDue is when silence about an attempt becomes something to act on.
func (t *turn) attemptDue(i int, undo bool) time.Time {
	a := t.activity(i, undo)
	p := planOf(t.w.Steps[i], undo)
	if p.shared {
		return a.At.Add(p.startBy.Std() + p.timeout.Std())
	}
	if claim, claimed := claimOf(*t.job, t.job.Steps[i].Name, *a); claimed {
		return claim.CompleteBy
	}
	return a.At.Add(wait(p.startBy, a.Resent).Std())
}

// wait is how long the task of an attempt may wait that was sent again resent times. It doubles, so
// that a queue that stands still is not filled.
func wait(startBy makegood.Duration, resent int) makegood.Duration {
	for ; resent > 0 && startBy < makegood.Duration(makegood.MaxStartBy); resent-- {
		startBy *= 2
	}
	return min(startBy, makegood.Duration(makegood.MaxStartBy))
}

// interrupted ends the attempts that an earlier run of the embedded engine dispatched. They may have
// started, claimed or not: claims are not flushed, so one may have been lost with the power.
func (t *turn) interrupted(e makegood.Interrupted) Verdict {
	if t.job.Incarnation >= e.Incarnation || t.job.ProcessState.Finished() {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("run %d is known to the job", e.Incarnation)}
	}
	t.job.Incarnation = e.Incarnation
	for i, s := range t.job.Steps {
		if a, undo, ok := dispatched(s); ok {
			t.interrupt(i, undo, a)
		}
	}
	return Verdict{Kind: Applied}
}

// interrupt is no failure: the attempt is not counted against those granted, and the next is made at
// once. But a step that is running whenever the engine dies may be what kills it.
func (t *turn) interrupt(i int, undo bool, was makegood.Activity) {
	name := t.job.Steps[i].Name
	_, claimed := claimOf(*t.job, name, was)
	a := t.activity(i, undo)
	t.onClaims = true
	t.noteStart(i, a)
	t.endAttempt(i, was)
	a.Unknown = true
	a.Tries--
	a.State = makegood.NotStarted
	if undo == t.forwards() {
		a.State = makegood.Withdrawn
	}
	if !claimed {
		return
	}
	a.Interruptions++
	if a.Interruptions > makegood.MaxInterruptions && t.active() {
		a.State = makegood.Failed
		t.stop(fmt.Sprintf("step %s was cut off %d times by the death of the engine: it may be the cause", name, a.Interruptions))
	}
}

// mayRaise reports whether an event may move CompleteBy up. Leaving it early costs one look of the
// Supervisor; moving it costs two index writes, so only those that are about the key do. Of a job that goes on, being
// told is not: the next attempt would only lower the key again.
func (t *turn) mayRaise(event makegood.Event) bool {
	switch event.(type) {
	case makegood.DeadlinePassed:
		return true
	case makegood.Told:
		return !t.active() || t.job.Paused()
	default:
		return false
	}
}

// setKey sets CompleteBy so that it is never later than the earliest moment at which anything can be
// due, and leaves it alone if it is early enough.
func (t *turn) setKey(seen time.Time, raise bool) {
	due := t.due()
	switch {
	case due.IsZero():
		t.job.CompleteBy = time.Time{}
	case seen.IsZero() || due.Before(seen):
		t.job.CompleteBy = due
	case raise && due.After(seen):
		t.job.CompleteBy = due
		t.onClaims = true
	}
}

// due is the earliest moment at which anything can be due; zero for a job that is finished and told.
func (t *turn) due() time.Time {
	var due time.Time
	sooner := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if !t.job.Told() {
		sooner(t.now.Add(makegood.TellAgain))
	}
	switch {
	case t.job.ProcessState.Finished():
		return due
	case !t.active() || t.job.Paused():
		sooner(t.now.Add(makegood.FarKey))
		return due
	}
	if t.forwards() && !t.job.Deadline.IsZero() {
		sooner(t.job.Deadline)
	}
	if t.forwards() && t.early() {
		sooner(t.job.StartAt)
	}
	for i := range t.job.Steps {
		for _, undo := range []bool{false, true} {
			if at := t.activityDue(i, undo); !at.IsZero() {
				sooner(at)
			}
		}
	}
	if due.IsZero() {
		panic(fmt.Sprintf("machine: nothing would ever wake job %s in %s", t.job.ID, t.job.ProcessState))
	}
	return due
}

func (t *turn) activityDue(i int, undo bool) time.Time {
	a := t.activity(i, undo)
	switch a.State {
	case makegood.Backoff:
		return a.At
	case makegood.Dispatched:
		due := t.attemptDue(i, undo)
		p := planOf(t.w.Steps[i], undo)
		if fresh := t.now.Add(p.timeout.Std()); a.At.Equal(t.now) && a.Resent == 0 && fresh.Before(due) {
			// So low that the claim, which is likely to come at once, need not lower it.
			return fresh
		}
		return due
	default:
		return time.Time{}
	}
}

// open writes down which attempt of each step may be claimed: those that are out and still wanted.
func (t *turn) open() {
	t.job.Open = nil
	for i, s := range t.job.Steps {
		a, undo, ok := dispatched(s)
		if !ok || undo == t.forwards() || t.w.Steps[i].Shared {
			continue
		}
		if t.job.Open == nil {
			t.job.Open = make(map[string]int)
		}
		t.job.Open[s.Name] = a.Attempt
	}
}
