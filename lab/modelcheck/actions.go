package modelcheck

// action is one atomic step of one part.
type action struct {
	kind        uint8
	actor       uint8
	ev, second  event
	step, n, to uint8
	// fault: nothing that a job may need in order to end.
	fault bool
}

const (
	doLoad uint8 = iota
	doAsk
	doDecide
	doSave
	doSend
	doRefuse
	doClose
	doCrash
	doClaim
	doClaimFar
	doEffect
	doReply
	doHeartbeat
	doLie
	doTick
	doMinute
	doWeeks
	doExpire
	doWipe
	doRestart
	doPowerLoss
	doHand
	doSay
	doChild
	doAskChild
	doLate
	doStall
	doHalf
	doLookAtGate
	doOther
)

// found is a state that one action leads to.
type found struct {
	action action
	state  state
	broken string
}

// next lists what may happen in a state, in an order that is always the same.
func (m *model) next(s *state) []found {
	m.founds = m.founds[:0]
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
		m.lie(s, uint8(i))
	}
	m.words(s)
	m.births(s)
	m.gateMoves(s)
	m.world(s)
	return m.founds
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
	m.settle(&s)
	m.founds = append(m.founds, found{a, s, broken})
}

// conflicts asks the shipped predicate whether the save of an actor would fail now.
func (m *model) conflicts(x *actor) bool { return m.saveConflicts[flag(x.newRev)] }

// again: a conflict. What came in a message is delivered again; what did not is tried again over the job as it is
// then, as is what rests on facts that asking again would give otherwise. What was only looked at is forgotten.
func (m *model) again(x *actor) {
	next := actor{phase: received, evs: x.evs, asked: x.asked}
	n := 0
	for _, f := range x.known {
		keep := f.kind == askCommand || f.finding == foundOver ||
			m.config.Slow && (f.kind == askClose || f.kind == askOverrule)
		if keep && f.kind != askNone && !f.unsaved {
			next.known[n] = f
			n++
		}
	}
	*x = actor{}
	if n > 0 || next.evs[0].kind == evRequest {
		*x = next
	}
}

// drop forgets what an actor would send that is on its way already: once sent, always there.
func (m *model) drop(s *state, x *actor) {
	kept := [maxOut]message{}
	n := 0
	for _, o := range x.out {
		task := o.kind == sendTask && !m.isChild(int(o.step)) && s.tasks[o.step][o.n]&^taskRefused != o.code
		task = task || o.kind == sendTask && m.isChild(int(o.step)) && m.begins(s, o)
		if task || o.kind == sendNotice && s.told&(1<<o.n) == 0 || o.kind == sendClose || o.kind == sendLeft && s.gate.stays(o.step, o.n) {
			kept[n] = o
			n++
		}
	}
	if n == 0 && x.evs[0].kind == evNone {
		*x = actor{}
		return
	}
	x.out = kept
}

func (m *model) schedulers(s *state, i uint8) {
	x := &s.actors[i]
	switch x.phase {
	case idle:
		m.deliveries(s, i)
	case received:
		m.load(s, i, x.evs, false)
		m.crash(s, i)
	case loaded:
		m.proceed(s, i)
		m.crash(s, i)
	case decided:
		next := *s
		broken := m.save(&next, &next.actors[i])
		a := action{kind: doSave, actor: i, ev: x.evs[0], second: x.evs[1]}
		m.add(a, next, broken)
		if dead := next; broken == "" && dead.dieInline(&s.job) {
			a.fault = true
			m.add(a, dead, "")
		}
		m.crash(s, i)
	case sending:
		m.send(s, i)
		m.crash(s, i)
		m.stall(s, i)
		m.half(s, i)
	}
}

