package modelcheck

import (
	"fmt"

	"github.com/makegood-dev/makegood"
)

// violation says what is wrong with a state; empty if nothing is.
func (m *model) violation(s *state) string {
	for _, check := range []func(*state) string{m.steps, m.index, m.ledger} {
		if broken := check(s); broken != "" {
			return broken
		}
	}
	return ""
}

// live reports whether a job is to be moved on without a person.
func (j *job) live() bool {
	return !states[j.state].Finished() && !j.is(makegood.Error) && !j.paused
}

func (j *job) forwards() bool { return states[j.desired] == makegood.Processed }

// steps: what the job says of its attempts agrees with the claims, and with who ever started.
func (m *model) steps(s *state) string {
	live := s.job.live()
	for i := range m.w.Steps {
		st := &s.job.steps[i]
		forward, undo := st.forward.state == stDispatched, st.undo.state == stDispatched
		out := uint8(0)
		switch {
		case forward && undo:
			return fmt.Sprintf("s%d goes both ways at once", i)
		case forward:
			out = st.forward.attempt
		case undo:
			out = st.undo.attempt
		}
		started := uint8(0)
		for _, run := range s.runs[i] {
			if run != 0 {
				started++
			}
		}
		switch {
		case st.slot != 0 && st.slot != out:
			return fmt.Sprintf("attempt %d of s%d is claimed, but the job knows of attempt %d", st.slot, i, out)
		case st.forward.failures+st.undo.failures > started:
			return fmt.Sprintf("s%d counts %d failures, but only %d attempts started", i, st.forward.failures+st.undo.failures, started)
		case out != 0 && st.slot == 0 && !live:
			return fmt.Sprintf("attempt %d of s%d is out and unclaimed in a job that waits", out, i)
		case out != 0 && st.slot == 0 && st.open != out:
			return fmt.Sprintf("attempt %d of s%d is out and nobody can claim it", out, i)
		case st.open != 0 && st.open != out:
			return fmt.Sprintf("attempt %d of s%d may be claimed, but is not out", st.open, i)
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
	if j.live() {
		if j.forwards() {
			due = min(due, j.deadline)
		}
		for i := range m.w.Steps {
			st := &j.steps[i]
			due = min(due, st.forward.due, st.undo.due)
			if st.slot > 0 {
				due = min(due, st.slotBy)
			}
		}
	}
	// Once the key has passed, the Supervisor looks: by how much it has is of no interest.
	if j.key > max(due, 0) {
		return fmt.Sprintf("something is due in %d ticks, and the key is %d", due, j.key)
	}
	return ""
}

// ledger: what the job says agrees with what the remote services did, by idempotency key.
func (m *model) ledger(s *state) string {
	j := &s.job
	undone := j.is(makegood.Undone) || j.is(makegood.Cancelled)
	for i, def := range m.w.Steps {
		st := &j.steps[i]
		for round := uint8(1); round <= j.round; round++ {
			ledger := s.remote[i][round]
			stands := ledger&(ledgerApplied|ledgerUndone) == ledgerApplied
			switch current := round == j.round; {
			case stands && def.CanUndo() && (undone || !current):
				return fmt.Sprintf("s%d stands in round %d, which is undone", i, round)
			case stands && current && undone && st.undo.state != stIrreversible:
				return fmt.Sprintf("s%d stands in an undone job that does not say so", i)
			case current && j.forwards() && ledger&ledgerUndone != 0:
				return fmt.Sprintf("s%d is undone, and wanted done", i)
			case current && j.forwards() && st.forward.state == stDone && !stands:
				return fmt.Sprintf("s%d is said to be done, and is not", i)
			case current && st.undo.state == stDone && ledger&ledgerUndone == 0:
				return fmt.Sprintf("s%d is said to be undone, and is not", i)
			case current && j.is(makegood.Processed) && st.forward.state != stDone && st.forward.state != stSkipped:
				return fmt.Sprintf("the job is Processed without s%d", i)
			}
		}
	}
	return ""
}

// ended reports whether a job is where it needs nobody of ours: finished and told, or in front of a
// person who was told.
func (s *state) ended() bool {
	j := &s.job
	return j.untold == 0 && (states[j.state].Finished() || j.is(makegood.Error)) || j.paused
}
