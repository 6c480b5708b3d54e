package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// side is a step going forward, or its undo: either has attempts, and a plan.
type side struct {
	step int // in the order of the workflow
	undo bool
}

// sides are the two of a step.
func sides(step int) [2]side { return [2]side{{step, false}, {step, true}} }

// inDirection is the side of a step that the job is on, forwards or back.
func (t *turn) inDirection(step int) side { return side{step, !t.forwards()} }

// wanted reports whether the work under way on a side is wanted. Work of the other direction is not: it is given up,
// or not begun. Nor is an attempt of a step that was completed from outside meanwhile.
func (t *turn) wanted(at side) bool { return at.undo != t.forwards() && !t.activity(at).Held() }

func (t *turn) activity(at side) *job.Activity {
	if at.undo {
		return &t.job.Steps[at.step].Undo
	}
	return &t.job.Steps[at.step].Forward
}

func (t *turn) name(at side) string { return t.job.Steps[at.step].Name }

func (t *turn) shared(at side) bool { return t.w.Steps[at.step].Shared }

func (t *turn) plan(at side) plan { return planOf(t.w.Steps[at.step], at.undo) }

// question returns a question about the latest attempt of a side.
func (t *turn) question(kind AskKind, at side) Ask {
	return Ask{Kind: kind, Step: t.name(at), Attempt: t.activity(at).Attempt, Undo: at.undo}
}

// out returns the side of a step that has an attempt with its agent.
func (t *turn) out(step int) (at side, ok bool) {
	_, undo, ok := dispatched(t.job.Steps[step])
	return side{step, undo}, ok
}

// plan is what the workflow says of a step, or of its undo.
type plan struct {
	startBy, timeout, heartbeat makegood.Duration
	retry                       makegood.Retry
	shared                      bool
	waiting                     *makegood.WaitRules
}

// silence is how long an attempt may be silent.
func (p plan) silence() time.Duration {
	if p.heartbeat > 0 {
		return p.heartbeat.Std()
	}
	return p.timeout.Std()
}

func planOf(s makegood.Step, undo bool) plan {
	if undo {
		return plan{s.Undo.StartBy, s.Undo.Timeout, s.Undo.Heartbeat, s.Undo.Retry, s.Shared, s.Undo.Waiting}
	}
	return plan{s.StartBy, s.Timeout, s.Heartbeat, s.Retry, s.Shared, s.Waiting}
}

// dispatched returns the activity of a step that is with its agent. A step and its undo never are at
// once: an undo starts when no attempt of its step is left.
func dispatched(s job.StepState) (a job.Activity, undo, ok bool) {
	switch {
	case s.Undo.State == job.Dispatched:
		return s.Undo, true, true
	case s.Forward.State == job.Dispatched:
		return s.Forward, false, true
	default:
		return job.Activity{}, false, false
	}
}
