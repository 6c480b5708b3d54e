package machine_test

import (
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// permit does what a gate does: an attempt keeps the permit that it has, and gets one if one is free.
func (s *story) permit(ask machine.Ask) job.Found {
	found := job.Found{Finding: job.FoundQueued}
	if !s.permitted[ask] && s.permits > 0 {
		s.permits--
		s.permitted[ask] = true
	}
	if s.permitted[ask] {
		found.Finding = job.FoundAdmitted
	}
	s.answers = append(s.answers, fmt.Sprintf("  ? %s %s#%d: %s\n", ask.Kind, named(ask.Step, ask.Undo), ask.Attempt, found.Finding))
	return found
}
