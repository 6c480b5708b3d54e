package machine_test

import (
	"fmt"
	"strconv"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// gates are those of all agents with a limit.
type gates struct {
	// free is how many permits they can give yet, given has the attempts that have one.
	free  int
	given map[machine.Ask]bool
}

// gate gives an agent a limit, or says how many permits there are.
func (s *story) gate(a args) {
	if a.words[0] == "permits" {
		s.gates.free = s.number(a.words[1])
		return
	}
	s.holds = append(s.holds, job.Hold{Kind: makegood.HoldLimit, Name: a.words[1], Limit: job.Limit{Most: 1}})
}

// admitted is the hint of a gate about a step.
func (s *story) admitted(a args) job.Event {
	state, _ := s.job.Step(a.words[1])
	return job.Admitted{Step: a.words[1], Attempt: s.number(a.or("attempt", strconv.Itoa(state.Attempt)))}
}

// permit does what a gate does: an attempt keeps the permit that it has, and gets one if one is free.
func (s *story) permit(ask machine.Ask) job.Found {
	found := job.Found{Finding: job.FoundQueued}
	if s.gates.given == nil {
		s.gates.given = map[machine.Ask]bool{}
	}
	if !s.gates.given[ask] && s.gates.free > 0 {
		s.gates.free--
		s.gates.given[ask] = true
	}
	if s.gates.given[ask] {
		found.Finding = job.FoundAdmitted
	}
	s.answers = append(s.answers, fmt.Sprintf("  ? %s %s#%d: %s\n", ask.Kind, named(ask.Step, ask.Undo), ask.Attempt, found.Finding))
	return found
}
