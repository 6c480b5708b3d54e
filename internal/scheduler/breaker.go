package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

// Breaker pauses agents by themselves; see holds.Keeper.
type Breaker interface {
	Saw(ctx context.Context, agent, id string, sick *job.StepError, at time.Time) (paused string, err error)
	Heal(ctx context.Context, agent string, sick bool, opened time.Time) error
	SlowDown(ctx context.Context, agent string, until time.Time, reason string) error
}

// alert is an agent to tell an operator of: its tasks are not claimed or, with a reason, the breaker has paused it.
type alert struct{ agent, paused string }

// judge judges agents by the replies, and by the silences, that a save has taken: the tokens of these were valid.
func (s *Scheduler) judge(ctx context.Context, m *moved, events []job.Event) {
	if s.config.Breaker == nil {
		return
	}
	var replies []job.Reply
	for i, e := range events {
		said, replied := e.(interface{ Said() job.Reply })
		if !replied || m.verdicts[i].Kind != machine.Applied {
			continue
		}
		replies = append(replies, said.Said())
		switch e := e.(type) {
		case job.StepFailed:
			s.ended(ctx, m, said.Said(), &e.Error)
		case job.StepSucceeded, job.StepWaiting:
			var failure *job.StepError
			for _, h := range m.entries { // Items of a batch may have failed.
				if h.Kind == makegood.EntryFailed && h.Step == said.Said().Step && h.Attempt == said.Said().Attempt {
					failure = h.Error
				}
			}
			s.ended(ctx, m, said.Said(), failure)
		}
	}
	for _, e := range m.entries {
		replied := slices.ContainsFunc(replies, func(r job.Reply) bool { return r.Step == e.Step && r.Attempt == e.Attempt })
		if e.Kind == makegood.EntrySilent && !replied {
			s.ended(ctx, m, job.Reply{Step: e.Step, Attempt: e.Attempt}, e.Error)
		}
	}
}

// ended takes the end of an attempt. An error that is final, or that its step has a route for, is no sickness of the
// agent: the data is bad.
func (s *Scheduler) ended(ctx context.Context, m *moved, of job.Reply, failure *job.StepError) {
	i := slices.IndexFunc(m.loaded.steps, func(one job.StepState) bool { return one.Name == of.Step })
	w := slices.IndexFunc(m.compiled.Workflow.Steps, func(one makegood.Step) bool { return one.Name == of.Step })
	if i < 0 || w < 0 {
		return
	}
	was := &m.loaded.steps[i]
	a, undo := &was.Forward, was.Undo.Attempt == of.Attempt
	if undo {
		a = &was.Undo
	}
	agent := m.agentOf(of.Step, undo)
	if agent == "" || a.Attempt != of.Attempt || !domain.CanTrip(agent) {
		return
	}
	h, paused := m.held.On(job.HoldName(makegood.HoldAgent, agent))
	sick := failure
	if sick != nil && !(sick.Retryable && domain.IsSick(m.compiled.Workflow.Steps[w], undo, sick.Kind)) {
		sick = nil
	}
	why, err := "", error(nil)
	switch {
	case failure != nil && failure.SlowDown && failure.Retryable && failure.RetryAfter > 0:
		err = s.config.Breaker.SlowDown(ctx, agent, m.now.Add(min(failure.RetryAfter.Std(), limits.MaxSlowDown)), failure.Message)
	case h.Tripped:
		err = s.config.Breaker.Heal(ctx, agent, sick != nil, a.Opened())
	case !slices.Contains(s.config.Breakers, agent) && !slices.Contains(s.config.Breakers, "*"):
	case !paused:
		why, err = s.config.Breaker.Saw(ctx, agent, m.loaded.id, sick, m.now)
	}
	if why != "" {
		m.alerts = append(m.alerts, alert{agent, why})
	}
	if err != nil {
		s.config.Logger.WarnContext(ctx, "an agent could not be paused, or resumed, by itself", "agent", agent, "error", err)
	}
}
