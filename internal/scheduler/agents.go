package scheduler

import (
	"fmt"
	"slices"

	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// CheckAgents refuses, with ErrInvalid, a workflow with an agent that is not among these: its tasks would wait for
// a queue that is not there. Of no agents nothing is known, and nothing is refused.
func CheckAgents(c *workflowfile.Compiled, agents []string) error {
	if len(agents) == 0 {
		return nil
	}
	for _, step := range c.Workflow.Steps {
		asked := []string{step.Agent}
		if step.CanUndo() {
			asked = append(asked, step.Undo.Agent)
		}
		for _, name := range asked {
			if !slices.Contains(agents, name) {
				return fmt.Errorf("%w: workflow %s, step %s: the agent %s has no queue here; those that have one are %v",
					ErrInvalid, c.Workflow.Name, step.Name, name, agents)
			}
		}
	}
	return nil
}
