package modelcheck

import (
	"encoding/json"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Settlement is what a person says of a step in round 1, or of its undo, at any time and any number of times: that they
// have dealt with it themselves. What they did is not in the ledger of the remote services.
type Settlement struct {
	Step int
	Undo bool
	// Skip: it is left out. NotDone: nothing of its Attempt stands, since they have taken it back. Else it counts as done.
	Skip, NotDone bool
	Attempt       int
}

func (is Settlement) String() string {
	what, how := stepName(is.Step), "done"
	if is.Undo {
		what = "the undo of " + what
	}
	switch {
	case is.Skip:
		how = "skipped"
	case is.NotDone:
		how = "not done"
	}
	return what + " is settled as " + how
}

// settlements lets a person settle what they may, also again, and what is settled already. To take it may close an
// attempt that nobody claimed, which costs a number each time that a Scheduler dies of it.
func (m *model) settlements(s *state, i uint8) {
	for k, is := range m.config.Settlements {
		if is.NotDone && s.inFlight(is) {
			continue // They look at the remote before they say so.
		}
		if out, _ := s.job.steps[is.Step].out(); out == nil || s.burnt(is.Step) < maxBurnt {
			m.load(s, i, [maxFold]event{{kind: evSettle, n: uint8(k)}}, true)
		}
	}
}

// inFlight reports whether what a settlement speaks of may still have its effect.
func (s *state) inFlight(is Settlement) bool {
	life := s.runs[is.Step][is.Attempt] & runLife
	return life >= runClaimed && life <= runHanded
}

// settling is the event of a settlement.
func (m *model) settling(n uint8) job.Settled {
	is := m.config.Settlements[n]
	e := job.Settled{Place: job.Place{Step: stepName(is.Step), Round: 1, Undo: is.Undo}, Done: !is.Skip && !is.NotDone, NotDone: is.NotDone, Attempt: is.Attempt}
	if e.Done {
		output := json.RawMessage(fmt.Sprint(n))
		e.Output = job.Payload{Inline: output, Bytes: len(output)}
	}
	return e
}

// settlementOf reads the name of a cause.
func (m *model) settlementOf(cause string) event {
	for k := range m.config.Settlements {
		if m.settling(uint8(k)).Cause() == cause {
			return event{kind: evSettle, n: uint8(k)}
		}
	}
	panic(fmt.Sprintf("modelcheck: cause %q", cause))
}

// fullSettled and compactSettled translate how a side was settled: the number of what was said, from 1.
func (m *model) fullSettled(settled uint8) *job.Settlement {
	if settled == 0 {
		return nil
	}
	return &job.Settlement{Round: 1, Answer: m.settling(settled - 1).Answer(), At: base}
}

func (m *model) compactSettled(i int, undo bool, is *job.Settlement) uint8 {
	if is == nil {
		return 0
	}
	for k, said := range m.config.Settlements {
		if said.Step == i && said.Undo == undo && m.settling(uint8(k)).Answer() == is.Answer {
			return uint8(k) + 1
		}
	}
	panic(fmt.Sprintf("modelcheck: the settlement %+v", is))
}

// noteSettled keeps in the ledger what a save settled, whose asker hears then that it was applied. It says what is
// wrong with that.
func (m *model) noteSettled(s *state, before record) string {
	for i := range m.w.Steps {
		was, is := before.steps[i].sides(), s.job.steps[i].sides()
		if broken := m.noteNotDone(s, i, before.round, was[0]); broken != "" {
			return broken
		}
		for side, a := range is {
			if a.settled == 0 || a.settled == was[side].settled {
				continue
			}
			said := m.config.Settlements[a.settled-1]
			ledger, bit := &s.remote[i][s.job.round], settledBits[side]
			switch {
			case *ledger&bit != 0:
				return fmt.Sprintf("%s, and was settled before", said)
			case s.works(i):
				return fmt.Sprintf("%s, and an agent works on s%d", said, i)
			}
			*ledger |= bit
		}
	}
	return ""
}

// noteNotDone keeps in the ledger that a person took back what a step had done, and says what is wrong with that.
// Nothing else makes the outcome of a step known in its round that stays where it is.
func (m *model) noteNotDone(s *state, i int, round uint8, was *activity) string {
	is := &s.job.steps[i].forward
	if round != s.job.round || !was.unknown || is.unknown || is.state == stDone {
		return ""
	}
	if s.works(i) {
		return fmt.Sprintf("s%d is settled as not done, and an agent works on s%d", i, i)
	}
	s.remote[i][round] &^= ledgerApplied
	return ""
}

// settledBits are those of the ledger for a step that was settled, and for its undo.
var settledBits = [2]uint8{ledgerSettled, ledgerUndoSettled}

// sides are a step and its undo.
func (s *step) sides() [2]*activity { return [2]*activity{&s.forward, &s.undo} }

// settled: what was settled is over as was said, for as long as its round lasts.
func (m *model) settled(s *state) string {
	if len(m.config.Settlements) == 0 {
		return ""
	}
	for i := range m.w.Steps {
		for side, a := range s.job.steps[i].sides() {
			switch was := s.remote[i][s.job.round]&settledBits[side] != 0; {
			case was && a.settled == 0:
				return fmt.Sprintf("s%d was settled, and that is lost", i)
			case !was && a.settled != 0:
				return fmt.Sprintf("s%d is settled, and nobody did that", i)
			case a.settled == 0:
				continue
			}
			is, want := m.config.Settlements[a.settled-1], stDone
			if is.Skip {
				want = stSkipped
			}
			if a.state != want {
				return fmt.Sprintf("%s, and %s", is, activities[a.state])
			}
		}
	}
	return ""
}

// judgeSettled holds what must be true of one decision about a settlement.
func judgeSettled(before, after job.Job, e job.Event) string {
	is, ok := e.(job.Settled)
	if !ok {
		return ""
	}
	if before.Round != is.Round {
		return fmt.Sprintf("a settlement of round %d is taken in round %d", is.Round, before.Round)
	}
	if before.ProcessState == makegood.JobError && after.ProcessState == makegood.JobError && failed(before) && !failed(after) {
		return "what had failed is settled, and the job does not go on"
	}
	return ""
}

// failed reports whether anything has failed in the direction of a job.
func failed(j job.Job) bool {
	for _, s := range j.Steps {
		a := s.Forward
		if j.Desired != makegood.JobProcessed {
			a = s.Undo
		}
		if a.State == job.Failed {
			return true
		}
	}
	return false
}
