package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// turn is one decision under way. job is its own copy: by value, so that a decision needs no memory but its stack.
type turn struct {
	w     makegood.Workflow
	job   job.Job
	facts Facts
	cause string
	now   time.Time
	graph *Graph

	// The moves leave these behind. wants, asks and entries become the verdict; opened, the sides that got an attempt, and
	// holding, the hold to apply to the job, are for hold.
	wants   []Want
	asks    []Ask
	entries []job.Entry
	opened  []side
	holding *job.Hold
	// mayRaise reads these two at the end. farKey: a wait began that may be long. overdueWait: the deadline of a wait has
	// ended it.
	farKey, overdueWait bool
	// unstored: the job is being born.
	unstored bool
}

func newTurn(w makegood.Workflow, j job.Job, facts Facts, cause string, now time.Time) turn {
	graph := facts.Graph
	if graph == nil {
		graph = GraphOf(w)
	}
	return turn{w: w, job: j, facts: facts, cause: cause, now: domain.Instant(now), graph: graph}
}

// active reports whether the job is to be moved on: neither at its end nor waiting for a person.
func (t *turn) active() bool {
	return !t.job.ProcessState.Finished() && t.job.ProcessState != makegood.JobError
}

// forwards reports whether the job is wanted done, rather than undone.
func (t *turn) forwards() bool { return t.job.Desired == makegood.JobProcessed }

// going reports whether the job is being moved on now.
func (t *turn) going() bool { return t.active() && !t.job.Paused() }

// early reports whether the time at which the job may start has not come.
func (t *turn) early() bool { return t.now.Before(t.job.StartAt) }

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
	ask := Ask{Kind: kind, Step: t.name(at), Attempt: t.activity(at).Attempt, Undo: at.undo}
	if t.isChild(at) {
		ask.Edited = EditFor(t.w, &t.job, ask.Step).N
	}
	if !at.undo && t.isChild(at) {
		ask.Redrives = t.activity(at).Repeats
	}
	return ask
}

// out returns the side of a step that has an attempt with its agent.
func (t *turn) out(step int) (at side, ok bool) {
	_, undo, ok := dispatched(&t.job.Steps[step])
	return side{step, undo}, ok
}

func (t *turn) waitsByItself(at side) bool {
	return domain.WaitsByItself(agentOf(t.w.Steps[at.step], at.undo))
}

// isChild reports whether the attempts of a side are done by a job of their own.
func (t *turn) isChild(at side) bool {
	return agentOf(t.w.Steps[at.step], at.undo) == makegood.AgentWorkflow
}

// childOf is the id of the child of a side. An undo is of the child of the last attempt of its step.
func (t *turn) childOf(at side) string {
	s := &t.job.Steps[at.step]
	return domain.ChildID(t.job.ID, t.job.Birth, s.Name, s.Forward.Attempt)
}

func (t *turn) indexOf(step string) (int, bool) {
	for i := range t.job.Steps {
		if t.job.Steps[i].Name == step {
			return i, true
		}
	}
	return -1, false
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
func dispatched(s *job.StepState) (a *job.Activity, undo, ok bool) {
	switch {
	case s.Undo.State == job.Dispatched:
		return &s.Undo, true, true
	case s.Forward.State == job.Dispatched:
		return &s.Forward, false, true
	default:
		return nil, false, false
	}
}

func agentOf(s makegood.Step, undo bool) string {
	if undo {
		return s.Undo.Agent
	}
	return s.Agent
}

// undoOver reports whether the undo of a step needs no more work.
func (t *turn) undoOver(i int) bool {
	state := t.job.Steps[i].Undo.State
	return through(state) || state == job.Irreversible
}

func through(s job.ActivityState) bool { return s == job.Done || s == job.Skipped }

// named is how a person is told of a step or its undo.
func named(step string, undo bool) string {
	if undo {
		return "undo of step " + step
	}
	return "step " + step
}

// passed reports whether a time that is set has come.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earlier is the one of two times that comes first.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// doubled returns d doubled the given number of times, at most longest.
func doubled[D makegood.Duration | time.Duration](d D, times int, longest D) D {
	for ; times > 0 && d < longest; times-- {
		d *= 2
	}
	return min(d, longest)
}
