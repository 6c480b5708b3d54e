package protocol

import (
	"context"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
)

// A Blocker is a job that does a step of another, which waits for it, and does not go on by itself.
type Blocker struct {
	Job string `json:"job"`
	// Why is its state, and the reason.
	Why string `json:"why"`
}

// String says that a job waits for it.
func (b Blocker) String() string { return "waits for job " + b.Job + ": " + b.Why }

// MaxBlockerReads is how many jobs one call of Blockers reads at most: each read of a stack is paid for.
const MaxBlockerReads = 20

// Blockers returns the jobs below a job that stand before a person, at any depth: they are in Error or paused, cannot
// be read because they are damaged, or wait for an answer. It reads the jobs that do the open steps of the job, and of
// those. A job that cannot be read for another reason is left out.
func Blockers(ctx context.Context, look func(context.Context, string) (makegood.Job, error), job makegood.Job) []Blocker {
	s := blockerSearch{look: look, left: MaxBlockerReads}
	s.below(ctx, job)
	return s.found
}

type blockerSearch struct {
	look  func(context.Context, string) (makegood.Job, error)
	left  int
	found []Blocker
}

func (s *blockerSearch) below(ctx context.Context, job makegood.Job) {
	if job.AtEnd() {
		return
	}
	for _, step := range job.Steps {
		open := step.State == makegood.StepClaimed || step.Undo != nil && step.Undo.State == makegood.StepClaimed
		if step.Child == "" || !open {
			continue
		}
		if s.left--; s.left < 0 {
			return
		}
		child, err := s.look(ctx, step.Child)
		switch why := standsBefore(child); {
		case errors.Is(err, api.ErrDamaged):
			s.found = append(s.found, Blocker{step.Child, "it cannot be read: " + err.Error()})
		case err != nil:
		case why != "":
			s.found = append(s.found, Blocker{step.Child, why})
		default:
			s.below(ctx, child)
		}
	}
}

// standsBefore says why a job stands before a person; empty: it does not.
func standsBefore(job makegood.Job) string {
	switch {
	case job.ProcessState == makegood.JobError:
		return reasoned("Error", job.Reason)
	case job.ProcessState.Finished():
		return ""
	case job.HeldBy != "":
		return reasoned("paused, since "+job.HeldBy+" is paused", job.HeldReason)
	case job.Paused:
		return reasoned("paused", job.Reason)
	}
	for _, step := range job.Steps {
		what, a := "step "+step.Name, step.Activity
		if step.Undo != nil && step.Undo.State == makegood.StepWaiting {
			what, a = "the undo of step "+step.Name, *step.Undo
		}
		if a.State == makegood.StepWaiting {
			return waitsUntil(what, a)
		}
	}
	return ""
}

func waitsUntil(what string, a makegood.Activity) string {
	if a.CompleteBy == nil {
		return what + " waits"
	}
	return fmt.Sprintf("%s waits until %s", what, a.CompleteBy.UTC().Format("2006-01-02T15:04:05Z"))
}

func reasoned(state, reason string) string {
	if reason == "" {
		return state
	}
	return state + ": " + reason
}
