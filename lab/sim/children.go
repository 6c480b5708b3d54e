package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// With Options.Children some steps are done by jobs of their own. The effects of such a step are those of its child, so
// it is judged by that. The oracle knows neither births nor the requests of parents, so invariants judge these worlds.

// rollChildren makes a workflow with some steps that are done by jobs of another.
func rollChildren(r *rand.Rand, c, child *workflowfile.Compiled) *workflowfile.Compiled {
	w := c.Workflow
	w.Name = "parent"
	w.Steps = slices.Clone(w.Steps)
	for i, s := range w.Steps {
		if i != r.IntN(len(w.Steps)) && !oneIn(r, 3) {
			continue
		}
		w.Steps[i] = makegood.Step{Name: s.Name, Agent: makegood.AgentWorkflow, Action: child.Workflow.Name, Needs: s.Needs, When: s.When}
		if s.Undo == nil || s.Undo.None {
			w.Steps[i].Undo = &makegood.Undo{None: true}
		}
	}
	parent, err := workflowfile.FromWorkflow(w)
	if err != nil && strings.Contains(err.Error(), "onFailure") {
		w.OnFailure = makegood.OnFailure{} // No step has an undo any more.
		parent, err = workflowfile.FromWorkflow(w)
	}
	if err != nil {
		panic(fmt.Sprintf("a workflow that was rolled is refused: %v", err))
	}
	return parent
}

// isReal reports whether a child may begin: it is not one that only stands where another was to be.
func (w *world) isReal(child job.Job) bool { return child.StartAt.Sub(w.start) < 30*24*time.Hour }

// childrenOf are the children of a step of a job that are stored. w.mu is held.
func (w *world) childrenOf(j job.Job, step string) (children []job.Job) {
	s, _ := j.Step(step)
	for n := 1; n <= s.Attempt; n++ {
		if child, there := w.store.Stored(domain.ChildID(j.ID, j.Birth, step, n)); there {
			children = append(children, child)
		}
	}
	return children
}

// goesOn reports whether a child may have effects yet.
func (w *world) goesOn(child job.Job) bool { return w.isReal(child) && !child.ProcessState.Finished() }

// child: a job that does a step of another is born while its attempt is out.
func (c change) child() {
	is, ok := domain.ChildOf(c.after.ID)
	if !ok || c.before.Rev > 0 || !c.isReal(c.after) {
		return
	}
	parent, there := c.store.Stored(is.Parent)
	s, _ := parent.Step(is.Step)
	if f := s.Forward; !there || f.State != job.Dispatched || f.Attempt != is.Attempt {
		c.wrong("CHD-1: begins, and attempt %d of its parent is %q, #%d", is.Attempt, f.State, f.Attempt)
	}
}

// children: none goes on when its parent has ended or undoes an earlier step, and a step has one at a time. No
// effect of a child stands where its parent is undone and does not say so.
func (c change) children() {
	j := c.after
	undone := j.ProcessState == makegood.JobUndone || j.ProcessState == makegood.JobCancelled
	for n, def := range c.w.Steps {
		if def.Agent != makegood.AgentWorkflow {
			continue
		}
		s, under := j.Steps[n], 0
		for _, child := range c.childrenOf(j, s.Name) {
			is, _ := domain.ChildOf(child.ID)
			if c.goesOn(child) {
				under++
			}
			switch {
			case c.goesOn(child) && j.ProcessState.Finished():
				c.wrong("CHD-2: is %s, and its child %s is %s", j.ProcessState, child.ID, child.ProcessState)
			case c.goesOn(child) && (s.Forward.Attempt != is.Attempt || s.Forward.State != job.Dispatched && s.Undo.State != job.Dispatched):
				c.wrong("CHD-2: its child %s is %s, and attempt %d of %s is over", child.ID, child.ProcessState, is.Attempt, s.Name)
			case c.stands(def, child) && undone && s.Undo.State != job.Irreversible && c.after.Settled(s.Undo) == nil:
				c.wrong("CHD-3: is %s, and its child %s Processed", j.ProcessState, child.ID)
			}
		}
		if under > 1 {
			c.wrong("CHD-4: %d children of %s are under way", under, s.Name)
		}
	}
}

// stands reports whether a child has effects that the undo of its step takes back.
func (w *world) stands(def makegood.Step, child job.Job) bool {
	return child.ProcessState == makegood.JobProcessed && domain.CanUndo(def) && domain.HasUndo(w.definition(child.Definition))
}

// childStep: a job agrees with the child that does its step.
func (c change) childStep(s, was job.StepState) {
	child, there := c.store.Stored(domain.ChildID(c.after.ID, c.after.Birth, s.Name, s.Forward.Attempt))
	back := child.ProcessState == makegood.JobUndone || child.ProcessState == makegood.JobCancelled
	switch {
	case s.Forward.State == job.Done && was.Forward.State != job.Done && c.after.Settled(s.Forward) == nil && child.ProcessState != makegood.JobProcessed:
		c.wrong("CHD-5: %s is said to be done, and its child is %q", s.Name, child.ProcessState)
	case s.Undo.State == job.Done && was.Undo.State != job.Done && c.after.Settled(s.Undo) == nil && there && !back:
		c.wrong("CHD-5: %s is said to be undone, and its child is %s", s.Name, child.ProcessState)
	case s.Undo.State == job.Irreversible && was.Undo.State == job.Dispatched && back:
		c.wrong("CHD-5: the undo of %s is said to be impossible, and its child is %s", s.Name, child.ProcessState)
	}
}

// childrenBehind: the undo of a step comes after the ends of the children of those that follow it.
func (c change) childrenBehind(step string) {
	for n, def := range c.w.Steps {
		if def.Agent != makegood.AgentWorkflow || !slices.Contains(def.Needs, step) {
			continue
		}
		for _, child := range c.childrenOf(c.after, def.Name) {
			irreversible := c.after.Steps[n].Undo.State == job.Irreversible || c.after.Settled(c.after.Steps[n].Undo) != nil
			if c.goesOn(child) || c.stands(def, child) && !irreversible {
				c.wrong("CHD-6: the undo of %s begins while the child %s, which follows it, is %s", step, child.ID, child.ProcessState)
			}
		}
	}
}

// childBegun: an event that makes a child due, or its undo, is deleted once that has begun. w.mu is held.
func (w *world) childBegun(j job.Job, s job.StepState, cause string) {
	child, there := w.store.Stored(domain.ChildID(j.ID, j.Birth, s.Name, s.Forward.Attempt))
	if w.mixed {
		return // A child may be of a newer release, which alone may ask it: the next look does.
	}
	due := func(a job.Activity) bool { return a.State == job.Dispatched && !a.Closing && a.Cause == cause }
	switch {
	case j.Desired == makegood.JobProcessed && due(s.Forward) && !there:
		w.violate(j.ID, "ADV-1: the event %s is deleted, and the child of %s was never begun", cause, s.Name)
	case j.Desired != makegood.JobProcessed && due(s.Undo) && there && child.Desired == makegood.JobProcessed:
		w.violate(j.ID, "ADV-1: the event %s is deleted, and the child of %s was never asked to undo itself", cause, s.Name)
	}
}
