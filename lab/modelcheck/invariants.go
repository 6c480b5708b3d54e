package modelcheck

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// violation says what is wrong with a state; empty if nothing is.
func (m *model) violation(s *state) string {
	for _, check := range []func(*state) string{m.steps, m.over, m.index, m.ledger, m.settled, m.goes, m.permitted} {
		if broken := check(s); broken != "" {
			return broken
		}
	}
	return ""
}

// live reports whether a job is to be moved on without a person.
func (j *record) live() bool {
	return !states[j.state].Finished() && !j.is(makegood.JobError) && !j.paused
}

func (j *record) forwards() bool { return states[j.desired] == makegood.JobProcessed }

// steps: what the job says of its attempts agrees with who ever started.
func (m *model) steps(s *state) string {
	for i := range m.w.Steps {
		st := &s.job.steps[i]
		forward, undo := st.forward.state == stDispatched, st.undo.state == stDispatched
		started := uint8(0)
		for _, run := range s.runs[i] {
			// One that was closed as silent though nobody was seen to claim it had no item left, or a liar's.
			if run&(runLife|ranSilent) != 0 {
				started++
			}
		}
		if m.w.Steps[i].Shared || m.isChild(i) {
			started = st.attempt // By being made: it needs no claim.
		}
		switch {
		case forward && undo:
			return fmt.Sprintf("s%d goes both ways at once", i)
		case (forward || undo) && states[s.job.state].Finished():
			return fmt.Sprintf("an attempt of s%d is out in a finished job", i)
		case m.w.Steps[i].Map == nil && st.forward.failures+st.undo.failures > started:
			return fmt.Sprintf("s%d counts %d failures, but only %d attempts started", i, st.forward.failures+st.undo.failures, started)
		}
	}
	return ""
}

// over: what the job knows to be over has ended, and can never begin; nor, once its closing was answered, what is not to begin.
func (m *model) over(s *state) string {
	for i := range m.w.Steps {
		out, undo := s.job.steps[i].out()
		for n := uint8(1); n < maxAttempt; n++ {
			is := out != nil && out.attempt == n
			if run := s.runs[i][n]; !is && run&runLife >= runClaimed && run&runLife <= runHanded && run&ranSilent == 0 {
				return fmt.Sprintf("attempt %d of s%d is over, and runs", n, i)
			}
			if s.tasks[i][n]&taskSent == 0 || is && (out.closing || s.job.live() && undo != s.job.forwards()) {
				continue
			}
			if _, ok := m.claimable(s, uint8(i), n); ok && is {
				return fmt.Sprintf("attempt %d of s%d is not to begin, and may be claimed", n, i)
			} else if ok {
				return fmt.Sprintf("attempt %d of s%d is over, and may be claimed", n, i)
			}
		}
	}
	return ""
}

// index: an unfinished job has its key, never later than what is due; a finished one has none.
func (m *model) index(s *state) string {
	j := &s.job
	if states[j.state].Finished() && j.untold == 0 {
		if j.key != never {
			return "finished and told, and still in the index"
		}
		return ""
	}
	due := far
	if j.untold > 0 {
		due = minute
	}
	for i := range m.w.Steps {
		st := &j.steps[i]
		// Also of a job that stands still: what is being closed is seen to its end.
		due = min(due, st.forward.look, st.undo.look)
		if j.live() {
			due = min(due, st.forward.backoff(), st.undo.backoff())
			if st.forward.state == stWaiting {
				due = min(due, st.forward.due)
			}
		}
	}
	if j.live() && j.forwards() {
		due = min(due, j.deadline)
	}
	if j.live() {
		due = min(due, j.next)
	}
	if j.live() && (j.forwards() || j.another) {
		due = min(due, j.warn)
	}
	if j.is(makegood.JobError) {
		due = min(due, j.remind)
	}
	// Once the key has passed, the Supervisor looks: by how much it has is of no interest.
	if j.key > max(due, 0) {
		return fmt.Sprintf("something is due in %d ticks, and the key is %d", due, j.key)
	}
	return ""
}

// backoff is when the next attempt is due.
func (a *activity) backoff() when {
	if a.state != stBackoff {
		return never
	}
	return a.due
}

// forgets reports whether the job takes a step, of which no attempt is out, for one that had no effect. It is asked
// where somebody may say that nothing of a step stands.
func (m *model) forgets(a *activity) bool {
	says := slices.ContainsFunc(m.config.Settlements, func(is Settlement) bool { return is.NotDone })
	return says && !a.unknown && a.state != stDispatched && a.state != stWaiting && a.state != stDone
}

// ledger: what the job says agrees with what the remote services did, by idempotency key.
func (m *model) ledger(s *state) string {
	j := &s.job
	undone := j.is(makegood.JobUndone) || j.is(makegood.JobCancelled)
	for i, def := range m.w.Steps {
		if m.isChild(i) {
			continue // Its child stands for it: see goes.
		}
		st := &j.steps[i]
		for round := uint8(1); round <= j.round; round++ {
			ledger := s.remote[i][round]
			// Of what a person undid, or wants to stand, the ledger says nothing.
			stands := ledger&(ledgerApplied|ledgerUndone|ledgerUndoSettled) == ledgerApplied
			switch current := round == j.round; {
			case stands && domain.CanUndo(def) && (undone || !current):
				return fmt.Sprintf("s%d stands in round %d, which is undone", i, round)
			case stands && current && undone && st.undo.state != stIrreversible:
				return fmt.Sprintf("s%d stands in an undone job that does not say so", i)
			case stands && current && j.forwards() && m.forgets(&st.forward):
				return fmt.Sprintf("s%d stands, and the job knows nothing of it", i)
			case current && j.forwards() && ledger&ledgerUndone != 0:
				return fmt.Sprintf("s%d is undone, and wanted done", i)
			case current && j.forwards() && st.forward.state == stDone && ledger&(ledgerApplied|ledgerSettled) == 0:
				return fmt.Sprintf("s%d is said to be done, and is not", i)
			case current && st.undo.state == stDone && ledger&(ledgerUndone|ledgerUndoSettled) == 0:
				return fmt.Sprintf("s%d is said to be undone, and is not", i)
			case current && j.is(makegood.JobProcessed) && st.forward.state != stDone && st.forward.state != stSkipped:
				return fmt.Sprintf("the job is Processed without s%d", i)
			}
		}
	}
	return ""
}

// ended reports whether a job is where it needs nobody of ours: finished and told, or, with nothing out that nobody
// has claimed, in front of a person who was told, or paused. A redriven child is closed when the steps behind it are
// over, and may wait for a person with them. At the gate
// no attempt stands that is over.
func (s *state) ended() bool {
	j := &s.job
	for i := range j.steps {
		if a, _ := j.steps[i].out(); a != nil && a.closing && a.cause.kind != evNone {
			return false
		}
	}
	return !s.leaked() && j.untold == 0 && (states[j.state].Finished() || j.is(makegood.JobError)) || j.paused
}