// deliveries lists every message that may reach a Scheduler now, by itself or together with another, and every request.
func (m *model) deliveries(s *state, i uint8) {
	var replies, all [maxSteps*maxAttempt + 1]event
	n := 0
	take := func(e event, fault bool) { m.load(s, i, [maxFold]event{e}, fault) }
	take(event{kind: evSubmitted}, false)
	if s.job.key <= 0 || m.config.Slow && s.job.key <= 1 {
		take(event{kind: evDue}, false)
		replies[n] = event{kind: evDue}
		n++
	}
	take(event{kind: evStaleDue}, false)
	if s.run > 0 {
		take(event{kind: evPoke}, false)
	}
	for k := range m.w.Steps {
		for at := range uint8(maxAttempt) {
			if code := s.replies[k][at]; code != 0 && (at >= s.job.steps[k].attempt || s.burnt(k) < maxBurnt) {
				replies[n] = event{kind: evReply, step: uint8(k), n: at, code: code}
				take(replies[n], false)
				n++
			}
			if s.tasks[k][at]&taskRefused != 0 {
				// A child's refusal follows in the same invocation.
				take(event{kind: evRefused, step: uint8(k), n: at}, !m.isChild(k))
			}
		}
	}
	for seq := uint8(1); seq < 8; seq++ {
		if s.told&(1<<seq) != 0 {
			take(event{kind: evTold, n: seq}, false)
		}
	}
	for k := range m.config.Words {
		// To take it may close an attempt that nobody claimed, which costs a number each time that a Scheduler dies of it.
		if out, _ := s.job.steps[0].out(); s.said&(1<<k) != 0 && (out == nil || s.burnt(0) < maxBurnt) {
			take(event{kind: evWord, n: uint8(k)}, false)
		}
	}
	m.hints(take, s)
	m.admissions(take, s)
	m.settlements(s, i)
	for k := range m.config.Verbs {
		if s.asked&(1<<k) == 0 {
			take(event{kind: evRequest, n: uint8(k)}, true)
		}
	}
	if !m.config.Folds {
		return
	}
	copy(all[:], replies[:n])
	for a := range n {
		for b := range n {
			if a != b {
				m.load(s, i, [maxFold]event{all[a], all[b]}, false)
			}
		}
	}
}

// maxBurnt is how many attempts of a step may be closed that nobody claimed, and late replies still be delivered and
// tasks be refused: a Scheduler that closes an attempt for such a one and crashes costs a number, every time.
const maxBurnt = 1

// burnt counts the attempts of a step that were closed before anybody claimed them.
func (s *state) burnt(i int) (n int) {
	for _, run := range s.runs[i] {
		if run&ranNobody != 0 {
			n++
		}
	}
	return n
}

// load reads the job; unless the model is slow, facts and decision follow at once.
func (m *model) load(s *state, i uint8, evs [maxFold]event, fault bool) {
	next := *s
	x := &next.actors[i]
	x.phase, x.evs, x.job, x.newRev, x.saves = loaded, evs, s.job, false, 0
	if evs[0].kind == evRequest {
		next.asked |= 1 << evs[0].n
	}
	broken := ""
	if !m.config.Slow {
		for x.phase == loaded && broken == "" {
			broken = m.step(&next, x, 0)
		}
		if x.phase == sending {
			m.drop(&next, x)
		}
		if x.phase == idle && broken == "" && next == *s {
			return
		}
	}
	m.add(action{kind: doLoad, actor: i, ev: evs[0], second: evs[1], fault: fault}, next, broken)
}

// proceed lets an actor that has loaded the job find out one thing that it must know, or decide.
func (m *model) proceed(s *state, i uint8) {
	x := &s.actors[i]
	asks := m.ask(m.question(s, x)).asks
	for k := range asks {
		if k > 0 && asks[k].kind == askNone {
			break
		}
		next := *s
		broken := m.step(&next, &next.actors[i], k)
		a := action{kind: doDecide, actor: i, ev: x.evs[0], second: x.evs[1]}
		if asks[k].kind != askNone {
			a.kind, a.step, a.n, a.to = doAsk, asks[k].step, asks[k].attempt, asks[k].kind
		}
		m.add(a, next, broken)
	}
}

func (m *model) question(s *state, x *actor) question {
	return question{job: x.job, evs: x.evs, asked: x.asked, known: x.known, run: s.run}
}

// step answers the k-th of the questions that the core asks, or takes what it decided.
func (m *model) step(s *state, x *actor, k int) string {
	a := m.ask(m.question(s, x))
	if a.broken != "" {
		return a.broken
	}
	if ask := a.asks[k]; ask.kind == askPermit {
		x.know(m.askGate(s, x, ask))
		return ""
	} else if ask.kind != askNone && ask.attempt > x.job.steps[ask.step].attempt {
		// It was opened by an earlier event of the batch, and nobody was sent its task.
		f := fact{ask: ask, finding: foundNobody, unsaved: true}
		if ask.kind == askLook {
			f.finding = foundOpen
		}
		x.know(f)
		return ""
	} else if ask.kind != askNone {
		f, again, broken := m.find(s, ask, x.job.steps[ask.step].age)
		if again {
			x.known = [maxKnown]fact{}
			*x = actor{phase: received, evs: x.evs, asked: x.asked}
			return broken
		}
		x.know(f)
		if f.finding == foundOver {
			// It is judged over the job as it is loaded after it was seen.
			m.again(x)
			if !m.config.Slow {
				x.phase, x.job, x.saves = loaded, s.job, 0
			}
		}
		return broken
	}
	if !a.applied {
		*x = actor{phase: sending, out: a.out, saves: x.saves}
		return ""
	}
	x.job, x.out, x.phase = a.job, a.out, decided
	return ""
}

