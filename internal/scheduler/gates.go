package scheduler

import (
	"context"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// askPermit asks the gate of an agent for the permit of an attempt, which the coming save opens or has before the gate.
func (s *Scheduler) askPermit(ctx context.Context, m *moved, j job.Job, ask machine.Ask) error {
	found := job.Found{Finding: job.FoundQueued}
	if l, limited := m.held.Limit(ask.Agent); limited && s.config.Gate != nil {
		t, stored := m.ticket(j, ask.Step, ask.Attempt, ask.Undo)
		t.Rev = m.loaded.rev
		admitted, err := s.config.Gate.Take(ctx, ask.Agent, l, t, stored)
		if err != nil {
			return err
		}
		if admitted {
			found.Finding = job.FoundAdmitted
		}
	}
	m.known.mu.Lock()
	defer m.known.mu.Unlock()
	m.known.note(ask, found)
	return nil
}

// ticket returns the ticket of an attempt of a job, and whether the job had the attempt out when it was loaded.
func (m *moved) ticket(j job.Job, step string, attempt int, undo bool) (t job.Ticket, stored bool) {
	t = job.Ticket{Job: j.ID, Birth: j.Birth, Step: step, Attempt: attempt, Undo: undo, Priority: j.Priority, Tenant: j.Tenant, Since: m.now, Rev: j.Rev}
	was := job.Job{Birth: j.Birth, Steps: m.loaded.steps}
	if stored = machine.Stands(was, t); stored {
		s, _ := was.Step(step)
		t.Since = s.Forward.Opened()
		if undo {
			t.Since = s.Undo.Opened()
		}
	}
	return t, stored
}

// awaits reports whether a hint tells of a permit for an attempt that a save was to open and has not. Its process may
// have died, or be slow: a save of the job as it is makes the other fail, and the permit is free.
func (s *Scheduler) awaits(j job.Job, events []job.Event) bool {
	return s.config.Gate != nil && slices.ContainsFunc(events, func(e job.Event) bool {
		hint, is := e.(job.Admitted)
		step, has := j.Step(hint.Step)
		return is && has && step.Attempt < hint.Attempt
	})
}

// left is an attempt that is over and had a permit, or waited for one.
type left struct {
	agent  string
	ticket job.Ticket
	waited bool
}

// leftBy returns the attempts of agents with a limit that are over in a job as it is now: those that were out when it
// was loaded, those that were given a permit and not opened, and those of hints that came too late.
func (s *Scheduler) leftBy(m *moved, j job.Job, events []job.Event) (all []left) {
	if s.config.Gate == nil || len(m.held) == 0 {
		return nil
	}
	add := func(agent, step string, attempt int, undo, waited bool) {
		t, _ := m.ticket(j, step, attempt, undo)
		known := slices.ContainsFunc(all, func(l left) bool { return l.agent == agent && l.ticket.Same(t) })
		l, limited := m.held.Limit(agent)
		took := l.Most == 0 && !waited // It has no permit, but a token at most, which cools.
		if limited && !took && !known && !machine.Stands(j, t) {
			all = append(all, left{agent, t, waited})
		}
	}
	for i := range m.loaded.steps { // By index: a step is large.
		was := &m.loaded.steps[i]
		for _, a := range []*job.Activity{&was.Forward, &was.Undo} {
			if a.State == job.Dispatched {
				undo := a == &was.Undo
				add(m.agentOf(was.Name, undo), was.Name, a.Attempt, undo, a.Queued)
			}
		}
	}
	for ask := range m.known.found {
		if ask.Kind == machine.AskPermit {
			add(ask.Agent, ask.Step, ask.Attempt, ask.Undo, true)
		}
	}
	for _, e := range events { // A hint does not say whether it is of an undo.
		if hint, is := e.(job.Admitted); is {
			add(m.agentOf(hint.Step, false), hint.Step, hint.Attempt, false, false)
			add(m.agentOf(hint.Step, true), hint.Step, hint.Attempt, true, false)
		}
	}
	slices.SortFunc(all, func(a, b left) int { return strings.Compare(a.ticket.Rank(), b.ticket.Rank()) })
	return all
}

// agentOf is the agent of a step, or of its undo; empty: there is none.
func (m *moved) agentOf(step string, undo bool) string {
	for _, s := range m.compiled.Workflow.Steps {
		if s.Name == step && (!undo || domain.CanUndo(s)) {
			return machine.AgentOf(m.compiled.Workflow, step, undo)
		}
	}
	return ""
}

// leaveGates takes back what is left at gates by the jobs of a list, and lets the next attempts begin. What fails is
// found by the next look at the gate.
func (s *Scheduler) leaveGates(ctx context.Context, list []*work) {
	var all []left
	held := job.Holds(nil)
	for _, w := range list {
		if w.moved != nil && len(w.moved.left) > 0 {
			all, held = append(all, w.moved.left...), w.moved.held
			w.moved.left = nil
		}
	}
	for len(all) > 0 {
		agent := all[0].agent
		var ended, waited []job.Ticket
		for _, l := range all {
			if l.agent != agent {
				continue
			}
			if ended = append(ended, l.ticket); l.waited {
				waited = append(waited, l.ticket)
			}
		}
		all = slices.DeleteFunc(all, func(l left) bool { return l.agent == agent })
		l, limited := held.Limit(agent)
		if !limited {
			continue
		}
		if err := s.config.Gate.Left(ctx, agent, l, ended, waited); err != nil {
			s.config.Logger.WarnContext(ctx, "the next at a gate wait for a look", "agent", agent, "error", err)
		}
	}
}
