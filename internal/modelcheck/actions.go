package modelcheck

import (
	"fmt"
)

// action is one atomic step of one part.
type action struct {
	kind        uint8
	actor       uint8
	ev          event
	step, n, to uint8
	// fault: nothing that a job may need in order to end.
	fault bool
}

const (
	doLoad uint8 = iota
	doDecide
	doSave
	doSend
	doRefuse
	doCrash
	doClaim
	doEffect
	doReply
	doBeat
	doTick
	doMinute
	doWipe
)

// found is a state that one action leads to.
type found struct {
	action action
	state  state
	broken string
}

// next lists what may happen in a state, in an order that is always the same.
func (m *model) next(s *state) []found {
	m.found = m.found[:0]
	for i := range s.actors {
		if i > 0 && s.actors[i] == s.actors[0] {
			continue
		}
		m.schedulers(s, uint8(i))
	}
	for i := range m.w.Steps {
		for n := 1; n < maxAttempt; n++ {
			if s.tasks[i][n] != 0 {
				m.agents(s, uint8(i), uint8(n))
			}
		}
	}
	m.world(s)
	return m.found
}

// add notes a state. All that looks the same becomes the same here.
func (m *model) add(a action, s state, broken string) {
	for i := range s.actors {
		x := &s.actors[i]
		if x.phase == decided && m.conflicts(x) {
			// Its save is bound to fail: it might as well have failed already.
			m.again(x)
		}
		if x.phase == sending {
			m.drop(&s, x)
		}
	}
	if s.actors[1].before(&s.actors[0]) {
		s.actors[0], s.actors[1] = s.actors[1], s.actors[0]
	}
	m.found = append(m.found, found{a, s, broken})
}

// again: a conflict. The event is delivered again; a request is, because its asker waits.
func (m *model) again(x *actor) {
	if x.ev.kind == evRequest {
		*x = actor{phase: received, ev: x.ev}
		return
	}
	*x = actor{}
}

// drop forgets what an actor would send that is on its way already: once sent, always there.
func (m *model) drop(s *state, x *actor) {
	kept := [maxOut]message{}
	n := 0
	for _, o := range x.out {
		if o.kind == sendTask && s.tasks[o.step][o.n]&^taskRefused != o.code || o.kind == sendNotice && s.told&(1<<o.n) == 0 {
			kept[n] = o
			n++
		}
	}
	if n == 0 {
		*x = actor{}
		return
	}
	*x = actor{phase: sending, out: kept}
}

func (m *model) schedulers(s *state, i uint8) {
	x := &s.actors[i]
	switch x.phase {
	case idle:
		m.deliveries(s, func(e event, fault bool) { m.load(s, i, e, fault) })
	case received:
		m.load(s, i, x.ev, false)
		m.crash(s, i)
	case loaded:
		next := *s
		broken := m.settleActor(&next.actors[i], x.job)
		m.add(action{kind: doDecide, actor: i, ev: x.ev}, next, broken)
		m.crash(s, i)
	case decided:
		next := *s
		broken := m.save(&next, &next.actors[i])
		m.add(action{kind: doSave, actor: i, ev: x.ev}, next, broken)
		m.crash(s, i)
	case sending:
		m.send(s, i)
		m.crash(s, i)
	}
}

// deliveries lists every event that may reach a Scheduler now.
func (m *model) deliveries(s *state, f func(e event, fault bool)) {
	f(event{kind: evSubmitted}, false)
	if s.job.key <= 0 || m.config.Slow && s.job.key <= 1 {
		f(event{kind: evDue}, false)
	}
	f(event{kind: evStaleDue}, false)
	for i := range m.w.Steps {
		for n := range uint8(maxAttempt) {
			if code := s.replies[i][n]; code != 0 {
				f(event{kind: evReply, step: uint8(i), n: n, code: code}, false)
			}
			if s.tasks[i][n]&taskRefused != 0 {
				f(event{kind: evRefused, step: uint8(i), n: n}, false)
			}
		}
	}
	for seq := uint8(1); seq < 8; seq++ {
		if s.told&(1<<seq) != 0 {
			f(event{kind: evTold, n: seq}, false)
		}
	}
	for n := range m.config.Verbs {
		if s.asked&(1<<n) == 0 {
			f(event{kind: evRequest, n: uint8(n)}, true)
		}
	}
}

