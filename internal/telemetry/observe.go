package telemetry

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Outcome is how an attempt ended, or a wait.
type Outcome string

// The outcomes. The attempt outcome waiting says that another party will complete the step.
const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	Silent      Outcome = "silent"
	Waiting     Outcome = "waiting"
	Withdrawn   Outcome = "withdrawn"
	Interrupted Outcome = "interrupted"
	Refused     Outcome = "refused"
	// Completed and TimedOut are those of waits, beside failed and withdrawn.
	Completed Outcome = "completed"
	TimedOut  Outcome = "timeout"
)

// seen is what one event has brought about that a trace or a metric tells of.
type seen struct {
	attempts []attempt
	waits    []wait
	steps    []step
	// born, stopped and finished say it of the job; round is the one that begins, turned that it is to be undone.
	born, stopped, finished, turned bool
	round                           int
	// request is the requested verb, settled the step that a person has dealt with.
	request makegood.Verb
	settled []job.Entry
}

// side is a step in a direction, and its agent.
type side struct {
	step          string
	undo          bool
	agent, action string
}

// attempt is one that has ended.
type attempt struct {
	side
	number  int
	outcome Outcome
	// kind is the kind of its error, if that has one.
	kind string
	// opened is when it was made, claimed when its agent began; zero: it never did, or this is unknown.
	opened, claimed time.Time
	resent          int
}

// wait is that of a step, and has ended.
type wait struct {
	side
	number  int
	outcome Outcome
	began   time.Time
}

// step is one that is done: it has gone forward, or its undo has.
type step struct {
	side
	began time.Time
}

// observe returns the effects of an event. It compares the job before with the job after, so the only core rule that
// it needs is the meaning of states.
func observe(h job.Happened) (s seen) {
	s.born = h.Before.ID == ""
	s.finished = h.After.ProcessState.Finished() && !h.Before.ProcessState.Finished()
	s.stopped = h.After.ProcessState == makegood.JobError && h.Before.ProcessState != makegood.JobError
	s.turned = !s.born && h.Before.Desired == makegood.JobProcessed && h.After.Desired != makegood.JobProcessed
	if !s.born && h.After.Round > h.Before.Round {
		s.round = h.After.Round
	}
	for _, e := range h.Entries {
		switch e.Kind {
		case makegood.EntryRequest:
			s.request = e.Verb
		case makegood.EntrySettled:
			s.settled = append(s.settled, e)
		}
	}
	for _, before := range h.Before.Steps {
		after, _ := h.After.Step(before.Name)
		s.compare(h, sideOf(h.Workflow, before.Name, false), before.Forward, after.Forward)
		s.compare(h, sideOf(h.Workflow, before.Name, true), before.Undo, after.Undo)
	}
	return s
}

// compare notes the changes of one side of a step.
func (s *seen) compare(h job.Happened, at side, before, after job.Activity) {
	same := after.State == before.State && after.Attempt == before.Attempt
	if before.State == job.Dispatched && !same {
		if a, told := ended(h, at, before, after); told {
			s.attempts = append(s.attempts, a)
		}
	}
	if before.State == job.Waiting && !same {
		s.waits = append(s.waits, wait{at, before.Attempt, waited(h.Event, after), before.At})
	}
	if after.State == job.Done && before.State != job.Done {
		s.steps = append(s.steps, step{at, after.StartedAt})
	}
}

// ended returns how an attempt ended. told is false for an unclaimed attempt that is not given up: it has not failed,
// and its successor is made at once.
func ended(h job.Happened, at side, before, after job.Activity) (a attempt, told bool) {
	a = attempt{side: at, number: before.Attempt, opened: before.Opened(), resent: before.Resent}
	i := slices.IndexFunc(h.Entries, func(e job.Entry) bool {
		return e.Step == at.step && e.Undo == at.undo && e.Attempt == a.number && outcomeOf(e.Kind) != ""
	})
	if i >= 0 {
		e := h.Entries[i]
		a.outcome, a.claimed = outcomeOf(e.Kind), e.StartedAt
		if e.Error != nil {
			a.kind = e.Error.Kind
		}
		return a, true
	}
	switch e := h.Event.(type) {
	case job.StepSucceeded:
		a.outcome, a.claimed = Succeeded, e.StartedAt
		return a, e.Step == at.step && e.Attempt == a.number
	case job.StepWaiting:
		a.outcome, a.claimed = Waiting, e.StartedAt
		return a, e.Step == at.step && e.Attempt == a.number
	default: // Of an attempt that another job does any event may find the end.
		a.outcome, a.claimed = Succeeded, a.opened
		return a, at.agent == makegood.AgentWorkflow && after.State == job.Done && after.Attempt == a.number
	}
}

// outcomeOf says which end of an attempt an entry of the history tells of; empty: none.
func outcomeOf(kind makegood.EntryKind) Outcome {
	switch kind {
	case makegood.EntryFailed:
		return Failed
	case makegood.EntrySilent:
		return Silent
	case makegood.EntryWithdrawn:
		return Withdrawn
	case makegood.EntryInterrupted:
		return Interrupted
	case makegood.EntryRefused:
		return Refused
	default:
		return ""
	}
}

// waited says how a wait ended.
func waited(event job.Event, after job.Activity) Outcome {
	_, answered := event.(job.StepCompleted)
	switch {
	case after.State == job.Withdrawn:
		return Withdrawn
	case after.State == job.Done && answered:
		return Completed
	case after.State == job.Done:
		return TimedOut // And what its onTimeout gives is its output.
	default:
		return Failed
	}
}

// sideOf returns a step, or its undo, with its agent. A job that was moved to another definition may have lost it.
func sideOf(w makegood.Workflow, name string, undo bool) side {
	at := side{step: name, undo: undo}
	i := slices.IndexFunc(w.Steps, func(s makegood.Step) bool { return s.Name == name })
	if i < 0 {
		return at
	}
	at.agent, at.action = w.Steps[i].Agent, w.Steps[i].Action
	if undo && domain.CanUndo(w.Steps[i]) {
		at.agent, at.action = w.Steps[i].Undo.Agent, w.Steps[i].Undo.Action
	}
	return at
}
