package modelcheck

import (
	"fmt"
	"math/bits"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// child is the job that does an attempt of a step of agent workflow, as a parent can see it; zero: it is not there.
// machine.ChildSeen answers looks at it, and the shipped table of verbs the requests.
type child uint16

const (
	childState    child = 7 // the bits of its state, from 1
	childBack     child = 8
	childCancel   child = 16 // it is to end Cancelled, and else Undone
	childNever    child = 32
	childAgain    child = 64  // another round follows
	childAsked    child = 128 // a person has made a request
	childFailed   child = 256 // it does a map, is done, and has failed items
	childRedriven child = 512 // times how often these were done again
)

// The acts that a stalled invocation may carry out on a child at any later time, a bit each.
const (
	stalledBirth uint16 = 1 << iota
	stalledUndo
	stalledClose
	stalledCancel // with stalledClose: the attempt is unwanted
	// The acts of the first and of the second redrive: the redrive, a close, and an unwanted close.
	stalledRedrive
	stalledRedrive2
	stalledClose1
	stalledCancel1
	stalledClose2
	stalledCancel2
)

// inState is a child in another state.
func (c child) inState(s makegood.ProcessState) child {
	return c&^(childState|childFailed) | child(stateOf(s)+1)
}

func (c child) has(bits child) bool { return c&bits == bits }

// state is empty of a child that is not there.
func (c child) state() makegood.ProcessState {
	if c&childState == 0 {
		return ""
	}
	return states[c&childState-1]
}

func (c child) seen() machine.ChildSeen {
	return machine.ChildSeen{State: c.state(), Never: c.has(childNever), Back: c.has(childBack) && !c.has(childAgain), Redrives: int(c.redrives())}
}

// live reports whether a child may have effects yet.
func (c child) live() bool { return c != 0 && !c.has(childNever) && !c.state().Finished() }

// requested applies a request to a child, by the shipped table of verbs. reversible: its workflow has undos.
func (c child) requested(verb makegood.Verb, reversible bool) (next child, granted bool) {
	back := c | childBack
	if verb == makegood.VerbCancel {
		back |= childCancel
	} else if c.state() != makegood.JobUndoing {
		back &^= childCancel
	}
	back &^= childAgain
	switch machine.RuleFor(verb, c.state()).Effect {
	case machine.TurnsRound:
		if c.state() == makegood.JobProcessed && !reversible {
			return c, false
		}
		return back.inState(makegood.JobUndoing), true
	case machine.EndsOther, machine.EndsUndone:
		return back, true
	case machine.TurnsAgain, machine.EndsAgain:
		if c.has(childCancel) {
			return c, false
		}
		return back.inState(makegood.JobUndoing) | childAgain, true
	case machine.TurnsBack:
		if !c.has(childBack) || c.has(childCancel) {
			return c, false
		}
		return (c &^ (childBack | childAgain)).inState(makegood.JobProcessing), true
	case machine.GoesOn:
		if c.has(childBack) {
			return c.inState(makegood.JobUndoing), true
		}
		return c.inState(makegood.JobProcessing), true
	case machine.Already:
		return c, true
	default:
		return c, false // Also NewRound: the core refuses it to a child.
	}
}

func (m *model) isChild(i int) bool { return m.w.Steps[i].Agent == makegood.AgentWorkflow }

// birth is the message for the dispatch of a child's attempt: n is the number of the child, code that of the attempt of
// its undo.
func (m *model) birth(j job.Job, d job.Dispatch) message {
	var i int
	if _, err := fmt.Sscanf(d.Step, "s%d", &i); err != nil {
		panic(fmt.Sprintf("the birth of step %q", d.Step))
	}
	o := message{kind: sendTask, step: uint8(i), n: small(j.Steps[i].Forward.Attempt)}
	if d.Undo {
		o.code = small(d.Attempt)
	} else {
		o.redrives = small(j.Steps[i].Forward.Repeats)
	}
	return o
}

// begin puts a child there if it is absent, has it redriven, or undone, and returns the rule that forbids that now.
// refused: it can never be.
func (m *model) begin(s *state, i, n, redrives uint8, undo bool) (refused bool, broken string) {
	c := &s.children[i][n]
	if !undo && redrives > 0 {
		next, granted := c.redriven(redrives, false)
		*c = next
		return !granted, ""
	}
	if !undo {
		if c.has(childNever) {
			return false, "" // The look behind it finds that.
		}
		if *c == 0 {
			*c = c.inState(makegood.JobProcessing)
			broken = m.mayBegin(s, i, n)
		}
		return false, broken
	}
	if *c == 0 {
		return false, ""
	}
	next, granted := c.requested(makegood.VerbUndo, !m.config.OneWay)
	if granted && next != *c && !c.has(childBack) {
		broken = m.mayTurn(s, int(i))
	}
	*c = next
	return !granted, broken
}

// mayBegin returns the rule that forbids a child to begin now.
func (m *model) mayBegin(s *state, i, n uint8) string {
	out, undo := s.job.steps[i].out()
	if out == nil || undo || out.attempt != n {
		return fmt.Sprintf("the child %s begins, and its attempt is over", name(i, n))
	}
	for k := range m.w.Steps {
		if m.needs[i][k] && !m.throughOf(s, k) {
			return fmt.Sprintf("the child %s begins, but s%d, which it needs, is not done", name(i, n), k)
		}
	}
	return ""
}

// throughOf reports whether a step is done that another needs.
func (m *model) throughOf(s *state, k int) bool {
	if !m.isChild(k) {
		return m.through(s, uint8(k), s.job.round)
	}
	f := s.job.steps[k].forward
	c := s.children[k][f.attempt]
	if f.state == stDispatched && f.repeats > 0 {
		return true // Followers are not done again by a redrive, and go on beside it.
	}
	return f.state == stDone && (c.state() == makegood.JobProcessed || c.has(childAsked))
}

// mayTurn returns the rule that forbids the undo of a step to begin now: a step behind it that a child does, and that
// stands.
func (m *model) mayTurn(s *state, k int) string {
	for i := range m.w.Steps {
		if !m.needs[i][k] {
			continue
		}
		if !m.isChild(i) {
			ledger := s.remote[i][s.job.round]
			if domain.CanUndo(m.w.Steps[i]) && ledger&(ledgerApplied|ledgerUndone|ledgerUndoSettled) == ledgerApplied || s.works(i) {
				return fmt.Sprintf("the undo of s%d starts before s%d, which needs it, is undone", k, i)
			}
			continue
		}
		for n, c := range s.children[i] {
			if m.stands(i, c) || c.live() && !c.has(childAsked) {
				return fmt.Sprintf("the undo of s%d starts while the child %s, which needs it, is %s", k, name(uint8(i), uint8(n)), c.state())
			}
		}
	}
	return ""
}

// stands reports whether a child has effects that are to be undone.
func (m *model) stands(i int, c child) bool {
	return c.state() == makegood.JobProcessed && !c.has(childAsked) && domain.CanUndo(m.w.Steps[i]) && !m.config.OneWay
}

// findChild answers what an actor asks about a child, as the Scheduler does.
func (m *model) findChild(s *state, a ask) (f fact, broken string) {
	n := a.attempt
	if a.undo {
		n = s.job.steps[a.step].forward.attempt
	}
	c := &s.children[a.step][n]
	asked := a
	if a.kind == askCommand {
		asked.kind = askClose
	}
	finding, act := c.seen().Answer(fullAsk(asked))
	switch act {
	case machine.NeverBegin:
		*c = childNever | childBack | childCancel
		*c = c.inState(makegood.JobCancelled)
	case machine.CancelChild:
		if broken := m.mayTurn(s, int(a.step)); broken != "" && !a.undo {
			return f, broken
		}
		*c, _ = c.requested(makegood.VerbCancel, true)
		if c.has(childNever) {
			*c = c.inState(makegood.JobCancelled) // It has no step to undo.
		}
	case machine.NeverRedrive:
		*c, _ = c.redriven(a.redrives, true)
	}
	if act == machine.CancelChild {
		if finding == job.FoundHeld && c.state().Finished() {
			finding = job.FoundEnded
		}
	}
	f = fact{ask: a, finding: findingOf(finding)}
	if finding == job.FoundEnded {
		f.n = uint8(*c & childState)
		if c.has(childFailed) {
			f.n |= endFailed
		}
	}
	return f, m.misfound(s, a, *c, finding)
}

// misfound notes the children that can never begin, and returns the error of an answer.
func (m *model) misfound(s *state, a ask, c child, finding job.Finding) string {
	if a.kind == askLook || a.undo {
		return ""
	}
	run := &s.runs[a.step][a.attempt]
	switch {
	case finding == job.FoundNobody && !c.has(childNever):
		return fmt.Sprintf("the child %s is said to be nobody's, and is %s", name(a.step, a.attempt), c.state())
	case a.mark && finding == job.FoundHeld && c.live() && !c.seen().Back:
		return fmt.Sprintf("the child %s is not wanted any more, and is %s", name(a.step, a.attempt), c.state())
	case finding == job.FoundEnded && !a.mark && c.redrives() < a.redrives:
		return fmt.Sprintf("the child %s is said to have ended, and its redrive is wanted", name(a.step, a.attempt))
	case finding == job.FoundNobody:
		*run |= ranNobody
	case *run&ranNobody != 0:
		return fmt.Sprintf("the child %s was nobody's, and is %s", name(a.step, a.attempt), finding)
	}
	return ""
}

// births lets children go on, stalled invocations continue, and people make requests of children.
func (m *model) births(s *state) {
	for i := range m.w.Steps {
		if !m.isChild(i) {
			continue
		}
		for n := range s.children[i] {
			m.late(s, uint8(i), uint8(n))
			m.life(s, uint8(i), uint8(n))
		}
	}
}

// life lists the moves of a child by itself, and the requests of people. People mend a stopped child.
func (m *model) life(s *state, i, n uint8) {
	c := s.children[i][n]
	if c == 0 || c.has(childNever) {
		return
	}
	become := func(to child, fault bool) {
		next := *s
		next.children[i][n] = to
		m.add(action{kind: doChild, step: i, n: n, to: uint8(to & childState), fault: fault}, next, "")
	}
	switch c.state() {
	case makegood.JobProcessing:
		become(c.inState(makegood.JobProcessed), false)
		if m.w.Steps[i].Map != nil {
			become(c.inState(makegood.JobProcessed)|childFailed, false)
		}
		if m.config.Final {
			become(c.inState(makegood.JobUndoing)|childBack, true)
		}
		if m.config.Fails {
			become(c.inState(makegood.JobError), true)
		}
	case makegood.JobUndoing:
		switch {
		case c.has(childAgain):
			become((c &^ (childAgain | childBack)).inState(makegood.JobProcessing), false)
		case c.has(childCancel):
			become(c.inState(makegood.JobCancelled), false)
		default:
			become(c.inState(makegood.JobUndone), false)
		}
		if m.config.UndoFails {
			become(c.inState(makegood.JobError), true)
		}
	case makegood.JobError:
		mended, _ := c.requested(makegood.VerbResubmit, true)
		become(mended, false)
	}
	for k, verb := range m.config.ChildVerbs {
		next, granted := c.requested(verb, !m.config.OneWay)
		if granted && next != c && s.said&(1<<k) == 0 {
			asked := *s
			asked.said |= 1 << k
			asked.children[i][n] = next | childAsked
			m.add(action{kind: doAskChild, step: i, n: n, to: uint8(k), fault: true}, asked, "")
		}
	}
}

// late carries out the act before which an invocation stalled. It may be carried out again.
func (m *model) late(s *state, i, n uint8) {
	stalled := s.stalled[i][n]
	do := func(what uint16, f func(next *state) string) {
		if stalled&what == 0 {
			return
		}
		next := *s
		if broken := f(&next); next != *s {
			m.add(action{kind: doLate, step: i, n: n, to: uint8(bits.TrailingZeros16(what)), fault: true}, next, broken)
		}
	}
	do(stalledBirth, func(next *state) string {
		_, _ = m.begin(next, i, n, 0, false)
		return "" // That its attempt is over says another check, if it was not closed.
	})
	do(stalledUndo, func(next *state) string {
		_, broken := m.begin(next, i, n, 0, true)
		return broken
	})
	do(stalledClose, func(next *state) string {
		_, broken := m.findChild(next, ask{kind: askCommand, step: i, attempt: n, mark: stalled&stalledCancel != 0})
		return broken
	})
	for k := range uint8(2) {
		do(stalledRedrive<<k, func(next *state) string {
			_, _ = m.begin(next, i, n, k+1, false)
			return ""
		})
		do(stalledClose1<<(2*k), func(next *state) string {
			_, broken := m.findChild(next, ask{kind: askCommand, step: i, attempt: n, redrives: k + 1})
			return broken
		})
		do(stalledCancel1<<(2*k), func(next *state) string {
			_, broken := m.findChild(next, ask{kind: askCommand, step: i, attempt: n, mark: true, redrives: k + 1})
			return broken
		})
	}
}

// begins reports whether to begin a child, or its undo, may change anything.
func (m *model) begins(s *state, o message) bool {
	next := *s
	refused, _ := m.begin(&next, o.step, o.n, o.redrives, o.code != 0)
	return refused || next.children != s.children
}

// hints are the news that a child has ended, or may have: a job needs none of them.
func (m *model) hints(take func(e event, fault bool), s *state) {
	for k := range m.w.Steps {
		if out, _ := s.job.steps[k].out(); out != nil && m.isChild(k) {
			take(event{kind: evChild, step: uint8(k), n: s.job.steps[k].forward.attempt}, true)
		}
	}
}

// half lets an actor die with a job in the place of a child that was to be cancelled, and is not yet.
func (m *model) half(s *state, i uint8) {
	for _, o := range s.actors[i].out {
		if o.kind != sendClose || !m.isChild(int(o.step)) || o.code&closeUndo != 0 || s.children[o.step][o.n] != 0 {
			continue
		}
		next := *s
		next.children[o.step][o.n] = childNever.inState(makegood.JobPending)
		next.actors[i] = actor{}
		m.add(action{kind: doHalf, actor: i, step: o.step, n: o.n, fault: true}, next, "")
	}
}

// sendBirth begins a child, or has it undone. A refusal is reported at any time, or never.
func (m *model) sendBirth(s *state, i uint8, k int) {
	o := s.actors[i].out[k]
	undo := o.code != 0
	next := *s
	refused, broken := m.begin(&next, o.step, o.n, o.redrives, undo)
	next.actors[i].out[k] = message{}
	about := o.n
	if undo {
		about = o.code
	}
	if refused {
		next.tasks[o.step][about] = taskRefused
	}
	a := action{kind: doSend, actor: i, step: o.step, n: about, to: o.kind}
	m.add(a, next, broken)
	if m.config.Refusals && !undo && s.children[o.step][o.n] == 0 && s.burnt(int(o.step)) < maxBurnt {
		never := *s
		never.actors[i].out[k] = message{}
		never.tasks[o.step][about] = taskRefused
		a.kind, a.fault = doRefuse, true
		m.add(a, never, "")
	}
}

var stalledActs = []string{
	"begin", "undo", "close", "", "redrive", "redrive (2)", "close (redriven)", "close for good (redriven)", "close (redriven twice)", "close for good (redriven twice)",
}

// describeChild says what an action did to a child.
func (m *model) describeChild(a action) string {
	scheduler, attempt := fmt.Sprintf("scheduler %d", a.actor), name(a.step, a.n)
	switch a.kind {
	case doChild:
		return fmt.Sprintf("the child %s becomes %s", attempt, child(a.to).state())
	case doAskChild:
		return fmt.Sprintf("a person asks the child %s: %s", attempt, m.config.ChildVerbs[a.to])
	case doLate:
		return fmt.Sprintf("an invocation that stalled goes on with the child %s: %s", attempt, stalledActs[a.to])
	case doStall:
		return scheduler + " stalls"
	case doHalf:
		return fmt.Sprintf("%s puts a job in the place of the child %s, and crashes", scheduler, attempt)
	default:
		panic(fmt.Sprintf("modelcheck: action %d", a.kind))
	}
}

func (c child) say() string {
	text := string(c.state())
	for _, bit := range []struct {
		is   child
		says string
	}{{childBack, "back"}, {childNever, "never begins"}, {childAgain, "another round follows"}, {childAsked, "a person asked"}, {childFailed, "items failed"}} {
		if c.has(bit.is) {
			text += ", " + bit.says
		}
	}
	if n := c.redrives(); n > 0 {
		text += fmt.Sprintf(", redriven %d times", n)
	}
	return text
}
