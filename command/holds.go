package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// asAWhole are the flags beside which --agent or --workflow alone means the thing itself, as --whole-agent and
// --whole-workflow do. It is how that was said before those flags were there.
var asAWhole = []string{"agent", "workflow", "addr", "token-file", "stack", "json", "reason", "who"}

// wholeHelp says what --whole-agent and --whole-workflow mean.
const wholeHelp = `

With --whole-agent NAME, or --whole-workflow NAME, it is asked of the agent or the workflow as a whole, which is what an
outage asks for: no new task is sent to the agent, or for a job of the workflow; jobs that come to it stand still with
their times, and are not counted as failed; attempts under way are finished; submissions are taken. Resumed, new work
flows at once, and the jobs that stood still go on little by little. makegood holds shows the pauses. (--agent NAME or
--workflow NAME, alone, is the same: beside any other filter they are filters of jobs.)`

// wholeFlag is the flag that names an agent or a workflow as a whole.
func wholeFlag(kind makegood.HoldKind) string { return "whole-" + string(kind) }

// orAsAWhole lets a verb be asked of an agent or a workflow as a whole.
func orAsAWhole(verb makegood.Verb) *cobra.Command {
	cmd, o := newVerb(verb)
	for _, kind := range domain.HoldKinds() {
		cmd.Flags().String(wholeFlag(kind), "", fmt.Sprintf("the `%s` itself, and no jobs one by one", kind))
	}
	cmd.Long += wholeHelp
	cmd.Example = fmt.Sprintf("  makegood %[1]s --whole-agent payments --reason 'the bank is down'\n", verb) + cmd.Example
	arguments, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		kind, _, err := whole(cmd, args)
		if err != nil {
			return exit(codeUsage, err)
		}
		if kind != "" {
			return nil
		}
		return arguments(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name, err := whole(cmd, args)
		if err != nil {
			return exit(codeUsage, err)
		}
		if kind == "" {
			return run(cmd, args)
		}
		return o.askWhole(cmd, verb, kind, name)
	}
	return cmd
}

// whole returns the agent or the workflow that is meant as a whole; none, if jobs are.
func whole(cmd *cobra.Command, args []string) (kind makegood.HoldKind, name string, err error) {
	flags, former, said, beside := cmd.Flags(), 0, 0, len(args)
	flags.Visit(func(f *pflag.Flag) {
		switch {
		case strings.HasPrefix(f.Name, "whole-"):
			kind, name = makegood.HoldKind(strings.TrimPrefix(f.Name, "whole-")), f.Value.String()
			said++
		case slices.Contains(domain.HoldKinds(), makegood.HoldKind(f.Name)):
			former++
		case !slices.Contains(asAWhole, f.Name):
			beside++
		}
	})
	switch {
	case said > 1 || said == 1 && former+beside > 0:
		return "", "", fmt.Errorf("--%s %s is an agent or a workflow as a whole: want one, and neither ids nor a filter of jobs", wholeFlag(kind), name)
	case said == 1 && name == "":
		return "", "", fmt.Errorf("--%s: want the name of the %s", wholeFlag(kind), kind)
	case said == 1 || former != 1 || beside > 0:
		return kind, name, nil
	}
	for _, of := range domain.HoldKinds() {
		if flags.Changed(string(of)) {
			kind, name = of, flags.Lookup(string(of)).Value.String()
		}
	}
	return kind, name, nil
}

func (o *remote) askWhole(cmd *cobra.Command, verb makegood.Verb, kind makegood.HoldKind, name string) error {
	reason, _ := cmd.Flags().GetString("reason") // there is one
	return o.hold(cmd, func(ctx context.Context, c *client.Client) (makegood.Hold, error) {
		if verb == makegood.VerbResume {
			return c.ResumeAll(ctx, kind, name)
		}
		return c.PauseAll(ctx, kind, name, reason)
	})
}

