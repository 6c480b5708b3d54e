package machine

import (
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// The attempt of a step of agent workflow is a job of its own, a child. It stands where the claim item of another
// attempt stands: to send the task is to put the child there if it is absent; to close the attempt is to put a job
// there that never begins, or to have the one that is there cancelled. So no child begins behind a closing, and steps
// before it are undone when it has ended, not earlier. The undo of the step is the undo of its child.

// ChildSeen is the state of a child, as the answers to questions need it. The zero value: the child is absent.
type ChildSeen struct {
	State makegood.ProcessState
	// Never: it stands where a child was to be, and never begins. Back: it is being undone for good, or is undone.
	Never, Back bool
	// Redrives is how often its failed items were done again.
	Redrives int
	// Edited is the number of the edit of a map that it has.
	Edited int
}

// ChildAct is what has to be done before the answer about a child holds.
type ChildAct string

// The acts. Each may be done twice.
const (
	NeverBegin   ChildAct = "never begin"   // put a job there that never begins, unless one is there by now: then ask again
	CancelChild  ChildAct = "cancel"        // have it cancelled
	TakeEdit     ChildAct = "take the edit" // have it take the edit of its map
	NeverRedrive ChildAct = "never redrive" // have it take no redrive of that number; if it goes on, ask again
)

// Answer answers a question about the attempt of a child that was seen so. With an act it holds once that is done: a
// child that CancelChild has ended at once has ended. A closing that finds no child and none to come finds that always.
func (c ChildSeen) Answer(ask Ask) (job.Finding, ChildAct) {
	finding, act := c.answer(ask)
	if act == "" && finding == job.FoundHeld && c.Edited < ask.Edited && !c.State.Finished() {
		act = TakeEdit
	}
	return finding, act
}

func (c ChildSeen) answer(ask Ask) (job.Finding, ChildAct) {
	if ask.Undo {
		return c.ofUndo(ask), ""
	}
	switch ended := c.State.Finished(); {
	case c.State == "" && ask.Kind == AskLook:
		return job.FoundOpen, ""
	case c.State == "" && ask.Redrives > 0:
		return job.FoundEnded, "" // It was there once.
	case c.State == "":
		return job.FoundNobody, NeverBegin
	case c.Never && ask.Kind == AskLook:
		return job.FoundClosed, ""
	case c.Never && !ended:
		return job.FoundNobody, CancelChild
	case c.Never:
		return job.FoundNobody, ""
	case ended && c.Redrives < ask.Redrives && ask.Kind == AskLook:
		return job.FoundOpen, ""
	case ended && c.Redrives < ask.Redrives && !ask.Mark:
		return job.FoundHeld, "" // A pause or a stop: the redrive is wanted later.
	case c.State == makegood.JobProcessed && c.Redrives < ask.Redrives:
		return job.FoundEnded, NeverRedrive
	case ended:
		return job.FoundEnded, ""
	case ask.Mark && !c.Back: // One that goes back, and has stopped there, stands before a person: no look tries it again.
		return job.FoundHeld, CancelChild
	default:
		return job.FoundHeld, ""
	}
}

// ofUndo answers about the undo of a child. A request for it may be on its way at any time, so no closing ends that.
func (c ChildSeen) ofUndo(ask Ask) job.Finding {
	switch {
	case c.State == "", c.Back && c.State.Finished():
		return job.FoundEnded
	case !c.Back && ask.Kind == AskLook:
		return job.FoundOpen
	default:
		return job.FoundHeld
	}
}

// EditFor returns the edit that the child of a step is to have; the zero value: none. Where more parts are open
// than the concurrency allows, since it was lowered, each has a share of it, at least 1, until it ends.
func EditFor(w makegood.Workflow, j *job.Job, step string) job.MapEdit {
	if len(j.Edits) == 0 { // As nearly always.
		return job.MapEdit{}
	}
	i := slices.IndexFunc(w.Steps, func(s makegood.Step) bool { return s.Name == step })
	if i < 0 || w.Steps[i].Map == nil {
		return job.MapEdit{}
	}
	e := j.EditOf(step)
	if w.Part != nil && e.Concurrency > 0 {
		if open := underWay(j); open > stepsAtOnce(w, j) {
			e.Concurrency = max(1, e.Concurrency/open)
		}
	}
	return e
}

// stepsAtOnce is how many steps of a part may be under way: as the definition says, or an edit over it.
func stepsAtOnce(w makegood.Workflow, j *job.Job) int {
	if n := j.EditOf("").Concurrency; n > 0 {
		return domain.StepsAtOnce(*w.Part, n)
	}
	return w.Part.Concurrency
}

// underWay is how many steps of a job are under way, forward and back.
func underWay(j *job.Job) (n int) {
	for i := range j.Steps {
		for _, a := range []*job.Activity{&j.Steps[i].Forward, &j.Steps[i].Undo} {
			switch a.State {
			case job.Dispatched, job.Backoff, job.Waiting:
				n++
			}
		}
	}
	return n
}

// passes reports whether the child of a step does the map that an edit is of.
func passes(w makegood.Workflow, j *job.Job, i int, e job.MapEdit) bool {
	return w.Steps[i].Map != nil && (e.Step == "" || e.Step == j.Steps[i].Name)
}
