package command

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
)

// share is what an agent has of a job.
type share struct {
	attempts float64
	atWork   time.Duration
}

// splitByAgent splits what a job has cost among the agents that had attempts of it: by attempts, and the time of functions by how
// long each was at work. What a job has cost that has no attempt yet is nobody's.
func splitByAgent(job makegood.Job, w makegood.Workflow, spent makegood.Spent) map[string]makegood.Spent {
	shares := sharesOf(job, w)
	var all share
	for _, s := range shares {
		all.attempts += s.attempts
		all.atWork += s.atWork
	}
	if all.attempts == 0 {
		return map[string]makegood.Spent{"": spent}
	}
	split := make(map[string]makegood.Spent, len(shares))
	for agent, s := range shares {
		part := s.attempts / all.attempts
		time := part
		if all.atWork > 0 {
			time = float64(s.atWork) / float64(all.atWork)
		}
		split[agent] = makegood.Spent{
			WriteUnits: spent.WriteUnits * part, ReadUnits: spent.ReadUnits * part, Requests: spent.Requests * part,
			Invocations: spent.Invocations * part, GBSeconds: spent.GBSeconds * time,
		}
	}
	return split
}

// sharesOf returns what each agent has of a job. A step of a definition that is not this one is nobody's.
func sharesOf(job makegood.Job, w makegood.Workflow) map[string]share {
	steps := make(map[string]makegood.Step, len(w.Steps))
	for _, step := range w.Steps {
		steps[step.Name] = step
	}
	shares := map[string]share{}
	add := func(agent string, a makegood.Activity, attempts int) {
		if attempts <= 0 {
			return
		}
		s := shares[agent]
		s.attempts += float64(attempts)
		// Of one that waits, the time that it waited is nobody's work.
		if !domain.WaitsByItself(agent) && a.CompletedBy == nil && a.LastStartedAt != nil && a.FinishedAt != nil {
			s.atWork += max(0, a.FinishedAt.Sub(*a.LastStartedAt))
		}
		shares[agent] = s
	}
	for _, step := range job.Steps {
		of := steps[step.Name]
		add(of.Agent, step.Activity, step.Attempt)
		if step.Undo != nil && of.Undo != nil {
			add(undoAgent(of), *step.Undo, step.Undo.Attempt-step.Attempt)
		}
	}
	return shares
}

// undoAgent is whom the undo of a step is with.
func undoAgent(step makegood.Step) string {
	if step.Undo.Agent != "" {
		return step.Undo.Agent
	}
	return step.Agent
}
