package modelcheck

import (
	"fmt"

	"github.com/makegood-dev/makegood"
)

// goes judges the children of a state: a running child has an attempt that is out; a step has one running child at
// most, and an ended job none, except for children with a request of a person; an undone job has none that stands.
func (m *model) goes(s *state) string {
	undone := s.job.is(makegood.JobUndone) || s.job.is(makegood.JobCancelled)
	for i := range m.w.Steps {
		if !m.isChild(i) {
			continue
		}
		st, live := &s.job.steps[i], 0
		out, undo := st.out()
		for n, c := range s.children[i] {
			who := fmt.Sprintf("the child %s is %s", name(uint8(i), uint8(n)), c.state())
			if c.has(childAsked) {
				continue
			}
			if c.live() {
				live++
			}
			is := out != nil && (undo && st.forward.attempt == uint8(n) || !undo && out.attempt == uint8(n))
			switch {
			case c.live() && states[s.job.state].Finished():
				return who + ", and its parent has ended"
			case c.live() && !is:
				return who + ", and its attempt is over"
			case live > 1:
				return who + ", beside another of its step"
			case m.stands(i, c) && undone && st.undo.state != stIrreversible:
				return who + ", and its parent is undone"
			case m.stands(i, c) && st.undo.state == stIrreversible && st.forward.attempt == uint8(n):
				return who + ", and its parent says that it cannot be undone"
			case st.forward.attempt == uint8(n) && c.redrives() > st.forward.repeats:
				return fmt.Sprintf("%s, and was redriven %d times, which was asked for %d times", who, c.redrives(), st.forward.repeats)
			case s.runs[i][n]&ranNobody != 0 && !c.has(childNever):
				return who + ", and was nobody's"
			}
		}
		if broken := m.saidOf(s, i); broken != "" {
			return broken
		}
	}
	return ""
}

// saidOf returns the error of a parent about its child.
func (m *model) saidOf(s *state, i int) string {
	st := &s.job.steps[i]
	c := s.children[i][st.forward.attempt]
	switch {
	case c.has(childAsked) && !c.state().Finished():
		return ""
	case st.undo.state == stIrreversible && c.seen().Back:
		return fmt.Sprintf("the undo of s%d is said to be impossible, and its child is %s", i, c.state())
	case c.has(childAsked):
		return ""
	case m.w.Steps[i].Map != nil && st.forward.state == stDone && c.state() == makegood.JobProcessed && c.has(childFailed) != (st.forward.failures > 0):
		return fmt.Sprintf("s%d is said to have %d failed items, and its child is %s", i, st.forward.failures, c.say())
	case st.forward.state == stDone && st.undo.state != stDone && st.undo.state != stDispatched && c.state() != makegood.JobProcessed:
		return fmt.Sprintf("s%d is said to be done, and its child is %s", i, c.state())
	case st.undo.state == stDone && !(c.state().Finished() && c.has(childBack)):
		return fmt.Sprintf("s%d is said to be undone, and its child is %s", i, c.state())
	}
	return ""
}
