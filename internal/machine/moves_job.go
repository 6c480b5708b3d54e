package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// finish ends the job.
func (t *turn) finish(state makegood.ProcessState) {
	t.job.ProcessState = state
	t.job.FinishedAt = t.now
	t.job.PausedAt = time.Time{}
}

// because sets the reason why a job stops or is undone, and keeps the round's first reason beside it. People search
// for the failure that came first; a failed undo or a cancel has another reason.
func (t *turn) because(reason string) {
	was := t.job.Reason
	t.job.Reason = limits.Clip(reason)
	if t.job.FirstReason == "" && was != t.job.Reason {
		t.job.FirstReason = was
	}
}

// noReason clears both reasons when a job goes forward again or starts a new round.
func (t *turn) noReason() { t.job.Reason, t.job.FirstReason = "", "" }

// stop puts the job in front of a person. No new work starts: unclaimed tasks are taken back; claimed ones run on,
// and their replies are kept.
func (t *turn) stop(reason string) {
	t.closeOpen()
	t.job.ProcessState = makegood.JobError
	t.because(reason)
	t.endPause()
	t.job.RemindAt = t.now.Add(limits.FarKey)
	t.announce(true, true)
	t.note(job.Entry{Kind: makegood.EntryStopped, Reason: t.job.Reason})
}

// closeOpen asks for the end of every open attempt that was wanted until now: because its direction is given up, or
// because the job comes to stand still and must start no new work. It stays out until the answer is known. Shared
// attempts have no claims and may be running: they are left alone.
func (t *turn) closeOpen() {
	for i := range t.job.Steps {
		at, ok := t.out(i)
		if !ok || !t.wanted(at) {
			continue
		}
		t.endUnsaved(at)
		a := t.activity(at)
		if a.State != job.Dispatched || a.Inline != "" || t.shared(at) {
			continue
		}
		a.Closing, a.Cause = true, t.cause
		a.LookAt = t.now.Add(limits.CloseAgain)
	}
}

// closeBehind asks for the end of an unwanted redrive when the steps behind it are over: to cancel the child is to undo
// all of its items. Until then the closing has no cause.
func (t *turn) closeBehind(i int) {
	at := side{i, false}
	a := t.activity(at)
	switch {
	case !t.redriving(at) || !a.Closing:
	case t.standsBehind(i):
		a.Cause = ""
	case a.Cause == "":
		a.Cause = t.cause
		a.LookAt = t.now.Add(limits.CloseAgain)
	}
}

// endUnsaved ends an inline attempt that was opened for the coming save, or one that stands before a gate, and is not
// wanted any more. An inline one that was saved runs, and has no claim item that could tell its agent.
func (t *turn) endUnsaved(at side) {
	if a := t.activity(at); t.unsaved(a) || a.Queued {
		a.Tries--
		t.rest(a, job.NotStarted)
	}
}

// endPause ends a pause, if there is one. The times of waiting activities stood still meanwhile.
func (t *turn) endPause() {
	if paused := t.job.PausedAt; !paused.IsZero() {
		for i := range t.job.Steps {
			t.stoodStill(t.inDirection(i), paused)
		}
	}
	t.job.PausedAt = time.Time{}
}

// turnRound makes the job want to be undone, and to end in state want.
func (t *turn) turnRound(want makegood.ProcessState, reason string) {
	t.closeOpen()
	t.job.Desired = want
	t.job.ProcessState = makegood.JobUndoing
	t.because(reason)
	t.note(job.Entry{Kind: makegood.EntryTurned, State: want, Reason: t.job.Reason})
	t.noMoreRounds()
	for i := range t.job.Steps {
		switch a := &t.job.Steps[i].Forward; a.State {
		case job.Backoff:
			a.State = job.Withdrawn
		case job.Waiting:
			t.leaveWait(side{i, false})
		case job.Dispatched:
			t.closeBehind(i)
		}
	}
}

// A round is one run of a job from the start. An undone job gets another round on request (resubmit, or redo before
// it is undone), or by itself with onFailure restart. Between two rounds all steps are undone, and the job waits: it
// stays Undoing, without a step to undo, and NextRoundAt is due.

// tryAgain turns back a job after a step was given up, and lets another round follow if any are left.
func (t *turn) tryAgain(step, why string) {
	rounds, tried := t.w.OnFailure.Rounds, t.job.RoundsAgain+1
	t.turnRound(makegood.JobUndone, fmt.Sprintf("step %s failed in round %d of %d: %s", step, tried, rounds, why))
	t.job.AnotherRound = tried < rounds
}

