package workflowfile

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// child checks a step that is done by a job of its own. What it does again, and how it is undone, that job says.
func (r rules) child(path string, s makegood.Step) {
	if s.Agent != makegood.AgentWorkflow {
		return
	}
	r.level = max(r.level, levelChildren)
	of := around(path)
	if s.Map != nil {
		return // What is said of its items was checked with them.
	}
	if err := limits.WorkflowName.Check(s.Action); err != nil {
		r.add(of+".action", "action is the name of the workflow that does the step: %v", err)
	}
	const itsOwn = "step %q is done by a job of its own, which says %s: leave it out here"
	if s.Shared {
		r.add(of+".exclusive", itsOwn, s.Name, "of each step whether it is exclusive")
	}
	if s.Retry.Attempts != 1 {
		r.add(of+".retry", itsOwn, s.Name, "how often its steps are tried")
	}
	if s.Waiting != nil {
		r.add(of+".waiting", itsOwn, s.Name, "what becomes of its waits")
	}
	if s.Action == r.workflow.Name && s.When == "" {
		r.doubt(of+".action", "step %q begins a job of its own workflow, without a when that ends it: that fails at the limit of %d jobs above one",
			s.Name, domain.MaxNesting)
	}
}

// CheckRoom refuses an id of a job of this workflow that leaves no room for those of its children.
func (c *Compiled) CheckRoom(id string) error { return domain.RoomForChildren(id, c.Workflow) }

// Children returns the steps that jobs of their own do: the first one of each workflow, in the order of the file.
func (c *Compiled) Children() (steps []makegood.Step) {
	seen := map[string]bool{}
	for _, s := range c.Workflow.Steps {
		if s = domain.ItemOf(s); s.Agent == makegood.AgentWorkflow && !seen[s.Action] {
			seen[s.Action] = true
			steps = append(steps, s)
		}
	}
	return steps
}

// Lacks is the error of a workflow whose step is done by a workflow that is absent.
func (c *Compiled) Lacks(s makegood.Step) error {
	return fmt.Errorf("there is no workflow %q, which does step %s of workflow %s", s.Action, s.Name, c.Workflow.Name)
}

// Absent returns an error for each step of all that is done by a workflow which is not among them.
func Absent(all ...*Compiled) (absent []error) {
	known := map[string]bool{}
	for _, c := range all {
		known[c.Workflow.Name] = true
	}
	for _, c := range all {
		for _, s := range c.Children() {
			if !known[s.Action] {
				absent = append(absent, c.Lacks(s))
			}
		}
	}
	return absent
}
