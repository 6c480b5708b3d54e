package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/plain"
)

// asAWhole are the flags beside which --agent or --workflow alone means the thing itself, and not the jobs that a filter
// finds.
var asAWhole = []string{"agent", "workflow", "addr", "stack", "json", "reason", "who"}

// wholeHelp says what --agent and --workflow alone mean.
const wholeHelp = `

With --agent NAME alone, or --workflow NAME alone, it is asked of the agent or the workflow as a whole, which is what an
outage asks for: nothing new is sent to the agent, or for a job of the workflow; jobs that come to it stand still with
their times, and are not counted as failed; what is being worked on is finished; submissions are taken. Resumed, new work
flows at once, and the jobs that stood still go on little by little. makegood holds shows what is paused.`

// orAsAWhole lets a verb be asked of an agent or a workflow as a whole.
func orAsAWhole(verb makegood.Verb, cmd *cobra.Command) *cobra.Command {
	for _, kind := range makegood.HoldKinds() {
		cmd.Flags().Lookup(string(kind)).Usage += fmt.Sprintf("; alone: the %s itself, as a whole", kind)
	}
	cmd.Long += wholeHelp
	cmd.Example = fmt.Sprintf("  makegood %[1]s --agent payments --reason 'the bank is down'\n", verb) + cmd.Example
	arguments, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if kind, _ := whole(cmd, args); kind != "" {
			return nil
		}
		return arguments(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name := whole(cmd, args)
		if kind == "" {
			return run(cmd, args)
		}
		return askWhole(cmd, verb, kind, name)
	}
	return cmd
}

// whole returns the agent or the workflow that is meant as a whole; none, if jobs are.
func whole(cmd *cobra.Command, args []string) (kind makegood.HoldKind, name string) {
	if len(args) > 0 {
		return "", ""
	}
	known, named := 0, 0
	for _, flag := range asAWhole {
		if cmd.Flags().Changed(flag) {
			known++
		}
	}
	for _, of := range makegood.HoldKinds() {
		if cmd.Flags().Changed(string(of)) {
			kind, name = of, cmd.Flags().Lookup(string(of)).Value.String()
			named++
		}
	}
	if known != cmd.Flags().NFlag() || named != 1 {
		return "", "" // Something else is said that only jobs have.
	}
	return kind, name
}

func askWhole(cmd *cobra.Command, verb makegood.Verb, kind makegood.HoldKind, name string) error {
	o, err := remoteOf(cmd)
	if err != nil {
		return err
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	reason, _ := cmd.Flags().GetString("reason") // there is one
	ask := func(ctx context.Context) (makegood.Hold, error) { return c.PauseAll(ctx, kind, name, reason) }
	if verb == makegood.Resume {
		ask = func(ctx context.Context) (makegood.Hold, error) { return c.ResumeAll(ctx, kind, name) }
	}
	h, err := ask(cmd.Context())
	if err != nil {
		return failed(cmd, err)
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), h)
	}
	fmt.Fprintln(cmd.OutOrStdout(), holdLine(h, time.Now()))
	return nil
}

// remoteOf reads where the API is from the flags of a verb that has them.
func remoteOf(cmd *cobra.Command) (o remote, err error) {
	flags := cmd.Flags()
	if o.stack, err = flags.GetString("stack"); err != nil {
		return o, err
	}
	o.json, err = flags.GetBool("json")
	return o, err
}

// newHolds makes the verb that shows what is paused as a whole.
func newHolds() *cobra.Command {
	var o remote
	cmd := &cobra.Command{
		Use:   "holds",
		Short: "Show the agents and workflows that are paused",
		Long: `Show the agents and workflows that are paused as a whole: since when, by whom and why, and how many jobs stand still
because of it. One that was resumed is shown until the last of its jobs has gone on.

Exit status: 0; 1 bad usage, no such stack; 3 the API or AWS cannot be reached.`,
		Example: "  makegood holds\n  makegood holds --json | jq '.holds[].jobs'",
		Args:    none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client(cmd)
			if err != nil {
				return err
			}
			all, err := c.ListHolds(cmd.Context())
			if err != nil {
				return failed(cmd, err)
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), struct {
					Holds []makegood.Hold `json:"holds"`
				}{append([]makegood.Hold{}, all...)})
			}
			printHolds(cmd.OutOrStdout(), all)
			return nil
		},
	}
	o.flags(cmd)
	return cmd
}

var _ client.Holds = (*client.Client)(nil)

func printHolds(w io.Writer, all []makegood.Hold) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing is paused")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tSINCE\tBY\tJOBS\tRELEASE\tREASON")
	for _, h := range all {
		release := "-"
		if h.ReleasedAt != nil {
			release = fmt.Sprintf("since %s, %d told to go on", moment(h.ReleasedAt), h.Resumed)
		}
		fmt.Fprintf(t, "%s %s\t%s\t%s\t%s\t%s\t%s\n", h.Kind, h.Name, moment(&h.Since), orDash(h.By), jobsOf(h), release, orDash(plain.Line(h.Reason)))
	}
	_ = t.Flush() // A terminal that is gone has nobody to tell.
}

func jobsOf(h makegood.Hold) string {
	if h.AtLeast {
		return fmt.Sprintf("%d or more", h.Jobs)
	}
	return fmt.Sprint(h.Jobs)
}

// holdLine says in a line how a hold stands.
func holdLine(h makegood.Hold, now time.Time) string {
	line := fmt.Sprintf("%s %s", h.Kind, h.Name)
	if h.ReleasedAt != nil {
		return fmt.Sprintf("%s  resumed: new work flows; what stood still goes on little by little (%s)", line, count(h.Jobs, "job"))
	}
	line += fmt.Sprintf("  paused since %s", moment(&h.Since))
	if h.By != "" {
		line += " by " + h.By
	}
	if h.Reason != "" {
		line += ": " + plain.Line(h.Reason)
	}
	line += fmt.Sprintf("; jobs that stand still: %s", jobsOf(h))
	if now.Sub(h.Since) < makegood.HoldsFresh {
		line += fmt.Sprintf("; known everywhere %s later", makegood.HoldsFresh)
	}
	return line
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