// noMoreRounds lets the job end when it is undone: by request, or because its time is over.
func (t *turn) noMoreRounds() {
	t.job.AnotherRound, t.job.RoundAsked = false, false
	t.job.NextRoundAt = time.Time{}
}

// undone ends a job that has no step left to undo, or sets when its next round begins. The job's timeout covers all
// its rounds, so none begins after it.
func (t *turn) undone() {
	if t.job.AnotherRound && t.job.Paused() {
		return // Its timeout stands still, so whether there is time for another round is known when it is resumed.
	}
	if t.job.RoundAsked && t.notUndone() != "" {
		// The request for the round came before this was known. A new round would repeat the effects under another key.
		t.noMoreRounds()
		t.finish(t.job.Desired)
		t.job.Reason = limits.Clip(t.job.Reason + t.notUndone() + "; so it was not begun again")
		return
	}
	if t.job.AnotherRound {
		if t.job.NextRoundAt.IsZero() {
			t.job.NextRoundAt = t.now.Add(t.waitForRound())
		}
		if t.job.RoundAsked || !passed(t.job.Deadline, later(t.now, t.job.NextRoundAt)) {
			return
		}
		t.noMoreRounds()
		t.job.Reason += "; its timeout leaves no time for another round"
	}
	t.finish(t.job.Desired)
	t.job.Reason = limits.Clip(t.job.Reason + t.notUndone())
}

// askedRound begins a requested round: with all the time that the workflow gives.
func (t *turn) askedRound() {
	t.newRound()
	t.renewDeadline()
	t.job.ExpectBy = time.Time{} // The announcement was of the former round.
	t.expect()
}

// newRound starts an undone job again. Attempt numbers and failure counts go on; idempotency keys
// change with the round, since the old ones were undone.
func (t *turn) newRound() {
	t.noMoreRounds()
	t.job.Round++
	t.note(job.Entry{Kind: makegood.EntryRound, Round: t.job.Round})
	t.job.RoundsAgain = 0
	t.job.Desired = makegood.JobProcessed
	t.job.ProcessState = makegood.JobProcessing
	t.noReason()
	t.job.FinishedAt = time.Time{}
	t.job.Transitions = 0
	t.job.Former = nil
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		s.Forward = job.Activity{FailureCount: s.Forward.FailureCount, Kept: s.Forward.Kept}
		s.Undo = job.Activity{FailureCount: s.Undo.FailureCount, Kept: s.Undo.Kept}
	}
}

// nextRoundDue begins the next round if its time has come and the job's has not passed; else advance ends the job.
func (t *turn) nextRoundDue() {
	if !t.going() || !passed(t.job.NextRoundAt, t.now) {
		return
	}
	if t.job.RoundAsked {
		t.askedRound()
		return
	}
	if passed(t.job.Deadline, t.now) {
		return
	}
	again := t.job.RoundsAgain + 1
	t.newRound()
	t.job.RoundsAgain = again
}

// renewDeadline grants the job its whole timeout. While the job is paused its time stands still.
func (t *turn) renewDeadline() {
	if t.timeout() == 0 {
		t.job.Deadline = time.Time{}
		return
	}
	t.job.Deadline = t.from().Add(t.timeout().Std())
}

// setKey sets CompleteBy so that it is never later than the earliest moment at which anything can be
// due, and leaves it alone if it is early enough.
func (t *turn) setKey(seen time.Time, raise bool) {
	if due := t.due(); due.IsZero() || seen.IsZero() || due.Before(seen) || raise && due.After(seen) {
		t.job.CompleteBy = due
	}
}

// touch adds the parts that belong in every save: a job without a secret gets one, and an attempt opened now was not
// opened by an earlier run of the engine.
func (t *turn) touch() {
	if len(t.job.Secret) == 0 {
		if len(t.facts.Secret) != limits.SecretBytes {
			panic(fmt.Sprintf("machine: job %s has no secret: no reply to it would ever count", t.job.ID))
		}
		t.job.Secret = t.facts.Secret
	}
	t.job.Incarnation = max(t.job.Incarnation, t.facts.Incarnation)
	t.job.Needs = max(t.job.Needs, t.needs())
	if !t.job.Paused() {
		t.notHeld()
	}
}

// notHeld forgets what held a job that is not paused any more.
func (t *turn) notHeld() {
	t.job.HeldBy, t.job.HeldReason, t.job.PausedToo = "", "", false
}
