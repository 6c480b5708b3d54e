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
		if broken := m.mayStart(s, uint8(i), n, undo, round); broken != "" {
			return broken
		}
		s.tasks[i][n] = taskSent | taskRound*round
		if undo {
			s.tasks[i][n] |= taskUndo
			s.remote[i][round] |= ledgerUndoClaimed
		}
		s.runs[i][n] |= runClaimed
		// It has no item. A closed one has the same effect: no agent can claim this attempt.
		s.items[i][m.slot(i, undo)] = item{attempt: n, closed: foundSilent, by: byAgent, ends: never}
	}
	return ""
}

// endInline ends an inline attempt that has not replied.
func (s *state) endInline(i uint8, was *activity, before *record) string {
	run := &s.runs[i][was.attempt]
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
