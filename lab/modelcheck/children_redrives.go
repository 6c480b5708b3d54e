package modelcheck

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// redrives is how often the failed items of a child were done again.
func (c child) redrives() uint8 { return uint8(c / childRedriven) }

// redriven asks a child for the n-th redrive, or takes that back, as the core has the verb.
func (c child) redriven(n uint8, taken bool) (next child, granted bool) {
	if machine.RuleFor(makegood.VerbRedrive, c.state()).Effect != machine.Redrives {
		return c, false
	}
	if n <= c.redrives() {
		return c, true
	}
	next = c%childRedriven | child(n)*childRedriven
	if !taken && c.has(childFailed) {
		next = next.inState(makegood.JobProcessing)
	}
	return next, true
}

// endFailed: a fact about the end of a child says that its items have failed.
const endFailed = 8

// endOf returns the end of a child, of a fact that says that it has ended; else nil.
func endOf(f fact) *job.ChildEnd {
	if findings[f.finding] != job.FoundEnded {
		return nil
	}
	end := new(job.ChildEnd)
	if f.n > 0 {
		end.State, end.Failed = states[f.n%endFailed-1], int(f.n/endFailed)
	}
	return end
}

// stall ends an actor whose invocation continues at any later time.
func (m *model) stall(s *state, i uint8) {
	if !m.config.Late {
		return
	}
	next := *s
	for _, o := range s.actors[i].out {
		if o.kind == 0 || !m.isChild(int(o.step)) {
			continue
		}
		stalled := &next.stalled[o.step][o.n]
		switch {
		case o.kind == sendTask && o.code != 0:
			*stalled |= stalledUndo
		case o.kind == sendTask && o.redrives > 0:
			*stalled |= stalledRedrive << (o.redrives - 1)
		case o.kind == sendTask:
			*stalled |= stalledBirth
		case o.code&closeUndo != 0:
		case o.redrives > 0 && o.code&closeMark != 0:
			*stalled |= stalledCancel1 << (2 * (o.redrives - 1))
		case o.redrives > 0 && o.kind == sendClose:
			*stalled |= stalledClose1 << (2 * (o.redrives - 1))
		case o.code&closeMark != 0:
			*stalled |= stalledClose | stalledCancel
		case o.kind == sendClose:
			*stalled |= stalledClose
		}
	}
	if next.stalled == s.stalled {
		return
	}
	next.actors[i] = actor{}
	m.add(action{kind: doStall, actor: i, fault: true}, next, "")
}
