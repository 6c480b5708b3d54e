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

// splitByAgent splits the cost of a job among the agents that had attempts: by attempts, and the time of functions by
// each one's time at work. The cost of a job without an attempt belongs to no agent.
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

// sharesOf returns each agent's share of a job. A step that is missing in the definition belongs to no agent.
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
		// The time of a step that waited, or that another job did, is no agent's work.
		if domain.GetsTasks(agent) && a.CompletedBy == nil && a.LastStartedAt != nil && a.FinishedAt != nil {
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

func undoAgent(step makegood.Step) string {
	if step.Undo.Agent != "" {
		return step.Undo.Agent
	}
	return step.Agent
}
