//go:build !makegood_local

package command

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/stack"
	"github.com/makegood-dev/makegood/onqueue"
)

// newAgent makes the verb that runs one of the agents that are linked, outside of Lambda.
func newAgent(agents []agent.Handler) *cobra.Command {
	o := onqueue.Options{}
	cmd := &cobra.Command{
		Use:   "agent NAME",
		Short: "Run an agent of a deployed stack here",
		Long: `Run one of the agents that are linked into this command for a deployed stack: on ECS, on EC2, on a laptop. It
takes tasks from the agent's queue, works as long as a step may take, and replies. The stack's own function of
that agent must not poll the queue; docs/long-steps.md says how, and what the credentials must allow.

SIGTERM, or Ctrl-C, lets it take no more tasks; a task received and not begun is handed back at once, and
an attempt that runs may go on for the grace time. Then it is told to stop. A second signal ends it at once. An attempt cut
off, or killed, sends no reply: the job makes the next attempt when the step's heartbeat has passed.

It logs in JSON on standard error. ` + stack.VarTable + ` and ` + stack.VarQueuePrefix + `, where they are set, say where
the stack's table and queues are, and CloudFormation is not asked.

Exit status: 0 it was asked to stop, and no attempt was cut off; 1 bad usage, or no such agent, stack or queue; 3
it was asked to stop, and some attempts were cut off.`,
		Example: `  makegood agent payments --stack shop-prod
  makegood agent render --stack films-prod --concurrency 2 --grace 10m --health :8080`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return fmt.Errorf("name one agent; linked are %s", linked(agents))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runAgent(cmd, agents, args[0], o) },
	}
	cmd.Flags().StringVar(&o.Stack, "stack", os.Getenv(stack.Variable), "`name` of the deployed stack; also "+stack.Variable)
	cmd.Flags().IntVar(&o.Concurrency, "concurrency", limits.DefaultAgentConcurrency, fmt.Sprintf("how many attempts run at once, 1 to %d", limits.MaxAgentConcurrency))
	cmd.Flags().StringVar(&o.Health, "health", "", "`address`, HOST:PORT, at which GET /health says whether it takes tasks")
	cmd.Flags().DurationVar(&o.Grace, "grace", limits.DefaultGrace, "how long what runs may go on after SIGTERM, from 1s")
	return cmd
}

// shortestGrace is the shortest grace time that may be said.
const shortestGrace = time.Second

func runAgent(cmd *cobra.Command, agents []agent.Handler, name string, o onqueue.Options) error {
	var runs agent.Handler
	for _, a := range agents {
		if a.Name() == name {
			runs = a
		}
	}
	switch {
	case runs == nil:
		return exit(codeUsage, fmt.Errorf("no agent %q is linked into this command; linked are %s", name, linked(agents)))
	case o.Concurrency < 1:
		return exit(codeUsage, fmt.Errorf("--concurrency %d: want 1 to %d", o.Concurrency, limits.MaxAgentConcurrency))
	case o.Grace < shortestGrace:
		return exit(codeUsage, fmt.Errorf("--grace %v: want at least %v", o.Grace, shortestGrace))
	}
	o.Logger = slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil))
	err := onqueue.Run(cmd.Context(), runs, o)
	if errors.Is(err, agent.ErrOptions) {
		return exit(codeUsage, err)
	}
	if err != nil {
		return exit(codeFailed, err)
	}
	return nil
}

// linked lists agents by their names.
func linked(agents []agent.Handler) string {
	if len(agents) == 0 {
		return "none"
	}
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.Name()
	}
	return strings.Join(names, ", ")
}