// know adds a fact, in an order that does not depend on when it was found.
func (x *actor) know(f fact) {
	if x.known[maxKnown-1].kind != askNone {
		panic("modelcheck: one decision rests on too many facts")
	}
	k := maxKnown - 1
	for ; k > 0 && (x.known[k-1].kind == askNone || f.before(x.known[k-1])); k-- {
		x.known[k] = x.known[k-1]
	}
	x.known[k] = f
}

func (f fact) before(other fact) bool {
	if f.step != other.step {
		return f.step < other.step
	}
	return f.kind < other.kind
}

// save writes what an actor decided, as the contract of store.Jobs says.
func (m *model) save(s *state, x *actor) string {
	before := s.job
	s.job = x.job
	s.flush()
	m.later(s)
	*x = actor{phase: sending, out: x.out}
	for i := range s.actors {
		if other := &s.actors[i]; other.phase == loaded || other.phase == decided {
			other.newRev = true
		}
	}
	if broken := m.inlined(s, &before); broken != "" {
		return broken
	}
	return m.noteSettled(s, before)
}

// send sends the tasks; then it takes ended attempts from the gate, closes attempts, and tells people, in this order.
func (m *model) send(s *state, i uint8) {
	first := sendNotice
	for _, o := range s.actors[i].out {
		if o.kind != sendNone {
			first = min(first, o.kind)
		}
	}
	for k, o := range s.actors[i].out {
		if o.kind != first {
			continue
		}
		next := *s
		a := action{kind: doSend, actor: i, step: o.step, n: o.n, to: o.kind}
		switch o.kind {
		case sendNotice:
			next.told |= 1 << o.n
			m.add(a, next, "")
			continue
		case sendClose:
			m.closeOne(s, i, k)
			continue
		case sendLeft:
			m.leave(s, i, k)
			continue
		}
		if m.isChild(int(o.step)) {
			m.sendBirth(s, i, k)
			continue
		}
		next.tasks[o.step][o.n] = o.code | next.tasks[o.step][o.n]&taskRefused
		m.add(a, next, "")
		if m.config.Refusals && s.tasks[o.step][o.n] == 0 && s.burnt(int(o.step)) < maxBurnt {
			refused := *s
			refused.tasks[o.step][o.n] = taskRefused
			refused.actors[i].out[k] = message{}
			a.kind, a.fault = doRefuse, true
			m.add(a, refused, "")
		}
	}
}

// closeOne carries out one closing. When all are, their answers are brought to the job, in one move; what is to be told
// is told over the job as it is then.
func (m *model) closeOne(s *state, i uint8, k int) {
	next := *s
	x := &next.actors[i]
	o := x.out[k]
	f, _, broken := m.find(&next, ask{
		kind: askCommand, step: o.step, attempt: o.n, undo: o.code&closeUndo != 0, mark: o.code&closeMark != 0, redrives: o.redrives,
	}, o.code/closeAge)
	x.know(f)
	n := 0
	for ; x.evs[n].kind != evNone; n++ {
	}
	// They come in the order of the steps, whichever was answered first.
	for ; n > 0 && x.evs[n-1].step > o.step; n-- {
		x.evs[n], x.asked[n] = x.evs[n-1], x.asked[n-1]
	}
	x.evs[n], x.asked[n] = event{kind: evClosed, step: o.step, n: o.n}, o.asked
	x.out[k] = message{}
	left := false
	for _, other := range x.out {
		left = left || other.kind == sendClose
	}
	if !left {
		x.phase, x.out = received, [maxOut]message{}
	}
	m.add(action{kind: doClose, actor: i, step: o.step, n: o.n}, next, broken)
}

func (m *model) crash(s *state, i uint8) {
	next := *s
	next.actors[i] = actor{}
	m.add(action{kind: doCrash, actor: i, fault: true}, next, "")
}
