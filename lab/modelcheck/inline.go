package modelcheck

import "fmt"

// The save that opens an inline attempt is its claim. The process of that save runs it at once, or has died.

// inlined begins the inline attempts that a save has opened, and ends earlier ones that it gives up. They have no item
// to close, so only their time ends them, or a death of the engine.
func (m *model) inlined(s *state, before *record) string {
	if !m.lane {
		return ""
	}
	for i := range m.w.Steps {
		was, _ := before.steps[i].out()
		is, undo := s.job.steps[i].out()
		if was != nil && was.inline && (is == nil || is.attempt != was.attempt) {
			if broken := s.endInline(uint8(i), was, before); broken != "" {
				return broken
			}
		}
		if is == nil || !is.inline || was != nil && was.attempt == is.attempt {
			continue
		}
		n, round := is.attempt, s.job.round
		ahead := !undo && m.ahead(s, i)
		if broken := m.mayStart(s, uint8(i), n, undo, round); broken != "" && !ahead {
			return broken
		}
		s.tasks[i][n] = taskSent | taskRound*round
		if undo {
			s.tasks[i][n] |= taskUndo
			s.remote[i][round] |= ledgerUndoClaimed
		}
		s.runs[i][n] |= runClaimed
		if ahead {
			s.become(uint8(i), n, runChained)
		}
		// It has no item. A closed one has the same effect: no agent can claim this attempt.
		s.items[i][m.slot(i, undo)] = item{attempt: n, closed: foundSilent, by: byAgent, ends: never}
	}
	return ""
}

// endInline ends an inline attempt that has not replied.
func (s *state) endInline(i uint8, was *activity, before *record) string {
	run := &s.runs[i][was.attempt]
	if *run&runLife == runChained {
		*run = *run&^runLife | runDead // Its process begins no attempt after its end.
	}
	if life := *run & runLife; life < runClaimed || life > runHanded {
		return ""
	}
	if was.look > 0 && before.incarnation == s.job.incarnation {
		return fmt.Sprintf("inline attempt %d of s%d is ended, and runs", was.attempt, i)
	}
	*run |= ranSilent
	return ""
}

// dieInline ends the process that has just begun inline attempts, and reports whether there were any.
func (s *state) dieInline(before *record) (any bool) {
	for i := range s.job.steps {
		was, _ := before.steps[i].out()
		is, _ := s.job.steps[i].out()
		if is != nil && is.inline && (was == nil || was.attempt != is.attempt) {
			s.become(uint8(i), is.attempt, runDead)
			any = true
		}
	}
	return any
}

// ahead reports whether the inline attempt of a step is out in a chain, behind the one of the step that it needs.
func (m *model) ahead(s *state, i int) bool {
	for k := range m.w.Steps {
		if before, undo := s.job.steps[k].out(); m.needs[i][k] && before != nil && before.inline && !undo {
			return m.w.Steps[i].Shared
		}
	}
	return false
}

// goOn is how a chain may go on when one attempt has replied: the process begins the next one, or says that it has not.
// Without a next one there is one way: the state as it is.
func (m *model) goOn(s state, i, code uint8) (ways []state, broken string) {
	for k := range m.w.Steps {
		for n, run := range s.runs[k] {
			if !m.needs[k][i] || run&runLife != runChained {
				continue
			}
			held := s
			held.become(uint8(k), uint8(n), runReplied)
			held.replies[k][n] = replyHeld
			ways = append(ways, held)
			if code != replySucceeded {
				return ways, ""
			}
			begun := s
			begun.become(uint8(k), uint8(n), runClaimed)
			return append(ways, begun), m.mayGoOn(&s, uint8(k))
		}
	}
	return []state{s}, ""
}

// mayGoOn says what forbids a step in a chain to begin behind the one before it.
func (m *model) mayGoOn(s *state, k uint8) string {
	switch {
	case s.works(int(k)):
		return fmt.Sprintf("s%d begins in a chain while an agent works on it", k)
	case s.remote[k][s.job.round]&ledgerUndoClaimed != 0:
		return fmt.Sprintf("s%d begins in a chain after its undo began", k)
	}
	return ""
}
