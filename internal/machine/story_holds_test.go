package machine_test

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// hold pauses an agent or a workflow.
func (s *story) hold(a args) {
	s.holds = append(s.without(a), job.Hold{
		Kind: makegood.HoldKind(a.words[1]), Name: a.words[2], Since: s.now, By: a.or("by", ""), Reason: a.or("reason", ""),
		Tripped: a.has("tripped"), Probe: a.or("probe", ""),
	})
}

// release resumes it: it holds nothing from now on.
func (s *story) release(a args) { s.holds = s.without(a) }

func (s *story) without(a args) job.Holds {
	var others job.Holds
	for _, h := range s.holds {
		if h.String() != a.words[1]+" "+a.words[2] {
			others = append(others, h)
		}
	}
	return others
}

// heldBy says what holds a job that is paused.
func (s *story) heldBy() string {
	if s.job.HeldBy == "" {
		return ""
	}
	text := fmt.Sprintf(" for %s since %s", s.job.HeldBy, s.when(s.job.PausedAt))
	if s.job.HeldReason != "" {
		text += " (" + s.job.HeldReason + ")"
	}
	if s.job.PausedToo {
		text += ", and by a person"
	}
	return text
}
