package command

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// newAgents makes the verb that shows how agents stand.
func newAgents() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Show how the agents stand",
		Long: `Show how the agents stand: how many tasks wait for each, for how long, how many it has taken and not ended, how its
attempts ended in the last minutes, whether it is paused, its limit, and which workflows use it. Of an agent outside it
says how many processes have asked for its tasks in the last 30 s, and, where none has, how long ago the last one did.

A dash stands for an unknown figure: of a stack SQS says about how many tasks there are, and the metrics say the rest; the tasks
that an agent outside has taken are known in its own process alone.

Exit status: 0; 1 bad usage, no such stack; 3 the API or AWS cannot be reached.`,
		Example: "  makegood agents\n  makegood agents --json | jq '.agents[] | select(.waiting > 1000).name'",
		Args:    none,
		RunE:    listing(&o, "agents", (*client.Client).ListAgents, func(w io.Writer, all []api.Agent) { printAgents(w, all, time.Now()) }),
	}
	o.flags(cmd)
	cmd.AddCommand(newLimit(), newUnlimit(), newPermits(), newApplyLimits(), newProbe())
	return cmd
}

// limitExit says what the exit codes of the verbs for one agent mean.
const limitExit = `

Exit status: 0; 1 bad usage, refused, or no such agent or stack; 3 the API or AWS cannot be reached, and it is not known what
became of the request: make it again.`

// newLimit makes the verb that limits an agent.
func newLimit() *cobra.Command {
	var o remote
	var limit makegood.Limit
	var reason string
	cmd := &cobra.Command{
		Use:   "limit NAME",
		Short: "Limit how many attempts of an agent are under way at once, or begin in a time",
		Long: fmt.Sprintf(`Limit how many attempts of an agent are under way at once, or how many begin in a second or a minute, or both, over all
its processes and all workflows. Further attempts wait before the gate of the agent: undos go first, then the others by
their priority, and tenants take turns. An attempt counts from before its task is sent until it is over, and for the rate when it is admitted.
With --key it holds for each value that an expression over the job's input has: --concurrency 1 --key '${ .input.account }'
is one at a time for an account. The limit is known everywhere %s later; attempts that were opened before then are not
counted. Another one replaces the limit; makegood agents unlimit takes it away.`, limits.HoldsFresh) + limitExit,
		Example: "  makegood agents limit payments --concurrency 20 --reason 'the bank takes 20 at once'\n  makegood agents limit payments --rate 300/m --burst 10\n  makegood agents limit payments --concurrency 1 --key '${ .input.account }'",
		Args:    one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit.Concurrency == 0 && limit.Rate == "" {
				return exit(codeUsage, fmt.Errorf("agents limit needs --concurrency, 1 to %d, or --rate; agents unlimit takes a limit away", limits.MaxPermits))
			}
			for _, name := range []string{"key", "burst"} {
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == f.DefValue {
					return exit(codeUsage, fmt.Errorf("agents limit --%s %s: want a value, or leave it out", name, f.Value))
				}
			}
			return o.hold(cmd, func(ctx context.Context, c *client.Client) (makegood.Hold, error) {
				return c.LimitAgent(ctx, args[0], limit, reason)
			})
		},
	}
	o.flags(cmd)
	o.askedBy(cmd)
	cmd.Flags().IntVar(&limit.Concurrency, "concurrency", 0, fmt.Sprintf("how `many` attempts at once, 1 to %d", limits.MaxPermits))
	cmd.Flags().StringVar(&limit.Rate, "rate", "", fmt.Sprintf("how many attempts are admitted in a second or a minute: `N/s` or N/m, up to %d", limits.MaxRate))
	cmd.Flags().IntVar(&limit.Burst, "burst", 0, fmt.Sprintf("how `many` of these at one moment, 1 to %d (default: as many as in a second)", limits.MaxPermits))
	cmd.Flags().StringVar(&limit.Key, "key", "", "a limit for each value of an `expression` over the job's input, as ${ .input.account }")
	cmd.Flags().StringVar(&reason, "reason", "", "`why`; makegood holds shows it")
	return cmd
}

// newUnlimit makes the verb that takes the limit of an agent away.
func newUnlimit() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unlimit NAME",
		Short:   "Take the limit of an agent away",
		Long:    "Take the limit of an agent away. The attempts that waited before its gate go on." + limitExit,
		Example: "  makegood agents unlimit payments",
	}
	return ofAgent(cmd, func(ctx context.Context, c *client.Client, name string) (makegood.Hold, error) {
		return c.LimitAgent(ctx, name, makegood.Limit{}, "")
	})
}

