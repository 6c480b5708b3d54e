package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
)

// admitted takes the hint that an attempt may begin that stands before a gate.
func (t *turn) admitted(e job.Admitted) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at, out := t.out(i)
	switch a := t.activity(at); {
	case t.holding != nil:
		return Verdict{Kind: Applied} // The job pauses with its workflow: the attempt leaves its gate.
	case !out || a.Attempt != e.Attempt || !t.wanted(at) || !t.going() || a.Closing:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", e.Attempt, e.Step)}
	case !a.Queued:
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has begun", e.Attempt, e.Step)}
	case !t.admit(at):
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has no permit yet", e.Attempt, e.Step)}
	}
	return Verdict{Kind: Applied}
}
