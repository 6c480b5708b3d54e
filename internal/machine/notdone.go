package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// settleNotDone takes a person's word that a step with an unknown outcome left no effect: its attempts had none, or
// the effect was undone by hand. The step is then not undone, and may be tried again, even as another. The job does
// not go on by that, and the step stays in its place.
func (t *turn) settleNotDone(at side, e job.Settled) Verdict {
	if why := t.notToTakeBack(at, e); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	a := t.activity(at)
	if !a.Unknown {
		return Verdict{Kind: Duplicate, Reason: nothingStands(t.name(at))}
	}
	a.Unknown, a.Silent, a.Former = false, job.Claim{}, 0
	if a.Error != nil && a.State != job.Skipped { // The steps after a skipped one may have been asked with its error.
		known := *a.Error
		known.Applied = makegood.AppliedNo
		a.Error = &known
	}
	by := clipBytes(e.By, limits.MaxCompletedByBytes)
	t.noteOf(at, job.Entry{Kind: makegood.EntrySettled, As: makegood.StepNotDone, By: by, Reason: limits.Clip(e.Reason)})
	t.job.RequestedBy = limits.Clip(e.By)
	return Verdict{Kind: Applied}
}

func nothingStands(step string) string {
	return fmt.Sprintf("it is known of step %s that no effect stands", step)
}

// notToTakeBack says why a side cannot be settled as not done now; empty: it can.
func (t *turn) notToTakeBack(at side, e job.Settled) string {
	a, name := t.activity(at), named(t.name(at), at.undo)
	if why := t.ofAnother(at, e); why != "" {
		return why
	}
	switch {
	case at.undo:
		return name + " can be settled as done or as skipped, and not as not done"
	case !t.forwards() || t.job.ProcessState.Finished():
		return fmt.Sprintf("%s: the job is %s, and only its undos can be settled", name, t.stands())
	case a.State == job.Dispatched:
		return fmt.Sprintf("attempt %d of %s is under way still; settle it as not done when that has ended", a.Attempt, name)
	case a.State == job.Done, a.State == job.Waiting:
		return fmt.Sprintf("%s is %s", name, a.State)
	default:
		return ""
	}
}
