package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// stepHeld takes the word of an agent that it has not begun an attempt because it is paused. Where that is not so (any
// more), its task is sent again.
func (t *turn) stepHeld(e job.StepHeld) Verdict {
	at, verdict := t.replyTo(e.Reply)
	switch {
	case verdict.Kind != Applied:
		return verdict
	case t.activity(at).Inline != "":
		return t.chainHeld(at, e)
	case t.shared(at):
		t.sharedHeld(at)
		return verdict
	case t.wanted(at) && !t.going():
		// It is asked to end. Its task is no longer with an agent, so it must be gone when the job goes on.
		return t.endLetGo(at, e)
	case t.activity(at).Closing || !t.wanted(at):
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is to end", e.Attempt, e.Step)}
	}
	found, known := t.ask(t.question(AskLook, at))
	switch {
	case !known:
	case found.Finding != job.FoundOpen:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was claimed, or is closed", e.Attempt, e.Step)}
	case t.holds(at, t.activity(at).Opened()):
	default:
		t.sendAgain(at)
	}
	return verdict
}

// chainHeld takes the word of a process that it has not begun an inline attempt, nor those behind it in its chain. Only
// the process that runs them knows.
func (t *turn) chainHeld(at side, e job.StepHeld) Verdict {
	if e.LockedBy != t.activity(at).Inline {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is not run by %q", e.Attempt, e.Step, e.LockedBy)}
	}
	t.takeChainBack(at)
	return Verdict{Kind: Applied}
}

// endLetGo ends an attempt of a job that stands still, after its agent has let go of the task.
func (t *turn) endLetGo(at side, e job.StepHeld) Verdict {
	found, known := t.ask(t.question(AskClose, at))
	switch {
	case !known:
		return Verdict{Kind: Applied}
	case found.Finding == job.FoundHeld && !t.lie(at, found):
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was claimed", e.Attempt, e.Step)}
	}
	return t.learn(at, found)
}

// sendAgain sends the task of an attempt again after its agent has let go. That is counted, so an agent that does so
// for ever comes to an end.
func (t *turn) sendAgain(at side) {
	if !t.transition() {
		return
	}
	a := t.activity(at)
	a.OpenedAt = a.Opened()
	leaveOut(a, t.now)
	a.At, a.Cause, a.LookAt = t.now, t.cause, time.Time{}
	a.LookAt = t.nextLook(at)
}

// sharedHeld ends an attempt without claims after its agent has let go of the task. Another delivery may have run:
// its effect is unknown, and it is not counted.
func (t *turn) sharedHeld(at side) {
	a := t.activity(at)
	from := a.Opened()
	a.Unknown = true
	a.Tries--
	switch {
	case t.conclude(at):
	case !t.wanted(at):
		t.rest(a, job.Withdrawn)
	default:
		t.rest(a, job.NotStarted)
		if t.going() && !t.holds(at, from) {
			t.openAttempt(at)
		}
	}
}
