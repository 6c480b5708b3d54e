package command

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/sizing"
)

type planOptions struct {
	load sizing.Load
	json bool
	ways map[string]*bool
}

// planFlags are the flags of a load, by the names of its fields.
var planFlags = map[string]string{
	"jobsPerSecond": "jobs-per-second", "average": "average", "steps": "steps", "items": "items", "itemsTogether": "batch", "waits": "waits", "payloadBytes": "payload",
	"stepSeconds": "step-seconds", "agentMB": "agent-memory", "agents": "agents", "slowShare": "slow-share", "retentionDays": "retention-days",
}

// wayUsage explains each way in which the steps of a load may run.
var wayUsage = map[string]string{"inline": "the steps are inline", "chain": "the steps are inline, and one chain"}

// newPlan makes the verb that says how large a stack must be.
func newPlan() *cobra.Command {
	o := planOptions{load: sizing.Usual(), ways: map[string]*bool{}}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say how large a stack on AWS must be for a load, and what the load costs a month",
		Long: fmt.Sprintf(`Size a stack on AWS for a load: the parameters of its template (shards of the index, concurrency, writes that are warmed
up), the concurrency of its agents, the quotas to ask AWS for, and the bill of a month by service. No account is asked.

It reckons from counts: make cost runs jobs on the shipped code and counts their units and requests. A number of steps or
items or a size between two counted ones, or beyond them, is on a line through these. Times are assumed: %.0f ms an invocation
beside the work of steps. Shards and concurrency have twice the room of the average. Prices are the list prices of %s
as of %s. Left out: what an idle stack costs (docs/deploy.md), retries, announcements, and the services that steps call.

What a resubmit would do to one job is another thing: makegood resubmit --dry-run.

Exit status: 0; 1 bad usage; 2 the load does not fit into one stack.`, sizing.RunSeconds*1000, makegood.ListPrices().Region, makegood.ListPrices().Date),
		Example: `  makegood plan --jobs-per-second 500 --steps 5
  makegood plan --jobs-per-second 2000 --steps 5 --batched --agents 5 --step-seconds 0.2
  makegood plan --jobs-per-second 0.1 --steps 2 --items 1000 --batch 10
  makegood plan --jobs-per-second 500 --steps 5 --inline --average 0.3 --json`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return plan(cmd, o) },
	}
	l, flags := &o.load, cmd.Flags()
	flags.Float64Var(&l.JobsPerSecond, "jobs-per-second", 0, "jobs that begin each second, at the peak (required)")
	flags.Float64Var(&l.Average, "average", l.Average, "`share` of the peak that the month has on average")
	flags.IntVar(&l.Steps, "steps", l.Steps, "steps of a job that an agent does")
	flags.IntVar(&l.Items, "items", 0, "items of a map that a job has beside its steps (docs/maps.md)")
	flags.IntVar(&l.ItemsTogether, "batch", l.ItemsTogether, "`items` that are one task, as batch of the map says")
	flags.IntVar(&l.Waits, "waits", 0, "further steps of a job that wait, for a time or for a person")
	flags.BoolVar(&l.Batched, "batched", false, "all messages come in full batches of ten; else each comes alone")
	flags.IntVar(&l.PayloadBytes, "payload", l.PayloadBytes, "`bytes` of a job's input, and of the output of each step")
	flags.Float64Var(&l.StepSeconds, "step-seconds", 0, "`seconds` of work in a step")
	flags.Float64Var(&l.SlowShare, "slow-share", 0, "`share` of the steps that outlast the first look after them (docs/cost.md: slow)")
	flags.IntVar(&l.Agents, "agents", l.Agents, "agents that share the steps")
	flags.IntVar(&l.AgentMB, "agent-memory", l.AgentMB, "`MB` of an agent's function")
	flags.IntVar(&l.RetentionDays, "retention-days", l.RetentionDays, "`days` that an ended job is kept")
	for _, way := range sizing.Ways()[1:] {
		o.ways[way] = flags.Bool(way, false, wayUsage[way]+" (docs/inline.md)")
	}
	flags.BoolVar(&o.json, "json", false, "print JSON on standard output")
	require(cmd, "jobs-per-second")
	return cmd
}

