package workflowfile

import (
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
	if domain.CanUndo(s) && s.Undo.Agent != makegood.AgentWorkflow {
		r.add(of+".undo", "the undo of step %q is that of its own job: leave it out, or say undo: none", s.Name)
	}
}

// CheckRoom refuses an id of a job of this workflow that leaves no room for those of its children.
func (c *Compiled) CheckRoom(id string) error { return domain.RoomForChildren(id, c.Workflow) }

// Children names the workflows whose jobs do steps of this one, each once, in the order of its steps.
func (c *Compiled) Children() (names []string) {
	seen := map[string]bool{}
	for _, s := range c.Workflow.Steps {
		if s.Agent == makegood.AgentWorkflow && !seen[s.Action] {
			seen[s.Action] = true
			names = append(names, s.Action)
		}
	}
	return names
}
