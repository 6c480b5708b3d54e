package machine

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// chained returns the side behind an inline attempt that its process may run next, without a save between the two.
func (t *turn) chained(at side) (next side, ok bool) {
	if at.undo || len(t.graph.followers[at.step]) != 1 {
		return next, false
	}
	next = side{t.graph.followers[at.step][0], false}
	s := t.w.Steps[next.step]
	switch {
	case !chains(t.w.Steps[at.step]) || !chains(s):
	case s.When != "" || s.Any || s.Only != "" || len(t.graph.needs[next.step]) != 1:
	case t.activity(next).State != job.NotStarted || t.job.Transitions >= maxTransitions(t.w):
	default:
		_, held := t.heldBack(next)
		return next, !held && t.lane(next) != ""
	}
	return next, false
}

// chains reports whether a step may be a part of a chain: it may run again, and its success alone ends it.
func chains(s makegood.Step) bool { return s.Inline && s.Shared && s.Repeat == nil && s.Waiting == nil }
