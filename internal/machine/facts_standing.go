package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The faulty ways in which a job stands still. No save of the engine leaves one; a manual edit of the store, a
// partial restore or a bug does.
const (
	nothingUnderWay = "unfinished, without an attempt under way or a wait"
	keyTooLate      = "unfinished, and its key is later than its next deadline"
)

// Standing names the faulty way in which a job stands still at now, though every step may be consistent: it should
// move on and no event would move it, or its key is so late that a sweep finds it only after a time is due. Empty: it
// stands correctly. It does not check for a missing key, which can be seen without deciding.
func Standing(w makegood.Workflow, j job.Job, now time.Time) string {
	t := newTurn(w, j.Clone(), Facts{}, "", now)
	return t.standing()
}

func (t *turn) standing() string {
	switch {
	case t.job.CompleteBy.IsZero():
		return ""
	case t.going() && !t.underWay():
		return nothingUnderWay
	case t.due().Before(t.job.CompleteBy) && !(t.job.ProcessState.Finished() && t.job.Told()):
		return keyTooLate
	default:
		return ""
	}
}

// underWay reports whether a moving job has an open attempt or a wait. Its timeout does not count: that only ends it.
func (t *turn) underWay() bool {
	if t.forwards() && t.early() || !t.job.NextRoundAt.IsZero() {
		return true
	}
	for i := range t.job.Steps {
		for _, at := range sides(i) {
			switch t.activity(at).State {
			case job.Dispatched, job.Backoff, job.Waiting:
				return true
			}
		}
	}
	return false
}

// begun reports whether any step had an attempt. An attempt that was taken back counts: its agent may have been told.
// A step that a person settled does not.
func (t *turn) begun() bool {
	return slices.ContainsFunc(t.job.Steps, func(s job.StepState) bool {
		return s.Attempt > 0 || s.Forward.State != job.NotStarted && t.job.Settled(s.Forward) == nil
	})
}

// undoBegan says why a job cannot go forward again: an undo may have had an effect or is under way. Empty: it can.
func (t *turn) undoBegan() string {
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		switch {
		case s.Forward.State == job.Dispatched:
			return "step " + s.Name + " is under way; ask again when that attempt has ended"
		case s.Forward.State != job.Done && s.Forward.Unknown && s.Forward.Former > 0:
			return "step " + s.Name + " may have been done with an input that the job had before, and would be asked with another under the same key"
		case s.Undo.State == job.Dispatched, s.Undo.State == job.Waiting:
			return "the undo of " + s.Name + " is under way"
		case s.Undo.State == job.Done:
			return "the undo of " + s.Name + " is done; redo begins again once all is undone"
		case s.Undo.Completion != nil:
			return "a person has said how the undo of " + s.Name + " went; redo begins again once all is undone"
		case s.Undo.Unknown, t.job.Settled(s.Undo) != nil:
			return "the undo of " + s.Name + " may have had an effect; redo begins again once all is undone"
		}
	}
	return ""
}

// notUndone names the steps that were done, or may have been, and cannot be undone.
func (t *turn) notUndone() string {
	var names []string
	for _, s := range t.job.Steps {
		if s.Undo.State == job.Irreversible || s.Undo.State == job.Skipped && t.job.Settled(s.Undo) != nil {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; not undone: " + strings.Join(names, ", ")
}

// allThrough reports whether all have ended that come right before a step.
func (t *turn) allThrough(i int) bool {
	return !slices.ContainsFunc(t.graph.needs[i], func(n int) bool { return !through(t.job.Steps[n].Forward.State) })
}

// soonest returns until when the workflow itself makes the job wait, and the earliest time at which the job can be
// done; zero: unknown.
func (t *turn) soonest() (waits, soonest time.Time) {
	soonest = t.job.NextRoundAt
	for i := range t.job.Steps {
		at := t.inDirection(i)
		a := t.activity(at)
		switch {
		case a.State == job.Backoff:
			soonest = later(soonest, a.At)
		case a.State == job.Waiting && agentOf(t.w.Steps[i], at.undo) == makegood.AgentWait:
			waits = later(waits, a.Wait.Deadline)
		}
	}
	return waits, later(soonest, waits)
}

// standsAt says in words what the job waits for, of its first steps that are under way.
func (t *turn) standsAt() string {
	const most = 3
	var at []string
	if next := t.job.NextRoundAt; !next.IsZero() {
		at = append(at, "the next round begins at "+clock(next))
	}
	under := 0
	for i := range t.job.Steps {
		for _, side := range sides(i) {
			says := t.sideStands(side)
			if says == "" {
				continue
			}
			if under++; under <= most {
				at = append(at, says)
			}
		}
	}
	if under > most {
		at = append(at, fmt.Sprintf("%d more steps are under way", under-most))
	}
	return strings.Join(at, "; ")
}

func (t *turn) sideStands(at side) string {
	name := "step " + t.name(at)
	if at.undo {
		name = "the undo of " + t.name(at)
	}
	switch a := t.activity(at); a.State {
	case job.Dispatched:
		if t.isChild(at) {
			return fmt.Sprintf("%s is done by job %s", name, t.childOf(at))
		}
		if a.Queued {
			return fmt.Sprintf("%s stands before the gate of agent %s, attempt %d", name, agentOf(t.w.Steps[at.step], at.undo), a.Attempt)
		}
		return fmt.Sprintf("%s is with agent %s, attempt %d", name, agentOf(t.w.Steps[at.step], at.undo), a.Attempt)
	case job.Backoff:
		return fmt.Sprintf("%s has failed %s and is tried again at %s", name, times(a.FailureCount), clock(a.At))
	case job.Waiting:
		return fmt.Sprintf("%s waits, until %s", name, clock(a.Wait.Deadline))
	default:
		return ""
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func clock(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// heldBack returns what keeps a side from being begun, or sent again.
func (t *turn) heldBack(at side) (job.Hold, bool) {
	if h, on := t.heldWorkflow(); on {
		return h, true
	}
	agent := agentOf(t.w.Steps[at.step], at.undo)
	return t.heldBy(job.HoldName(makegood.HoldAgent, agent))
}

func (t *turn) heldWorkflow() (job.Hold, bool) {
	return t.heldBy(job.HoldName(makegood.HoldWorkflow, domain.WorkflowOf(t.job.Workflow)))
}

// heldBy returns the hold of a name, if it holds this job.
func (t *turn) heldBy(name string) (job.Hold, bool) {
	return t.facts.Held.OnFor(name, t.job.ID)
}

// heldFor is what an entry says of what holds the job.
func (t *turn) heldFor(reason string) string {
	if reason == "" {
		return t.job.HeldBy
	}
	return limits.Clip(t.job.HeldBy + ": " + reason)
}

// free reports whether the job stands still for a hold that is over.
func (t *turn) free() bool {
	if t.job.HeldBy == "" || !t.job.Paused() || !t.active() {
		return false
	}
	_, on := t.heldBy(t.job.HeldBy)
	return !on
}
