package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// attemptClosed takes the answer to a closing.
func (t *turn) attemptClosed(e job.AttemptClosed) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at, ok := t.out(i)
	if !ok || t.activity(at).Attempt != e.Attempt {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has ended", e.Attempt, e.Step)}
	}
	a := t.activity(at)
	mayChange := e.Found.Finding == job.FoundHeld || t.isChild(at) && a.Repeats > 0
	if mayChange && !(a.Closing && a.Cause == e.Asked) {
		// The claim may end sooner than it says now, and the child may have ended before its redrive: only the awaited
		// answer gives the end.
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("the end of attempt %d of step %s is not waited for", e.Attempt, e.Step)}
	}
	return t.learn(at, e.Found)
}

// dispatchRefused gives up a step if its task can never be sent. The step never started, so no failure is counted.
func (t *turn) dispatchRefused(e job.DispatchRefused) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at, ok := t.out(i)
	if !ok || t.activity(at).Attempt != e.Attempt {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", e.Attempt, e.Step)}
	}
	if t.ahead(at) {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is ahead of the step before it in its chain", e.Attempt, e.Step)}
	}
	if t.isChild(at) && at.undo {
		return t.undoRefused(at, e.Reason)
	}
	if t.isChild(at) && t.activity(at).Repeats > 0 {
		return t.redriveRefused(at, e.Reason)
	}
	if !t.shared(at) && t.activity(at).Inline == "" {
		found, known := t.ask(t.question(AskClose, at))
		switch {
		case !known:
			return Verdict{Kind: Applied}
		case found.Finding == job.FoundHeld:
			return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was sent, and claimed", e.Attempt, e.Step)}
		case found.Finding != job.FoundNobody || !t.wanted(at) || !t.active():
			return t.learn(at, found)
		}
	}
	why := &job.StepError{Message: limits.Clip(t.cannot(at) + e.Reason), Kind: makegood.KindDispatch, Applied: makegood.AppliedNo}
	t.noteOf(at, job.Entry{Kind: makegood.EntryRefused, Error: why})
	if t.conclude(at) {
		return Verdict{Kind: Applied}
	}
	a := t.activity(at)
	t.rest(a, job.NotStarted)
	a.Error = why
	t.giveUp(at, a.Error.Message)
	return Verdict{Kind: Applied}
}

// cannot begins the reason of an attempt that can never be begun.
func (t *turn) cannot(at side) string {
	if t.isChild(at) {
		return "its job cannot begin: "
	}
	return "the task cannot be sent: "
}
