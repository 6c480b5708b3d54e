package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

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

// waitForRound returns the time between two rounds. A requested round starts after a millisecond, not at once: its
// key must differ from the key of the event that ends the undo, because an event with a handled key is ignored.
func (t *turn) waitForRound() time.Duration {
	if t.job.RoundAsked {
		return time.Millisecond
	}
	return t.w.OnFailure.Wait.Std()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// askedRound begins a requested round: with all the time that the workflow gives.
func (t *turn) askedRound() {
	t.newRound()
	t.renewDeadline()
	t.job.ExpectBy = time.Time{} // The announcement was of the former round.
	t.expect()
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
