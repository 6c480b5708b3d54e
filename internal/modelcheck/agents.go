package modelcheck

import "fmt"

// agents is what the agent that got the task of an attempt may do. A zombie is one that does it late.
func (m *model) agents(s *state, i, n uint8) {
	task := s.tasks[i][n]
	if task&taskSent == 0 {
		return
	}
	undo, round := task&taskUndo != 0, task&^taskRefused/taskRound
	// Whoever worked on it: a task may come to another agent at any time.
	if m.mayClaim[s.job.steps[i].open][s.job.steps[i].slot][n] {
		m.claim(s, i, n, undo, round)
	}
	switch s.runs[i][n] {
	case runClaimed:
		m.effect(s, i, n, undo, round)
		m.failures(s, i, n, undo)
		m.beat(s, i, n)
	case runEffected:
		m.reply(s, i, n, replySucceeded, false)
		if m.config.Unknown && (!undo || m.config.UndoFails) {
			m.reply(s, i, n, replyUnknown, true)
		}
	case runRefused:
		m.reply(s, i, n, replyFinal, false)
	}
}

// claim takes the attempt, as the contract of store.Claims says.
func (m *model) claim(s *state, i, n uint8, undo bool, round uint8) {
	next := *s
	slot := &next.job.steps[i]
	slot.slot, slot.slotBy = n, m.timeout(i)
	lowers := next.job.key > slot.slotBy && next.job.key != never
	if lowers {
		next.job.key = slot.slotBy
	}
	next.job.settle()
	next.wrote(lowers)
	broken := m.mayStart(s, i, n, undo, round)
	next.runs[i][n] = runClaimed
	if undo {
		next.remote[i][round] |= ledgerUndoClaimed
	}
	m.add(action{kind: doClaim, step: i, n: n}, next, broken)
}

// mayStart says what forbids an attempt to start now.
func (m *model) mayStart(s *state, i, n uint8, undo bool, round uint8) string {
	if s.runs[i][n] != 0 {
		return fmt.Sprintf("attempt %d of s%d runs twice", n, i)
	}
	if s.job.steps[i].slot > 0 {
		return fmt.Sprintf("attempt %d of s%d starts while %d is claimed", n, i, s.job.steps[i].slot)
	}
	if !undo && s.remote[i][round]&ledgerUndoClaimed != 0 {
		return fmt.Sprintf("attempt %d of s%d goes forward after its undo began", n, i)
	}
	for k := range m.w.Steps {
		ledger := s.remote[k][round]
		switch {
		case !undo && m.needs[i][k] && (ledger&ledgerApplied == 0 || s.job.steps[k].forward.state != stDone):
			return fmt.Sprintf("s%d starts, but s%d, which it needs, is not done", i, k)
		case undo && m.needs[k][i] && m.w.Steps[k].CanUndo() && ledger&(ledgerApplied|ledgerUndone) == ledgerApplied:
			return fmt.Sprintf("the undo of s%d starts before s%d, which needs it, is undone", i, k)
		}
	}
	return ""
}

// effect is the remote service: idempotent by key, and forward it refuses a key that was undone.
func (m *model) effect(s *state, i, n uint8, undo bool, round uint8) {
	next := *s
	ledger := &next.remote[i][round]
	next.runs[i][n] = runEffected
	switch {
	case undo:
		*ledger |= ledgerUndone
	case *ledger&ledgerUndone != 0:
		next.runs[i][n] = runRefused
	default:
		*ledger |= ledgerApplied
	}
	m.add(action{kind: doEffect, step: i, n: n}, next, "")
}

// failures are the ways to fail without an effect.
func (m *model) failures(s *state, i, n uint8, undo bool) {
	if undo && !m.config.UndoFails {
		return
	}
	if m.config.Fails {
		m.reply(s, i, n, replyFailed, true)
	}
	if m.config.Final {
		m.reply(s, i, n, replyFinal, true)
	}
	if m.config.Unknown {
		m.reply(s, i, n, replyUnknown, true)
	}
}

func (m *model) reply(s *state, i, n, code uint8, fault bool) {
	next := *s
	next.runs[i][n] = runReplied
	next.replies[i][n] = code
	m.add(action{kind: doReply, step: i, n: n, to: code, fault: fault}, next, "")
}

// beat extends the claim, as the contract of store.Claims says.
func (m *model) beat(s *state, i, n uint8) {
	slot := s.job.steps[i]
	if !m.config.Beats || slot.slot != n || slot.slotBy >= m.timeout(i) {
		return
	}
	next := *s
	next.job.steps[i].slotBy = m.timeout(i)
	next.job.settle()
	next.wrote(false)
	m.add(action{kind: doBeat, step: i, n: n}, next, "")
}

func (m *model) timeout(i uint8) when { return when(m.w.Steps[i].Timeout / tick) }
