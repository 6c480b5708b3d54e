package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/protocol"
)

type countOptions struct {
	finder
	by []string
}

func newCount() *cobra.Command {
	var o countOptions
	cmd := &cobra.Command{
		Use:   "count",
		Short: "Count jobs in groups",
		Long: fmt.Sprintf(`Count the jobs that the filters of list find, by one or more of %v. A job that stands at several
steps counts with each of them, and of their agents, so these may add up to more than there are jobs. What changes while
it counts is counted as it was or as it is.

Of a stack, jobs are found as list finds them: a count that reads the whole table asks first, or needs --scan.

Exit status: 0; 1 bad usage, or no such stack; 3 the API or AWS cannot be reached.`, protocol.Facets()),
		Example: `  makegood count
  makegood count --by workflow,state --since 24h
  makegood count --by agent --late
  makegood count --by tenant --state Error --stack shop-prod`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return countJobs(cmd, o) },
	}
	o.add(cmd)
	cmd.Flags().StringSliceVar(&o.by, "by", []string{string(api.ByState)}, fmt.Sprintf("the groups to count `by`: %v", protocol.Facets()))
	completeFlag(cmd, "by", completeOneOf(protocol.Facets()...))
	return cmd
}

func countJobs(cmd *cobra.Command, o countOptions) error {
	filter, err := o.found.read()
	if err != nil {
		return exit(codeUsage, err)
	}
	var by []api.Facet
	for _, facet := range o.by {
		by = append(by, api.Facet(facet))
	}
	if err := protocol.CheckFacets(by); err != nil {
		return exit(codeUsage, fmt.Errorf("--by %s: want one or more of %v, each once", strings.Join(o.by, ","), protocol.Facets()))
	}
	if err := o.mayScan(cmd, filter); err != nil {
		return err
	}
	jobs, closeJobs, err := o.jobs(cmd, o.data)
	if err != nil {
		return err
	}
	defer closeJobs()
	groups, err := api.CountAll(cmd.Context(), jobs, filter, by...)
	if err != nil {
		return failed(cmd, err)
	}
	return o.print(cmd, groups, func(w io.Writer) { printCounts(w, by, groups) })
}

func printCounts(w io.Writer, by []api.Facet, groups api.Groups) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, facet := range by {
		fmt.Fprintf(table, "%s\t", strings.ToUpper(string(facet)))
	}
	fmt.Fprintln(table, "JOBS")
	for _, group := range groups.Groups {
		for _, value := range group.Values {
			fmt.Fprintf(table, "%s\t", orDash(value))
		}
		fmt.Fprintln(table, grouped(group.Jobs))
	}
	_ = table.Flush() // a closed standard output is no error
	fmt.Fprintln(w, thousands(groups.Jobs, "job"))
}

type errorsOptions struct {
	remote
	data string
}

// newErrors makes the verb that shows the steps that wait for a person.
func newErrors() *cobra.Command {
	var o errorsOptions
	cmd := &cobra.Command{
		Use:   "errors",
		Short: "Show the jobs that wait for a person, by workflow, step and kind of reason",
		Long: `Count the jobs in Error and the paused ones, which wait for a person. Those in Error are counted by their
workflow, the step at which they stopped, and the kind of its error, each with the one that waits longest, since when, and
the command that lists them. A job that stopped for another reason than a step (its own timeout, a definition that is
broken) has no step, and an error without a kind none.

Of a stack an index leads to them, and half a read unit is paid for each.

Exit status: 0; 1 bad usage, or no such stack; 3 the API or AWS cannot be reached.`,
		Example: `  makegood errors
  makegood errors --stack shop-prod
  makegood errors --json | jq '.groups[] | select(.jobs > 100)'`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return showErrors(cmd, o) },
	}
	o.flags(cmd)
	dataFlag(cmd, &o.data)
	return cmd
}

// waiting is a group of jobs that wait for a person.
type waiting struct {
	State    string    `json:"state"`
	Workflow string    `json:"workflow"`
	Step     string    `json:"step"`
	Kind     string    `json:"kind"`
	Jobs     int       `json:"jobs"`
	Since    time.Time `json:"since"`
	Example  string    `json:"example"`
	// Command lists them.
	Command string `json:"command"`
}

func showErrors(cmd *cobra.Command, o errorsOptions) error {
	jobs, closeJobs, err := o.jobs(cmd, o.data)
	if err != nil {
		return err
	}
	defer closeJobs()
	failedJobs, err := api.CountAll(cmd.Context(), jobs, api.Filter{State: makegood.JobError}, api.ByWorkflow, api.ByStep, api.ByReason)
	if err != nil {
		return failed(cmd, err)
	}
	paused, err := api.CountAll(cmd.Context(), jobs, api.Filter{Paused: true}, api.ByWorkflow)
	if err != nil {
		return failed(cmd, err)
	}
	groups := o.waiting(cmd, failedJobs, paused)
	return o.print(cmd, inList("groups", groups), func(w io.Writer) { printErrors(w, groups) })
}

// waiting returns the groups of those in Error, and of paused ones behind them.
func (o *errorsOptions) waiting(cmd *cobra.Command, inError, paused api.Groups) []waiting {
	at := where(cmd)
	groups := []waiting{}
	for _, g := range inError.Groups {
		w := waiting{State: "Error", Workflow: g.Values[0], Step: g.Values[1], Kind: g.Values[2], Jobs: g.Jobs, Since: g.Since, Example: g.Example}
		w.Command = cmd.Root().Name() + " list --state Error"
		for _, flag := range [][2]string{{"workflow", w.Workflow}, {"step", w.Step}, {"reason-kind", w.Kind}} {
			if flag[1] != "" {
				w.Command += " --" + flag[0] + " " + flag[1]
			}
		}
		w.Command += at
		groups = append(groups, w)
	}
	for _, g := range paused.Groups {
		groups = append(groups, waiting{
			State: "paused", Workflow: g.Values[0], Jobs: g.Jobs, Since: g.Since, Example: g.Example,
			Command: fmt.Sprintf("%s list --paused --workflow %s%s", cmd.Root().Name(), g.Values[0], at),
		})
	}
	return groups
}

func printErrors(w io.Writer, groups []waiting) {
	if len(groups) == 0 {
		fmt.Fprintln(w, "no job waits for a person")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STATE\tWORKFLOW\tSTEP\tKIND\tJOBS\tSINCE\tEXAMPLE")
	for _, g := range groups {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.State, orDash(g.Workflow), orDash(g.Step), orDash(g.Kind), grouped(g.Jobs), moment(&g.Since), g.Example)
	}
	_ = table.Flush() // a closed standard output is no error
	fmt.Fprintln(w)
	for _, g := range groups {
		fmt.Fprintln(w, g.Command)
	}
}
