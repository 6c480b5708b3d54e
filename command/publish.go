package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/stack"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// newPublish makes the verb that gives a stack a new definition of a workflow.
func newPublish(agents []agent.Handler) *cobra.Command {
	o := remote{}
	cmd := &cobra.Command{
		Use:   "publish FILE",
		Short: "Make a workflow file the current definition on a deployed stack",
		Long: `Make a workflow file the current definition of its name on a deployed stack. Jobs that are submitted from
then on run by it; those that are there keep theirs. A file with an agent that the stack has no queue of is
refused, and one that asks an agent that is linked into this command for an action that it does not have; of
other agents it does not know the actions, and says so. A FILE of the name - is standard input. makegood dev reads its files by itself.

Exit status: 0 it is stored; 1 bad usage, a bad file, an agent that is not there, or no such stack; 3 AWS cannot be reached.`,
		Example: "  makegood publish workflows/order/order.yaml --stack shop-prod",
		Args:    one("FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return publish(cmd, o, args[0], agents) },
	}
	cmd.Flags().StringVar(&o.stack, "stack", "", "`name` of the deployed stack; also "+stack.Variable)
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON on standard output")
	cmd.ValidArgsFunction = completeFiles("yaml", "yml")
	return cmd
}

func publish(cmd *cobra.Command, o remote, file string, agents []agent.Handler) error {
	if o.stackName(cmd) == "" {
		return exit(codeUsage, errors.New("publish needs --stack"))
	}
	file, source, err := readSource(cmd.InOrStdin(), file)
	if err != nil {
		return exit(codeUsage, err)
	}
	compiled, err := workflowfile.Parse(file, source, workflowfile.WithActionsOf(agents...))
	if err != nil {
		return exit(codeUsage, err)
	}
	warn(cmd.ErrOrStderr(), compiled)
	sayUnlinked(cmd.ErrOrStderr(), compiled, agents)
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	if _, err := c.Publish(cmd.Context(), source); err != nil {
		return failed(cmd, err)
	}
	return o.printLine(cmd, map[string]string{"workflow": compiled.Workflow.Name, "definition": compiled.Hash},
		fmt.Sprintf("workflow %s is %s now", compiled.Workflow.Name, compiled.Hash))
}

// sayUnlinked names the agents whose actions could not be checked, because they are not linked here.
func sayUnlinked(w io.Writer, c *workflowfile.Compiled, agents []agent.Handler) {
	linked := linkedNames(agents)
	unlinked := slices.DeleteFunc(c.Agents(), func(name string) bool { return slices.Contains(linked, name) })
	if len(unlinked) > 0 {
		fmt.Fprintf(w, "not linked into this command, so their actions were not checked: %s\n", strings.Join(unlinked, ", "))
	}
}
