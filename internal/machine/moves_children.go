package machine

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// childEnded ends the attempt of a side as its child has ended. Of a child that was undone or cancelled no effect
// stands, but for those that its reason names.
func (t *turn) childEnded(at side, end job.ChildEnd) {
	a := t.activity(at)
	noteStart(a, a.Opened())
	switch {
	case !at.undo && end.State == "": // Expired, before its failed items were done again.
		t.notRedriven(at, t.childFailed(at, end))
	case at.undo && end.State != "" && !t.doneByHand(at.step):
		t.done(at, job.Payload{})
	case end.State == makegood.JobProcessed && end.Unfit != "":
		// The child was done, so going back it is undone.
		failure := job.StepError{Message: limits.Clip(end.Unfit), Kind: makegood.KindChild, Applied: makegood.AppliedUnknown}
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, StartedAt: a.Opened(), Error: &failure})
	case end.State == makegood.JobProcessed:
		t.done(at, end.Output)
		t.partEnded(at, end)
	case !at.undo && !t.wanted(at):
		t.noteOf(at, job.Entry{Kind: makegood.EntryWithdrawn})
		t.rest(a, job.Withdrawn)
	default:
		failure := job.StepError{Message: limits.Clip(t.childFailed(at, end)), Kind: makegood.KindChild, Applied: makegood.AppliedNo}
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, StartedAt: a.Opened(), Error: &failure})
	}
}

// irreversible ends the undo of a step with a child that cannot be undone.
func (t *turn) irreversible(at side, why string) {
	a := t.activity(at)
	a.Error = &job.StepError{Message: limits.Clip(fmt.Sprintf("its job %s cannot be undone: %s", t.childOf(at), why)), Kind: makegood.KindChild, Applied: makegood.AppliedNo}
	t.noteOf(at, job.Entry{Kind: makegood.EntryRefused, Error: a.Error})
	t.rest(a, job.Irreversible)
	a.FinishedAt = t.now
}

// doneByHand reports whether a person has done a step, and not its child.
func (t *turn) doneByHand(step int) bool {
	a := t.job.Steps[step].Forward
	return a.State == job.Done && t.job.Settled(a) != nil
}

// childFailed says how the child of a side has failed.
func (t *turn) childFailed(at side, end job.ChildEnd) string {
	id := t.childOf(at)
	switch {
	case at.undo && t.doneByHand(at.step):
		return "the step was settled as done by hand, which the undo of its job " + id + " does not undo: undo it by hand, and settle the undo"
	case end.State == "":
		return fmt.Sprintf("its job %s is not stored any more, so it cannot be undone", id)
	case strings.HasPrefix(afterStep(end.Reason), itsJob+id+domain.ChildMark):
		// The id of the child of a child says the way to it.
		return afterStep(end.Reason)
	case end.Reason == "":
		return fmt.Sprintf("%s%s is %s", itsJob, id, end.State)
	default:
		return fmt.Sprintf("%s%s is %s: %s", itsJob, id, end.State, end.Reason)
	}
}

// itsJob begins the reason of a step that failed because of its child.
const itsJob = "its job "

// afterStep is a reason without the step that it begins with.
func afterStep(reason string) string {
	_, after, _ := strings.Cut(reason, ": ")
	return after
}
