package machine_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
)

// drawHold pauses an agent or the workflow, or resumes it.
func (x *world) drawHold() {
	if x.nested {
		return
	}
	hold := job.Hold{Kind: makegood.HoldAgent, Name: rapid.SampledFrom([]string{"a", "b", outside}).Draw(x.t, "agent"), Since: x.now}
	if rapid.IntRange(0, 3).Draw(x.t, "workflow") == 0 {
		hold.Kind, hold.Name = makegood.HoldWorkflow, x.w.Name
	}
	if _, on := x.holds.On(hold.String()); !on {
		x.holds = append(slices.Clone(x.holds), hold)
		return
	}
	x.holds = slices.DeleteFunc(slices.Clone(x.holds), func(h job.Hold) bool { return h.String() == hold.String() })
}

// known are the holds that a decision knows of: those that there are, or, if it read a while ago, those that there were.
func (x *world) known() job.Holds {
	if x.holds != nil && rapid.IntRange(0, 5).Draw(x.t, "old holds") == 0 {
		return x.held
	}
	return x.holds
}

// letGo is the word of an agent that it has not begun what is out.
func (x *world) letGo() (job.Event, bool) {
	for _, s := range x.job.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched && a.Inline == "" && !x.ofChild(id(s.Name, a.Attempt)) {
				if which := id(s.Name, a.Attempt); x.tasks[which].Shared {
					x.dead[which] = true // It does not run, and no claim would say so.
				}
				return job.StepHeld{Reply: job.Reply{Step: s.Name, Attempt: a.Attempt, Token: machine.Token(x.job, s.Name, a.Attempt)}}, true
			}
		}
	}
	return nil, false
}

// isHeld reports whether a step, or its undo, must not be sent now, as the last decision knew.
func (x *world) isHeld(step string) bool {
	undo := x.job.Desired != makegood.JobProcessed && domain.CanUndo(x.def(step))
	_, agent := x.held.On(job.HoldName(makegood.HoldAgent, machine.AgentOf(x.w, step, undo)))
	_, workflow := x.held.On(job.HoldName(makegood.HoldWorkflow, x.w.Name))
	return agent || workflow
}

// isOut reports whether the attempt is still out that an agent has let go.
func (x *world) isOut(e job.StepHeld) bool {
	s, _ := x.job.Step(e.Step)
	return slices.ContainsFunc([]job.Activity{s.Forward, s.Undo}, func(a job.Activity) bool { return a.State == job.Dispatched && a.Attempt == e.Attempt })
}

// checkHeld: nothing is begun or sent again of what is held, and what is held by nothing does not say so.
func (x *world) checkHeld(before job.Job) {
	j := x.job
	x.wasHeld = x.wasHeld || j.HeldBy != ""
	if j.HeldBy == "" && (j.HeldReason != "" || j.PausedToo) || j.HeldBy != "" && !j.Paused() {
		x.t.Fatalf("held by %q (%q, and by a person: %v), and paused at %v", j.HeldBy, j.HeldReason, j.PausedToo, j.PausedAt)
	}
	if j.PausedAt.After(x.now) {
		x.t.Fatalf("paused at %v, which is yet to come", j.PausedAt)
	}
	for _, s := range j.Steps {
		for _, undo := range []bool{false, true} {
			was, is := activityOf(before, s.Name, undo), activityOf(j, s.Name, undo)
			sent := is.State == job.Dispatched && (is.Attempt > was.Attempt || is.At.After(was.At) || is.Resent > was.Resent)
			if sent && undo == (j.Desired != makegood.JobProcessed) && x.isHeld(s.Name) && !is.Closing {
				x.t.Fatalf("step %s (undo: %v) is sent, and held: %+v", s.Name, undo, is)
			}
		}
	}
	if _, on := x.held.On(job.HoldName(makegood.HoldWorkflow, x.w.Name)); on && x.live() && !x.now.Before(j.StartAt) && j.Rev > 1 {
		x.t.Fatalf("a job of a workflow that is held goes on: %+v", j)
	}
}

// hint tells a job that is held by nothing any more that it may go on.
func (x *world) hint() {
	x.held = nil
	before := x.job.Clone()
	kind := x.move(before, job.DeadlinePassed{})
	if x.run == before.Incarnation && kind == machine.Stale {
		x.t.Fatalf("a job that nothing holds does not go on: %+v", before)
	}
}
