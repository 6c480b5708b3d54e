package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// A person may edit the concurrency and the tolerance of a map while it is under way. The job with the map saves
// the new figures first, with the number of the edit. A part gets them at its birth, with whatever else is asked of
// it later, and, where it is open, by a request of their own. It keeps those with the highest number and hands them
// down to its own parts. A request that is lost is made again by the next look at the part (ChildSeen.Answer).

// ruleOf returns the rule for a request. That for an edit of a map stands in no table: the job may be on its way back.
func ruleOf(e job.Requested, s makegood.ProcessState) Rule {
	switch {
	case e.Verb != makegood.VerbEdit || e.Edit == nil:
		return RuleFor(e.Verb, s)
	case s.Finished():
		return Rule{Refuses, fmt.Sprintf("it is %s: none of its items is still to be done", s)}
	default:
		return Rule{Effect: EditsMap}
	}
}

// notToEdit says why a person cannot edit the map of a step; empty: they can.
func (t *turn) notToEdit(e job.MapEdit) string {
	i, ok := t.indexOf(e.Step)
	c, _ := domain.ChildOf(t.job.ID)
	switch {
	case t.w.Part != nil:
		return fmt.Sprintf("it does items of step %s of job %s: edit that", c.Step, c.Parent)
	case !ok:
		return fmt.Sprintf("there is no step %.80q", e.Step)
	case t.w.Steps[i].Map == nil:
		return fmt.Sprintf("step %s has no map", e.Step)
	case t.mapOver(i):
		return fmt.Sprintf("step %s has ended: none of its items is still to be done", e.Step)
	}
	if err := domain.CheckFigures(e.Concurrency, e.Tolerate); err != nil {
		return err.Error()
	}
	return ""
}

// mapOver reports whether no item of a map is still to be done, or to be undone.
func (t *turn) mapOver(i int) bool {
	s := &t.job.Steps[i]
	switch {
	case t.job.AnotherRound || s.Forward.State == job.Dispatched:
		return false
	case t.forwards():
		return through(s.Forward.State) && s.Forward.RepeatTries == 0
	default:
		return t.undoOver(i) || s.Forward.State != job.Done && !s.Forward.Unknown || !domain.CanUndo(t.w.Steps[i])
	}
}
