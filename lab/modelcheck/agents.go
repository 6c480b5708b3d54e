package modelcheck

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// agents is what the agent that got the task of an attempt may do. A zombie is one that does it late.
func (m *model) agents(s *state, i, n uint8) {
	task := s.tasks[i][n]
	if task&taskSent == 0 {
		return
	}
	undo, round := task&taskUndo != 0, roundOf(task)
	// Whoever worked on it: a task may come to another agent at any time.
	if item, ok := m.claimable(s, i, n); ok {
		m.claim(s, i, n, item)
	}
	switch s.runs[i][n] & runLife {
	case runClaimed:
		m.effect(s, i, n, undo, round)
		m.failures(s, i, n, undo)
		m.heartbeat(s, i, n, undo)
		if !undo {
			m.hand(s, i, n)
		}
	case runHanded:
		m.answer(s, i, n, replyWaiting, false)
	case runEffected:
		m.answer(s, i, n, replySucceeded, false)
		if m.config.Unknown && (!undo || m.config.UndoFails) {
			m.answer(s, i, n, replyUnknown, true)
		}
	case runRefused:
		m.answer(s, i, n, replyFinal, false)
	}
}

// claim takes the attempt, as the contract of store.Claims says.
func (m *model) claim(s *state, i, n uint8, item store.ClaimItem) {
	next := *s
	task := s.tasks[i][n]
	undo, round := task&taskUndo != 0, roundOf(task)
	it := &next.items[i][m.slot(int(i), undo)]
	*it = m.compactItem(int(i), item)
	it.soft = m.config.Power
	broken := m.mayStart(s, i, n, undo, round)
	next.runs[i][n] |= runClaimed
	if undo {
		next.remote[i][round] |= ledgerUndoClaimed
	}
	m.add(action{kind: doClaim, step: i, n: n}, next, broken)
	if m.config.Lies > s.lies {
		// The same, until far beyond what its step allows; and then nothing.
		it.until = far
		next.lies++
		m.add(action{kind: doClaimFar, step: i, n: n, fault: true}, next, broken)
		next.become(i, n, runDead)
		m.add(action{kind: doClaimFar, step: i, n: n, fault: true}, next, broken)
	}
}

// mayStart says what forbids an attempt to start now.
func (m *model) mayStart(s *state, i, n uint8, undo bool, round uint8) string {
	if s.runs[i][n]&runLife != 0 {
		return fmt.Sprintf("attempt %d of s%d runs twice", n, i)
	}
	if s.runs[i][n] != 0 {
		return fmt.Sprintf("attempt %d of s%d starts after it was closed", n, i)
	}
	for other, run := range s.runs[i] {
		if life := run & runLife; life >= runClaimed && life <= runHanded && run&ranSilent == 0 {
			return fmt.Sprintf("attempt %d of s%d starts while %d runs, which was not closed", n, i, other)
		}
	}
	if !undo && s.remote[i][round]&ledgerUndoClaimed != 0 {
		return fmt.Sprintf("attempt %d of s%d goes forward after its undo began", n, i)
	}
	for k := range m.w.Steps {
		ledger := s.remote[k][round]
		switch {
		case !undo && m.needs[i][k] && m.isChild(k):
			if !m.throughOf(s, k) {
				return fmt.Sprintf("s%d starts, but s%d, which it needs, is not done", i, k)
			}
		case !undo && m.needs[i][k] && !m.w.Steps[i].Any && s.works(k):
			return fmt.Sprintf("s%d starts, and an agent works on s%d, which it needs", i, k)
		case !undo && m.needs[i][k] && !m.w.Steps[i].Any && !m.through(s, uint8(k), round):
			return fmt.Sprintf("s%d starts, but s%d, which it needs, is not done", i, k)
		case undo && m.needs[k][i] && domain.CanUndo(m.w.Steps[k]) && ledger&(ledgerApplied|ledgerUndone|ledgerUndoSettled) == ledgerApplied:
			return fmt.Sprintf("the undo of s%d starts before s%d, which needs it, is undone", i, k)
		}
	}
	if undo {
		if broken := m.mayTurn(s, int(i)); broken != "" {
			return broken
		}
	}
	if !undo && m.w.Steps[i].Any && !m.anyDone(s, i, round) {
		return fmt.Sprintf("s%d starts, but none of those is done of which it needs any", i)
	}
	return ""
}

// works reports whether an agent works on a step, whose attempt was not closed.
func (s *state) works(i int) bool {
	for _, run := range s.runs[i] {
		if life := run & runLife; life >= runClaimed && life <= runHanded && run&ranSilent == 0 {
			return true
		}
	}
	return false
}

// through reports whether a step is done, was passed by or settled, as a step of which another needs all.
func (m *model) through(s *state, k, round uint8) bool {
	if s.remote[k][round]&ledgerSettled != 0 {
		return true
	}
	switch s.job.steps[k].forward.state {
	case stDone:
		return s.remote[k][round]&ledgerApplied != 0
	case stSkipped:
		return len(m.w.Steps[k].OnError) > 0
	}
	return false
}