// load reads the job; unless the model is slow, the decision follows at once.
func (m *model) load(s *state, i uint8, e event, fault bool) {
	next := *s
	x := &next.actors[i]
	*x = actor{phase: loaded, ev: e, job: s.job}
	if e.kind == evRequest {
		next.asked |= 1 << e.n
	}
	broken := ""
	if !m.config.Slow {
		broken = m.settleActor(x, s.job)
		if x.phase == sending {
			m.drop(&next, x)
		}
		if x.phase == idle && broken == "" && next == *s {
			return
		}
	}
	m.add(action{kind: doLoad, actor: i, ev: e, fault: fault}, next, broken)
}

// settleActor decides what an actor loaded.
func (m *model) settleActor(x *actor, j job) string {
	a := m.ask(j, x.ev)
	x.job, x.ended, x.onClaims, x.moves, x.out = a.job, a.ended, a.onClaims, a.moves, a.out
	x.phase = decided
	if !a.applied {
		*x = actor{phase: sending, out: a.out}
	}
	return a.broken
}

// save writes what an actor decided, as the contract of store.Jobs says.
func (m *model) save(s *state, x *actor) string {
	old, broken := s.job, ""
	s.job = x.job
	for i := range m.w.Steps {
		was, is := old.steps[i], &s.job.steps[i]
		is.slot, is.slotBy = was.slot, was.slotBy
		if x.ended&(1<<i) == 0 {
			continue
		}
		reply := x.ev.kind == evReply && int(x.ev.step) == i && x.ev.n == was.slot
		if was.slot == 0 || !reply && was.slotBy > 0 {
			broken = fmt.Sprintf("the save erases the claim on s%d#%d, which holds", i, was.slot)
		}
		is.slot = 0
	}
	if !x.moves {
		s.job.key = old.key
	}
	s.job.settle()
	*x = actor{phase: sending, out: x.out}
	for i := range s.actors {
		if other := &s.actors[i]; other.phase == loaded || other.phase == decided {
			other.newRev = true
		}
	}
	return broken
}

// wrote notes for the actors that a claim or a heartbeat was written, and perhaps the key.
func (s *state) wrote(key bool) {
	for i := range s.actors {
		if x := &s.actors[i]; x.phase == loaded || x.phase == decided {
			x.newClaims = true
			x.newKey = x.newKey || key
		}
	}
}

func (m *model) send(s *state, i uint8) {
	for k, o := range s.actors[i].out {
		if o.kind == 0 {
			continue
		}
		next := *s
		a := action{kind: doSend, actor: i, step: o.step, n: o.n, to: o.kind}
		if o.kind == sendNotice {
			next.told |= 1 << o.n
			m.add(a, next, "")
			continue
		}
		next.tasks[o.step][o.n] = o.code | next.tasks[o.step][o.n]&taskRefused
		m.add(a, next, "")
		if m.config.Refusals && s.tasks[o.step][o.n] == 0 {
			refused := *s
			refused.tasks[o.step][o.n] = taskRefused
			refused.actors[i].out[k] = message{}
			a.kind, a.fault = doRefuse, true
			m.add(a, refused, "")
		}
	}
}

func (m *model) crash(s *state, i uint8) {
	next := *s
	next.actors[i] = actor{}
	m.add(action{kind: doCrash, actor: i, fault: true}, next, "")
}

// world is what happens to everything at once.
func (m *model) world(s *state) {
	future := s.job.hasFuture()
	minuteLeft := s.job.key == minute
	for i := range s.actors {
		if p := s.actors[i].phase; p == loaded || p == decided {
			future = future || s.actors[i].job.hasFuture()
		}
	}
	pass := func(ticks when) state {
		next := *s
		next.job.pass(ticks)
		for i := range next.actors {
			if p := next.actors[i].phase; p == loaded || p == decided {
				next.actors[i].job.pass(ticks)
			}
		}
		return next
	}
	if future {
		m.add(action{kind: doTick}, pass(1), "")
	}
	if minuteLeft {
		m.add(action{kind: doMinute}, pass(minute), "")
	}
	if m.config.Wipe {
		m.add(action{kind: doWipe, fault: true}, s.wiped(), "")
	}
}

// wiped is the state after everything but the store and the remote went down, with all messages.
func (s *state) wiped() state {
	next := *s
	next.actors = [2]actor{}
	next.replies = [maxSteps][maxAttempt]uint8{}
	next.tasks = [maxSteps][maxAttempt]uint8{}
	next.told = 0
	for i := range next.runs {
		for n := range next.runs[i] {
			if next.runs[i][n] != 0 {
				next.runs[i][n] = runDead
			}
		}
	}
	return next
}
