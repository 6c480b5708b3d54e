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

// BlockerReads is how Blockers reads jobs and their definitions; the same definition is read again and again.
type BlockerReads struct {
	Look       func(ctx context.Context, id string) (makegood.Job, error)
	Definition func(ctx context.Context, hash string) (api.Definition, error)
}

// Blockers returns the jobs below a job that stand before a person, at any depth: they are in Error or paused, cannot
// be read because they are damaged, or wait for an answer. It reads the jobs that do the open steps of the job, and of
// those. A job that cannot be read for another reason is left out.
func Blockers(ctx context.Context, reads BlockerReads, job makegood.Job) []Blocker {
	s := blockerSearch{BlockerReads: reads, left: MaxBlockerReads}
	s.below(ctx, job)
	return s.found
}

type blockerSearch struct {
	BlockerReads
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
		child, err := s.Look(ctx, step.Child)
		switch why := s.standsBefore(ctx, child); {
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
func (s *blockerSearch) standsBefore(ctx context.Context, job makegood.Job) string {
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
		undo := step.Undo != nil && step.Undo.State == makegood.StepWaiting
		switch {
		case undo && !s.waitsForATime(ctx, job, step.Name, true):
			return waitsUntil("the undo of step "+step.Name, *step.Undo)
		case step.State == makegood.StepWaiting && !undo && !s.waitsForATime(ctx, job, step.Name, false):
			return waitsUntil("step "+step.Name, step.Activity)
		}
	}
	return ""
}

// waitsForATime reports whether a step that waits, or its undo, waits for a time, and for no person.
func (s *blockerSearch) waitsForATime(ctx context.Context, job makegood.Job, step string, undo bool) bool {
	definition, err := s.Definition(ctx, job.Definition)
	if err != nil {
		return false
	}
	for _, def := range definition.Workflow.Steps {
		switch {
		case def.Name != step:
		case undo:
			return def.Undo != nil && def.Undo.Agent == makegood.AgentWait
		default:
			return def.Agent == makegood.AgentWait
		}
	}
	return false
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
