package modelcheck

// world is what happens to everything at once.
func (m *model) world(s *state) {
	future := s.job.hasFuture()
	for i := range s.actors {
		if p := s.actors[i].phase; p == loaded || p == decided {
			future = future || s.actors[i].job.hasFuture()
		}
	}
	for i := range m.w.Steps {
		for k := range s.items[i] {
			future = future || s.items[i][k].until > 0 && s.items[i][k].until < minute
		}
	}
	if future {
		next := *s
		m.pass(&next, 1)
		m.add(action{kind: doTick}, next, "")
	}
	if s.job.key == minute {
		next := *s
		m.pass(&next, minute)
		m.add(action{kind: doMinute}, next, "")
	}
	m.weeks(s)
	if m.config.Wipe {
		m.add(action{kind: doWipe, fault: true}, m.wiped(s), "")
	}
	if s.run < m.config.Restarts {
		next := m.wiped(s)
		next.run++
		m.add(action{kind: doRestart, fault: true}, next, "")
		if m.config.Power && next.loseSoft() {
			m.add(action{kind: doPowerLoss, fault: true}, next, "")
		}
	}
}

// weeks lets so much time pass that tasks cannot be claimed any more, and claim items are deleted. No Scheduler works
// on one batch for so long.
func (m *model) weeks(s *state) {
	for i := range m.w.Steps {
		for k, it := range s.items[i] {
			if s.weeks > 0 && it.attempt != 0 && it.keeps == 0 {
				next := *s
				next.items[i][k] = item{ends: never}
				m.add(action{kind: doExpire, step: uint8(i), n: it.attempt, fault: true}, next, "")
			}
		}
	}
	if s.weeks >= m.config.Weeks || states[s.job.state].Finished() {
		return
	}
	next := *s
	next.weeks++
	for i := range next.actors {
		if next.actors[i].phase != absent {
			next.actors[i] = actor{}
		}
	}
	next.stalled = [maxSteps][maxAttempt]uint16{}
	m.pass(&next, far)
	for i := range m.w.Steps {
		if a, _ := next.job.steps[i].out(); a != nil {
			next.job.steps[i].age = min(next.job.steps[i].age+1, 2)
		}
		for n, task := range next.tasks[i] {
			if task&taskSent != 0 && ageOf(task) < 2 {
				next.tasks[i][n] += taskAge
			}
		}
		for k := range next.items[i] {
			it := &next.items[i][k]
			it.keeps -= min(it.keeps, 1)
		}
	}
	m.add(action{kind: doWeeks, fault: true}, next, "")
}

// wiped is the state after everything but the store and the remote went down, with all messages.
func (m *model) wiped(s *state) state {
	next := *s
	for i := range next.actors {
		if next.actors[i].phase != absent {
			next.actors[i] = actor{}
		}
	}
	next.replies = [maxSteps][maxAttempt]uint8{}
	next.tasks = [maxSteps][maxAttempt]uint8{}
	next.told = 0
	next.gate.told = [maxSteps]uint16{}
	next.stalled = [maxSteps][maxAttempt]uint16{}
	for i := range next.runs {
		for n, run := range next.runs[i] {
			if run&runLife != 0 {
				next.become(uint8(i), uint8(n), runDead)
			}
		}
	}
	return next
}

// loseSoft takes away the claims that were not flushed, and reports whether there were any.
func (s *state) loseSoft() (lost bool) {
	for i := range s.items {
		for k := range s.items[i] {
			if s.items[i][k].soft {
				s.items[i][k] = item{ends: never}
				lost = true
			}
		}
	}
	return lost
}
