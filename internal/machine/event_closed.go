package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
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
	if a := t.activity(at); e.Found.Finding == job.FoundHeld && !(a.Closing && a.Cause == e.Asked) {
		// The claim may end sooner than it says now: only the awaited answer gives its end.
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("the end of attempt %d of step %s is not waited for", e.Attempt, e.Step)}
	}
	return t.learn(at, e.Found)
}
