package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
)

// childEnds looks at the child of an attempt that is said to have ended.
func (t *turn) childEnds(e job.ChildEnded) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at, ok := t.out(i)
	if !ok || !t.isChild(at) || t.job.Steps[i].Forward.Attempt != e.Attempt {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("no attempt of step %s waits for that child", e.Step)}
	}
	found, known := t.ask(t.question(AskLook, at))
	if known && found.Finding == job.FoundOpen {
		// The dispatch begins the child, or the next look does: a hint about an absent child would begin it once more.
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("the child of step %s was not begun, or not asked yet", e.Step)}
	}
	if !t.lookAtChild(at) {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("the child of step %s goes on", e.Step)}
	}
	return Verdict{Kind: Applied}
}

// lookAtChild looks at the child of an attempt that is out, and reports whether that may have changed the job: nothing
// changes while the child goes on.
func (t *turn) lookAtChild(at side) bool {
	if found, known := t.ask(t.question(AskLook, at)); known && found.Finding == job.FoundHeld {
		return false
	}
	t.look(at)
	return true
}

// redriveRefused ends a redrive that the child of a step refuses. The refusal may be late: of a child that another
// Scheduler has redriven, and that goes on or has ended since.
func (t *turn) redriveRefused(at side, why string) Verdict {
	return t.refused(at, "under way", func() { t.notRedriven(at, why) })
}

// undoRefused ends the undo of a step with a child that refuses it. A cancelled child refuses it too, and is undone.
func (t *turn) undoRefused(at side, why string) Verdict {
	return t.refused(at, "being undone", func() { t.irreversible(at, why) })
}

// refused takes the refusal of a child, by a look at the child: open takes it where the child has not begun what was
// asked. does is the state of a child that goes on all the same.
func (t *turn) refused(at side, does string, open func()) Verdict {
	found, known := t.ask(t.question(AskLook, at))
	switch {
	case !known:
	case found.Finding == job.FoundOpen:
		open()
	case found.Finding == job.FoundEnded:
		t.childEnded(at, *found.Child)
	default:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("the child of step %s is %s", t.name(at), does)}
	}
	return Verdict{Kind: Applied}
}
