package main

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/view"
)

// listPage is how many jobs are read from a folder at a time.
const listPage = 200

type listOptions struct {
	remote
	data, state, workflow string
	limit                 int
}

// newList makes the verb that lists jobs.
func newList() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs",
		Long: `List jobs, the newest first: from the process at --addr, or from the folder that --data names.

Exit status: 0; 1 bad usage; 3 the API cannot be reached.`,
		Example: `  makegood list
  makegood list --state Error --workflow order
  makegood list --limit 1000 --json | jq -r '.jobs[].id'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd, o) },
	}
	o.flags(cmd)
	dataFlag(cmd, &o.data)
	cmd.Flags().StringVar(&o.state, "state", "", fmt.Sprintf("only jobs in this `state`: %v", makegood.ProcessStates()))
	cmd.Flags().StringVar(&o.workflow, "workflow", "", "only jobs of this `workflow`")
	cmd.Flags().IntVar(&o.limit, "limit", 50, "at most this `many`")
	return cmd
}

func list(cmd *cobra.Command, o listOptions) error {
	state := makegood.ProcessState(o.state)
	if state != "" && !slices.Contains(makegood.ProcessStates(), state) {
		return exit(codeUsage, fmt.Errorf("--state %s: want one of %v", o.state, makegood.ProcessStates()))
	}
	if o.limit < 1 {
		return exit(codeUsage, fmt.Errorf("--limit %d: want at least 1", o.limit))
	}
	jobs, closeJobs, err := listed(cmd, o, state)
	if err != nil {
		return err
	}
	defer closeJobs()
	found := []client.Listed{}
	for job, err := range jobs {
		if err != nil {
			return failed(err)
		}
		if found = append(found, job); len(found) == o.limit {
			break
		}
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), struct {
			Jobs []client.Listed `json:"jobs"`
		}{found})
	}
	printList(cmd.OutOrStdout(), found)
	return nil
}

// listed gives the jobs, and what to call after the last one was read.
func listed(cmd *cobra.Command, o listOptions, state makegood.ProcessState) (iter.Seq2[client.Listed, error], func(), error) {
	if o.data == "" {
		c, err := o.client()
		if err != nil {
			return nil, nil, err
		}
		return c.List(cmd.Context(), client.Filter{State: state, Workflow: o.workflow}), func() {}, nil
	}
	reader, err := openData(cmd, o.data)
	if err != nil {
		return nil, nil, err
	}
	jobs := readList(cmd, reader, store.Filter{State: state, Workflow: o.workflow})
	return jobs, func() { _ = reader.Close() }, nil
}

func readList(cmd *cobra.Command, reader *sqlitestore.Reader, filter store.Filter) iter.Seq2[client.Listed, error] {
	return func(yield func(client.Listed, error) bool) {
		for cursor := ""; ; {
			page, next, err := reader.ListJobs(cmd.Context(), filter, cursor, listPage)
			if err != nil {
				yield(client.Listed{}, exit(codeFailed, err))
				return
			}
			for _, job := range view.Listed(page) {
				if !yield(job, nil) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

func printList(w io.Writer, jobs []client.Listed) {
	if len(jobs) == 0 {
		fmt.Fprintln(w, "no jobs")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tWORKFLOW\tSTATE\tFAILURES\tCREATED")
	for _, j := range jobs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", j.ID, j.Workflow, j.ProcessState, j.FailureCount, moment(&j.CreatedAt))
	}
	_ = table.Flush() // whoever closed standard output does not want to know
}