// hold asks for a hold, or for its end, and says how it stands.
func (o *remote) hold(cmd *cobra.Command, ask func(context.Context, *client.Client) (makegood.Hold, error)) error {
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	h, err := ask(cmd.Context(), c)
	if err != nil {
		return failed(cmd, err)
	}
	return o.printLine(cmd, h, holdLine(h, time.Now()))
}

// newHolds makes the verb that shows the pauses of agents and workflows as a whole, and the limits of agents.
func newHolds() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use:   "holds",
		Short: "Show the agents and workflows that are paused, and the limits of agents",
		Long: `Show the agents and workflows that are paused as a whole: since when, who paused each and why, and how many jobs stand still
for it. One that was resumed is shown until the last of its jobs has gone on. And the limits of agents, which makegood agents limit
sets: how many attempts are under way, and how many wait.

Exit status: 0; 1 bad usage, no such stack; 3 the API or AWS cannot be reached.`,
		Example: "  makegood holds\n  makegood holds --json | jq '.holds[].jobs'",
		Args:    none,
		RunE:    listing(&o, "holds", (*client.Client).ListHolds, printHolds),
	}
	o.flags(cmd)
	return cmd
}

var _ api.Holds = (*client.Client)(nil)

func printHolds(w io.Writer, all []makegood.Hold) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no agent and no workflow is paused, and no agent has a limit")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tSINCE\tBY\tJOBS\tSTATE\tREASON")
	for _, h := range all {
		jobs, state := jobsOf(h), protocol.PauseText(h)
		switch {
		case h.Kind == makegood.HoldLimit:
			jobs, state = "-", protocol.LimitText(h)
		case h.ReleasedAt != nil:
			state = fmt.Sprintf("resumed %s, %d told to go on", moment(h.ReleasedAt), h.Resumed)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", heldName(h), moment(&h.Since), orDash(h.By), jobs, state, orDash(plain.Line(h.Reason)))
	}
	_ = t.Flush() // a closed standard output is no error
}

func jobsOf(h makegood.Hold) string {
	if h.AtLeast {
		return fmt.Sprintf("%d or more", h.Jobs)
	}
	return fmt.Sprint(h.Jobs)
}

// heldName names the agent or the workflow of a hold.
func heldName(h makegood.Hold) string {
	if h.Kind == makegood.HoldLimit {
		return "agent " + h.Name
	}
	return fmt.Sprintf("%s %s", h.Kind, h.Name)
}

// holdLine says in a line how a hold stands.
func holdLine(h makegood.Hold, now time.Time) string {
	line, rest := heldName(h), "jobs that stand still: "+jobsOf(h)
	switch {
	case h.ReleasedAt != nil:
		return fmt.Sprintf("%s  resumed: new work flows; what stood still goes on little by little (%s)", line, count(h.Jobs, "job"))
	case h.Kind == makegood.HoldLimit && h.Limit == 0 && h.Rate == "":
		return line + "  has no limit any more: the attempts that waited go on"
	case h.Kind == makegood.HoldLimit:
		line += "  limited "
		rest = protocol.LimitText(h)
	default:
		line += "  paused "
	}
	line += sinceText(h) + "; " + rest
	if h.Tripped {
		line += "; " + protocol.PauseText(h)
	}
	if now.Sub(h.Since) < limits.HoldsFresh {
		line += fmt.Sprintf("; known everywhere %s later", limits.HoldsFresh)
	}
	return line
}

// sinceText says since when there is a hold, by what author and why.
func sinceText(h makegood.Hold) string {
	text := "since " + moment(&h.Since)
	if h.By != "" {
		text += " by " + h.By
	}
	if h.Reason != "" {
		text += ": " + plain.Line(h.Reason)
	}
	return text
}

// heldBy says what keeps a job still that is paused, since when and why.
func heldBy(job makegood.Job) string {
	if job.HeldBy == "" {
		return ""
	}
	text := ", held by " + job.HeldBy + " since " + moment(job.PausedAt)
	if job.HeldReason != "" {
		text += " (" + plain.Line(job.HeldReason) + ")"
	}
	return text
}