func plan(cmd *cobra.Command, o planOptions) error {
	l := o.load
	for way, is := range o.ways {
		switch {
		case *is && l.Way != sizing.Queue:
			return exit(codeUsage, fmt.Errorf("--%s and --%s: want one of them", l.Way, way))
		case *is:
			l.Way = way
		}
	}
	if field, err := l.Check(); err != nil {
		return exit(codeUsage, fmt.Errorf("--%s %w", planFlags[field], err))
	}
	s := sizing.Of(l)
	if o.json {
		if err := printJSON(cmd.OutOrStdout(), s); err != nil {
			return err
		}
	} else {
		printSize(cmd.OutOrStdout(), s)
	}
	if len(s.Over) > 0 {
		return exit(codeOtherwise, fmt.Errorf("the load does not fit into one stack: %s", strings.Join(s.Over, "; ")))
	}
	return nil
}

func printSize(w io.Writer, s sizing.Size) {
	l := s.Load
	batch := "each message alone"
	if l.Batched {
		batch = "full batches"
	}
	work, pace := count(l.Steps+l.Waits, "step"), rate(l.JobsPerSecond*float64(l.Steps+l.Waits))+" steps/s"
	if l.Items > 0 {
		work += fmt.Sprintf(" and %s, %d a task", thousands(l.Items, "item"), l.ItemsTogether)
		pace += ", " + rate(l.JobsPerSecond*float64(l.Items)) + " items/s"
	}
	fmt.Fprintf(w, "%g jobs/s of %s (%s), %s: %s\n\n", l.JobsPerSecond, work, l.Way, batch, pace)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "A SECOND\tWRITE UNITS\tREAD UNITS\tPARTITIONS\t\n")
	fmt.Fprintf(table, "table\t%s\t%s\t%d\t\n", rate(s.Table.WriteUnits), rate(s.Table.ReadUnits), s.Table.Partitions)
	fmt.Fprintf(table, "index CompleteBy\t%s\t%s\t%d\t\n", rate(s.Index.WriteUnits), rate(s.Index.ReadUnits), s.Index.Partitions)
	_ = table.Flush() // a closed standard output is no error
	fmt.Fprintf(w, "\nmake deploy PARAMETERS=\"Shards=%d EventsConcurrency=%d", s.Shards, s.EventsConcurrency)
	if s.WarmWrites > 0 {
		fmt.Fprintf(w, " WarmWrites=%d", s.WarmWrites)
	}
	fmt.Fprintln(w, "\", with the parameters that the stack has")
	if s.AgentConcurrency > 0 {
		fmt.Fprintf(w, "Concurrency of each agent in the template: %s\n", grouped(s.AgentConcurrency))
	}
	fmt.Fprintf(w, "Lambda reaches this in %s of load\n\n", count(s.RampMinutes, "minute"))
	printQuotas(w, s.Quotas)
	printBill(w, s)
}

func printQuotas(w io.Writer, quotas []sizing.Quota) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "QUOTA\tNEEDED\tBY DEFAULT\t")
	for _, q := range quotas {
		ask := ""
		if q.Ask {
			ask = "ask for more"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", q.Name, rate(q.Needs), rate(q.Has), ask)
	}
	_ = table.Flush() // a closed standard output is no error
}

func printBill(w io.Writer, s sizing.Size) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "A MONTH\t\t$\t")
	lines := append(slices.Clone(s.Bill), sizing.Line{Service: "all", Dollars: s.Total})
	for _, line := range lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", line.Service, line.Of, rate(line.Dollars))
	}
	_ = table.Flush() // a closed standard output is no error
	month := "all month at the peak: --average says otherwise"
	if s.Load.Average < 1 {
		month = fmt.Sprintf("the month is at %g of the peak", s.Load.Average)
	}
	unit := "steps"
	if s.Load.Items > 0 {
		unit = "steps and items"
	}
	fmt.Fprintf(w, "%.2f $ a million %s; prices of %s, %s; %s\n", s.MillionSteps, unit, s.Region, s.PricesOf, month)
}

// rate writes a number that is read at a glance: whole, and with one digit more below ten.
func rate(n float64) string {
	if n < 10 && n != float64(int(n)) {
		return fmt.Sprintf("%.1f", n)
	}
	return grouped(int(n + 0.5))
}
