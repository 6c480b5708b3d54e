package machine_test

import (
	"cmp"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// changes says which transitions are pending.
func (s *story) changes() (lines []string) {
	for _, c := range s.job.After(0).Changes {
		lines = append(lines, s.change(c))
	}
	if c := s.job.Changes; !c.At.IsZero() {
		lines = append(lines, fmt.Sprintf("changes: not published %d times, again at %s", c.Tries, s.when(c.At)))
	}
	return lines
}

func (s *story) change(c makegood.Change) string {
	line := fmt.Sprintf("change %d at %s: ", c.Number, s.when(c.At))
	if c.Lost > 0 {
		return line + fmt.Sprintf("%d were lost", c.Lost)
	}
	what := "job"
	if c.Step != "" {
		what = fmt.Sprintf("%s#%d", named(c.Step, c.Undo), c.Attempt)
	}
	line += fmt.Sprintf("%s %s to %s", what, cmp.Or(c.From, "nothing"), c.To)
	if c.Paused {
		line += ", paused"
	}
	if c.Round > 1 {
		line += fmt.Sprintf(", round %d", c.Round)
	}
	if c.Outcome != "" {
		line += fmt.Sprintf(", %s %s", c.Outcome, c.ErrorKind)
	}
	if c.Reason != "" {
		line += ": " + c.Reason
	}
	return line
}

// publish says which changes are to be published.
func (s *story) publish(c job.Publish) string {
	said := ""
	if c.Confirm {
		said = ", and say so"
	}
	return fmt.Sprintf("  -> publish %d to %d%s\n", s.job.Changes.First(), c.Seq, said)
}

// park puts the job in front of a person by a raw write, as who cannot decide about it does.
func (s *story) park(a args) {
	s.job.ProcessState, s.job.Reason = makegood.JobError, a.or("reason", "damaged")
	s.job.Rev++
}
