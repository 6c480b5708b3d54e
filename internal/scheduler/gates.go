package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// askPermit asks the gate of an agent for the permit of an attempt, which the coming save opens or has before the gate.
func (s *Scheduler) askPermit(ctx context.Context, m *moved, j job.Job, ask machine.Ask) error {
	found := job.Found{Finding: job.FoundQueued}
	if l, limited := m.held.Limit(ask.Agent); limited && s.config.Gate != nil {
		t := m.ticket(j, ask.Step, ask.Attempt, ask.Undo)
		gate, err := s.gateOf(ctx, m, j, standing{l.Key, ask.Agent, ask.Step, ask.Undo})
		if err != nil {
			return err
		}
		admitted, err := s.config.Gate.Take(ctx, gate, l, t)
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

// findGates finds the gates of the permits that are asked for, before these are asked for side by side.
func (s *Scheduler) findGates(ctx context.Context, m *moved, j job.Job, asks []machine.Ask) error {
	for _, ask := range asks {
		if l, _ := m.held.Limit(ask.Agent); ask.Kind == machine.AskPermit {
			if _, err := s.gateOf(ctx, m, j, standing{l.Key, ask.Agent, ask.Step, ask.Undo}); err != nil {
				return err
			}
		}
	}
	return nil
}

// standing are the attempts of a step of a job, or of its undo, by the key of the limit of their agent.
type standing struct {
	key, agent, step string
	undo             bool
}

// gateOf returns the gate at which attempts stand: that of their agent, or, by a limit with a key, that of the value
// which the input of the step has by it. It is a function of the two, so every process comes to the same.
func (s *Scheduler) gateOf(ctx context.Context, m *moved, j job.Job, of standing) (string, error) {
	if of.key == "" {
		return of.agent, nil
	}
	if gate := m.gates[of]; gate != "" {
		return gate, nil
	}
	value, err := s.valueOf(ctx, m, j, of)
	if err != nil {
		return "", fmt.Errorf("the gate of %s for job %s: %w", of.agent, j.ID, err)
	}
	if m.gates == nil {
		m.gates = make(map[standing]string)
	}
	m.gates[of] = of.agent + "/" + value
	return m.gates[of], nil
}

// valueOf returns the hash of the value that a key has for a step. An item of a map has the input of its task: that of
// its job is a list of items.
func (s *Scheduler) valueOf(ctx context.Context, m *moved, j job.Job, of standing) (string, error) {
	key, known := s.keys.Load(of.key)
	if !known {
		compiled, err := workflowfile.CompileKey(of.key)
		if err != nil {
			return "", err
		}
		key, _ = s.keys.LoadOrStore(of.key, compiled)
	}
	input, err := m.values.get(ctx, j.ID, j.InputOf(of.step, of.undo))
	if err == nil && m.compiled.Workflow.Part != nil {
		var task workflowfile.TaskInput
		task, err = m.values.input(ctx, j, machine.Want{Step: of.step})
		input = task.Value
	}
	if err != nil {
		return "", err
	}
	if err := s.turns.acquire(ctx); err != nil {
		return "", err
	}
	defer s.turns.release()
	return key.(*workflowfile.Key).Of(ctx, input)
}

// ticket returns the ticket of an attempt of a job, by which it asks for a permit.
func (m *moved) ticket(j job.Job, step string, attempt int, undo bool) job.Ticket {
	t := job.Ticket{
		Job: j.ID, Birth: j.Birth, Step: step, Attempt: attempt, Undo: undo, Priority: j.Priority, Tenant: j.Tenant,
		Since: m.now, Rev: m.loaded.rev,
	}
	was := job.Job{Birth: j.Birth, Steps: m.loaded.steps}
	if machine.Stands(was, t) {
		s, _ := was.Step(step)
		a := &s.Forward
		if undo {
			a = &s.Undo
		}
		t.Since, t.Rev = a.Opened(), a.QueuedOver
	}
	return t
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
	gate   string
	limit  job.Limit
	ticket job.Ticket
	waited bool
}

// leftBy returns the attempts of agents with a limit that are over in a job as it is now: those that were out when it
// was loaded, those that were given a permit and not opened, and those of hints that came too late.
func (s *Scheduler) leftBy(ctx context.Context, m *moved, j job.Job, events []job.Event) (all []left) {
	if s.config.Gate == nil || len(m.held) == 0 {
		return nil
	}
	add := func(agent, step string, attempt int, undo, waited bool) {
		t := m.ticket(j, step, attempt, undo)
		t.Rev = j.Rev
		l, limited := m.held.Limit(agent)
		took := l.Most == 0 && !waited // It has no permit, but a token at most, which cools.
		if !limited || took || machine.Stands(j, t) {
			return
		}
		gate, err := s.gateOf(ctx, m, j, standing{l.Key, agent, step, undo})
		if err != nil {
			s.config.Logger.WarnContext(ctx, "a gate waits for a look", "agent", agent, "job", j.ID, "step", step, "error", err)
			return
		}
		if !slices.ContainsFunc(all, func(l left) bool { return l.gate == gate && l.ticket.Same(t) }) {
			all = append(all, left{gate, l, t, waited})
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
	for _, w := range list {
		if w.moved != nil {
			all = append(all, w.moved.left...)
			w.moved.left = nil
		}
	}
	for len(all) > 0 {
		first := all[0]
		var ended, waited []job.Ticket
		all = slices.DeleteFunc(all, func(l left) bool {
			if l.gate != first.gate {
				return false
			}
			if ended = append(ended, l.ticket); l.waited {
				waited = append(waited, l.ticket)
			}
			return true
		})
		if err := s.config.Gate.Left(ctx, first.gate, first.limit, ended, waited); err != nil {
			s.config.Logger.WarnContext(ctx, "the next at a gate wait for a look", "gate", first.gate, "error", err)
		}
	}
}
