package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// failed takes a failure of the attempt under way, from the holder of its claim. Unlike a success, a failure of an
// earlier attempt adds no information.
func (t *turn) failed(e job.StepFailed) Verdict {
	at, verdict := t.outcomeOf(e.Reply)
	if verdict.Kind != Applied {
		return verdict
	}
	failure := e.Error
	failure.Message = limits.Clip(failure.Message)
	a := t.activity(at)
	if t.shared(at) {
		// Its task was not claimed, so it may run more than once: one run cannot speak for the others.
		failure.Applied = makegood.AppliedUnknown
		a.Alone = false // Its process has lived through it.
		keepAnswers(a, e)
		t.attemptEnded(at, job.Entry{Kind: makegood.EntryFailed, LockedBy: e.LockedBy, StartedAt: e.StartedAt, Error: &failure})
		return verdict
	}
	if e.LockedBy == "" {
		// Asked for without a name, Close would end an attempt that an agent may yet claim.
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("a failure of attempt %d of step %s that names no claim", e.Attempt, e.Step)}
	}
	found, ok := t.ask(Ask{Kind: AskClose, Step: e.Step, Attempt: e.Attempt, Undo: at.undo, LockedBy: e.LockedBy})
	if !ok {
		return verdict
	}
	switch found.Finding {
	case job.FoundReplied:
		noteStart(a, found.Claim.StartedAt)
		a.Alone = false
		keepAnswers(a, e)
		t.attemptEnded(at, job.Entry{Kind: makegood.EntryFailed, LockedBy: e.LockedBy, StartedAt: found.Claim.StartedAt, Error: &failure})
		return verdict
	case job.FoundOpen, job.FoundHeld:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is not claimed by %q", e.Attempt, e.Step, e.LockedBy)}
	default:
		// The reply comes too late, but says how the attempt ended.
		return t.learn(at, found)
	}
}