// newProbe makes the verb that lets a job through to an agent that the breaker has paused.
func newProbe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "probe NAME",
		Short: "Try now whether an agent that the breaker has paused is well",
		Long: fmt.Sprintf(`Try now whether an agent that the breaker has paused is well: its next probe, a job that stands still and is let through,
comes now, or %s after the pause began. If its attempt succeeds, the agent is resumed; if not, the next comes
after as long as the breaker would have waited without it. With no job that stands still it is resumed, and the next job is the test.`, limits.FirstProbe) + limitExit,
		Example: "  makegood agents probe payments",
	}
	return ofAgent(cmd, func(ctx context.Context, c *client.Client, name string) (makegood.Hold, error) {
		return c.ProbeAgent(ctx, name)
	})
}

// ofAgent lets a verb ask for something of one agent, and say how its hold stands then.
func ofAgent(cmd *cobra.Command, ask func(ctx context.Context, c *client.Client, name string) (makegood.Hold, error)) *cobra.Command {
	var o remote
	cmd.Args = one("NAME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.hold(cmd, func(ctx context.Context, c *client.Client) (makegood.Hold, error) { return ask(ctx, c, args[0]) })
	}
	o.flags(cmd)
	o.askedBy(cmd)
	return cmd
}

// newPermits makes the verb that shows which attempts of an agent are under way.
func newPermits() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use:   "permits NAME",
		Short: "Show which attempts have the permits of an agent with a limit",
		Long: fmt.Sprintf(`Show which attempts are under way of an agent whose concurrency is limited: its job, its step, and since when it has a
permit. The first %d are shown, and those that are under way for longest come first. A permit goes back when its attempt is over, and
never by a clock: so what has one for long is an attempt to look at (makegood get JOB).

Exit status: 0; 1 bad usage, the agent has no limit, no such stack; 3 the API or AWS cannot be reached.`, limits.MaxPermits),
		Example: "  makegood agents permits payments\n  makegood agents permits payments --json | jq -r '.permits[0].job'",
		Args:    one("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			find := func(c *client.Client, ctx context.Context) ([]makegood.Permit, error) {
				all, err := c.ListHolds(ctx)
				if err != nil {
					return nil, err
				}
				for _, h := range all {
					if h.Kind == makegood.HoldLimit && h.Name == args[0] {
						return h.Permits, nil
					}
				}
				return nil, exit(codeUsage, fmt.Errorf("agent %s has no limit: makegood holds shows those that have", args[0]))
			}
			return listing(&o, "permits", find, func(w io.Writer, all []makegood.Permit) { printPermits(w, all, time.Now()) })(cmd, args)
		},
	}
	o.flags(cmd)
	return cmd
}

func printPermits(w io.Writer, all []makegood.Permit, now time.Time) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tSTEP\tATTEMPT\tUNDER WAY FOR")
	for _, p := range all {
		step := p.Step
		if p.Undo {
			step = "undo of " + step
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", plain.Line(p.Job), step, p.Attempt, now.Sub(p.Since).Round(time.Second))
	}
	_ = t.Flush() // a closed standard output is no error
}

func printAgents(w io.Writer, all []api.Agent, now time.Time) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "AGENT\tWAITING\tOLDEST\tIN FLIGHT\tENDED\tFAILED\tASK\tSTATE\tWORKFLOWS")
	for _, a := range all {
		ended, bad, state := "-", "-", stateOf(a, now)
		if a.Lately != nil {
			failures := a.Lately.Failed + a.Lately.Late
			ended, bad = strconv.Itoa(a.Lately.Succeeded+a.Lately.Waiting+failures), strconv.Itoa(failures)
		}
		var asking *int
		if a.Polls != nil {
			asking = &a.Polls.Instances
		}
		if a.Limit != nil {
			state += "; " + protocol.LimitText(*a.Limit)
		}
		oldest := "-"
		if a.OldestAt != nil {
			oldest = now.Sub(*a.OldestAt).Round(time.Second).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.Name, known(a.Waiting), oldest, known(a.InFlight), ended, bad, known(asking), state, orDash(strings.Join(a.Workflows, " ")))
	}
	_ = t.Flush() // a closed standard output is no error
}

// known writes a number that may not be known.
func known(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

func stateOf(a api.Agent, now time.Time) string {
	since, absent := protocol.Absent(a, now)
	switch {
	case a.Problem != "":
		return "cannot be asked: " + plain.Line(a.Problem)
	case a.Hold == nil && absent:
		return fmt.Sprintf("no process has asked for its tasks for %s", now.Sub(since).Round(time.Second))
	case a.Hold == nil:
		return "works"
	case a.Hold.ReleasedAt != nil:
		return fmt.Sprintf("resumed, %d told to go on", a.Hold.Resumed)
	case a.Hold.Reason == "":
		return protocol.PauseText(*a.Hold)
	}
	return protocol.PauseText(*a.Hold) + ": " + plain.Line(a.Hold.Reason)
}