// anyDone reports whether any of those is done that a step needs.
func (m *model) anyDone(s *state, i, round uint8) bool {
	for k := range m.w.Steps {
		if m.needs[i][k] && s.job.steps[k].forward.state == stDone && s.remote[k][round]&ledgerApplied != 0 {
			return true
		}
	}
	return false
}

// become gives an attempt another life.
func (s *state) become(i, n, life uint8) { s.runs[i][n] = s.runs[i][n]&^runLife | life }

// effect is the remote service: idempotent by key, and forward it refuses a key that was undone.
func (m *model) effect(s *state, i, n uint8, undo bool, round uint8) {
	next := *s
	ledger := &next.remote[i][round]
	next.become(i, n, runEffected)
	switch {
	case undo:
		*ledger |= ledgerUndone
	case *ledger&ledgerUndone != 0:
		next.become(i, n, runRefused)
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
		m.answer(s, i, n, replyFailed, true)
	}
	if m.config.Final {
		m.answer(s, i, n, replyFinal, true)
	}
	if m.config.Unknown {
		m.answer(s, i, n, replyUnknown, true)
	}
}

// answer is the agent's reply.
func (m *model) answer(s *state, i, n, code uint8, fault bool) {
	next := *s
	next.become(i, n, runReplied)
	next.replies[i][n] = code
	ways, broken := m.goOn(next, i, code)
	for _, way := range ways {
		m.add(action{kind: doReply, step: i, n: n, to: code, fault: fault}, way, broken)
	}
}

// heartbeat extends the claim, as the contract of store.Claims says, where that changes anything that still counts.
func (m *model) heartbeat(s *state, i, n uint8, undo bool) {
	k := m.slot(int(i), undo)
	it := s.items[i][k]
	if out, _ := s.job.steps[i].out(); !m.config.Heartbeats || out == nil || out.attempt != n || it.until >= m.timeout(int(i)) {
		return
	}
	claim := m.claimOf(int(i), n, byAgent, it.extended, it.until)
	claim.CompleteBy = base.Add(time.Duration(m.timeout(int(i))) * time.Millisecond)
	full := m.fullItem(int(i), it)
	extended, err := store.Extended(full, claim, claimUntil(ageOf(s.tasks[i][n])))
	if extended == full || err != nil && err != store.ErrWithdrawn {
		return
	}
	next := *s
	next.items[i][k] = m.compactItem(int(i), extended)
	next.items[i][k].soft = it.soft
	m.add(action{kind: doHeartbeat, step: i, n: n}, next, m.wrongHeartbeat(s, i, n, it, extended))
}

// wrongHeartbeat says what forbids a heartbeat.
func (m *model) wrongHeartbeat(s *state, i, n uint8, it item, extended store.ClaimItem) string {
	switch {
	case s.runs[i][n]&(ranNobody|ranSilent|ranReplied) != 0:
		return fmt.Sprintf("attempt %d of s%d sends a heartbeat after it was closed", n, i)
	case it.ends != never && extended.CompleteBy.After(timeOf(it.ends)):
		return fmt.Sprintf("attempt %d of s%d sends a heartbeat past the end that was set for it", n, i)
	default:
		return ""
	}
}

// lie is what an agent may write to its own items that it should not: a claim of an attempt that was not made yet.
func (m *model) lie(s *state, i uint8) {
	if s.lies >= m.config.Lies || m.isChild(int(i)) || s.job.steps[i].attempt == 0 {
		return
	}
	n := s.job.steps[i].attempt + 1
	it := s.items[i][0]
	claim := job.Claim{Attempt: int(n), LockedBy: liar, StartedAt: base, CompleteBy: base.Add(m.w.Steps[i].Timeout.Std())}
	full, err := store.Claimed(m.fullItem(int(i), it), claim, claimUntil(0))
	if err != nil {
		return
	}
	next := *s
	next.lies++
	next.items[i][0] = m.compactItem(int(i), full)
	m.add(action{kind: doLie, step: i, n: n, fault: true}, next, "")
}

func (m *model) timeout(i int) when { return when(m.w.Steps[i].Timeout / tick) }

// reply is what the agent that claimed an attempt says.
func (m *model) reply(e event) job.Event {
	r := job.Reply{
		Step: stepName(int(e.step)), Attempt: int(e.n), LockedBy: lockedBy(e.n), Token: token(int(e.step), int(e.n)),
	}
	if e.code == replyWaiting {
		return job.StepWaiting{Reply: r, Deadline: base.Add(waitFor.Std())}
	}
	if e.code == replyHeld {
		return job.StepHeld{Reply: r}
	}
	failure := job.StepError{Message: "no", Retryable: e.code != replyFinal, Applied: makegood.AppliedNo}
	failure.RetryAfter = m.w.Steps[e.step].Retry.Max
	if e.code == replyUnknown {
		failure.Applied = makegood.AppliedUnknown
	}
	if e.code == replySucceeded {
		return job.StepSucceeded{Reply: r}
	}
	return job.StepFailed{Reply: r, Error: failure}
}

// token is the one that the task of an attempt brings.
func token(step, attempt int) string {
	return machine.Token(job.Job{Secret: secret}, stepName(step), attempt)
}
