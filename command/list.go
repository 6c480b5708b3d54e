package command

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/filter"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/plain"
)

type listOptions struct {
	finder
	limit int
	all   bool
	// children: list jobs that do steps of other jobs, too.
	children bool
}

func newList() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "list [WORD...]",
		Aliases: []string{"search"},
		Short:   "List jobs, or search for them",
		Long: `List jobs, the newest first: from the process at --addr, from a deployed stack, or from the folder that
--data names. A job must be all that the filters say. Where there are more than --limit, it says so, and in JSON
as "more".

Jobs that do steps of other jobs (agent: workflow) are left out unless --children is given, or a filter or word says which
jobs are meant by their id, workflow, step, agent or reason, or that they are late, paused, or before a person.

Words are those of the page's search box: NAME:VALUE is the filter of that name, such as state:Error. Another word
is the beginning of an id; several, or one with which no id begins, are words that must all be in the job's reason,
in any case. The search that was made stands on standard error.

Of a stack, jobs in Error and paused ones are found by an index, the newest first, and other unfinished
jobs, and those that are late or have a step due, by another, in no order. Any other list reads the table
through, in no order, and pays for all that it passes over: half a read unit for each 4 KB, payloads included. It
says so on standard error, and in JSON as "scan"; with --all it asks first, or needs --scan.

Exit status: 0; 1 bad usage, or no such stack; 3 the API or AWS cannot be reached.`,
		Example: `  makegood list
  makegood list --state Error --workflow order
  makegood list --state Error --step charge --reason-kind timeout --since 24h
  makegood list o-17
  makegood search card declined workflow:order since:24h
  makegood list --tenant acme --label region=eu --late-within 1h
  makegood list --all --json | jq -r '.jobs[].id'
  makegood list --stack shop-prod --state Error
  makegood list --stack shop-prod --paused`,
		RunE: func(cmd *cobra.Command, args []string) error { return list(cmd, o, args) },
	}
	o.add(cmd)
	cmd.Flags().IntVar(&o.limit, "limit", 50, "at most this `many`")
	cmd.Flags().BoolVar(&o.children, "children", false, "jobs that do steps of other jobs, too")
	cmd.MarkFlagsMutuallyExclusive("children", "roots")
	cmd.Flags().BoolVar(&o.all, "all", false, "all of them, however many")
	cmd.MarkFlagsMutuallyExclusive("all", "limit")
	return cmd
}

func list(cmd *cobra.Command, o listOptions, args []string) error {
	typed, free, err := filter.Split(strings.Join(args, " "))
	if err != nil {
		return exit(codeUsage, err)
	}
	wanted, err := o.found.read(typed...)
	if err != nil {
		return exit(codeUsage, err)
	}
	if len(free) > 0 && o.data == "" && o.stackName(cmd) != "" {
		return exit(codeUsage, fmt.Errorf("no index of a stack leads to %q: --id-prefix and --words read its whole table", strings.Join(free, " ")))
	}
	if o.limit < 1 {
		return exit(codeUsage, fmt.Errorf("--limit %d: want at least 1", o.limit))
	}
	jobs, closeJobs, err := o.jobs(cmd, o.data)
	if err != nil {
		return err
	}
	defer closeJobs()
	if o.all {
		o.limit = math.MaxInt
		err = o.mayScan(cmd, wanted)
	} else if o.readsAll(cmd, wanted) {
		fmt.Fprintln(cmd.ErrOrStderr(), "this list reads the whole table, page by page; --state Error and --paused do not")
	}
	if err != nil {
		return err
	}
	found, more, scan, err := search(cmd, o.reads(cmd, jobs), wanted, free, o.limit)
	if err != nil {
		return failed(cmd, err)
	}
	if len(found) == 0 && wanted.Workflow != "" {
		if err := checkKnown(cmd, o, wanted.Workflow, jobs); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(cmd.OutOrStdout(), struct {
			Jobs []api.Listed `json:"jobs"`
			More bool         `json:"more,omitempty"`
			Scan bool         `json:"scan,omitempty"`
		}{found, more, scan})
	}
	printList(cmd.OutOrStdout(), found)
	if more {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d shown, and there are more: --all shows them all, --limit so many\n", len(found))
	}
	return nil
}

// reads reads a page of a list.
type reads func(filter api.Filter, cursor string) (api.Page, error)

// detailing is where a page of a list can have the jobs themselves: a process, and not a folder.
type detailing interface {
	Details(ctx context.Context, filter api.Filter, cursor string, limit int) (api.Page, error)
}

// reads returns the function that reads the pages of a list. For people a page of an engine has the jobs themselves,
// for the progress of their attempts; a page of a stack has not, and each read there is paid for.
func (o *listOptions) reads(cmd *cobra.Command, jobs api.Reader) reads {
	page := o.pages(cmd, jobs)
	return func(filter api.Filter, cursor string) (api.Page, error) {
		filter.Roots = filter.Roots || !o.children && !meansChildren(filter)
		return page(filter, cursor)
	}
}

// meansChildren reports whether a filter selects jobs by a property that a child has like any job, such as a step or a
// reason. Then its list has the children, too.
func meansChildren(f api.Filter) bool {
	return f.State == makegood.JobError || f.State == api.JobWaiting || f.Paused || f.Late || f.LateWithin > 0 || f.Workflow != "" || f.Definition != "" ||
		f.Step != "" || f.Agent != "" || f.ReasonPrefix != "" || f.ReasonKind != "" || f.Words != "" || f.IDPrefix != ""
}

func (o *listOptions) pages(cmd *cobra.Command, jobs api.Reader) reads {
	from, is := jobs.(detailing)
	if !is || o.json || o.limit > httpapi.MaxDetails || o.stackName(cmd) != "" {
		return func(filter api.Filter, cursor string) (api.Page, error) {
			return jobs.Page(cmd.Context(), filter, cursor)
		}
	}
	return func(filter api.Filter, cursor string) (api.Page, error) {
		return from.Details(cmd.Context(), filter, cursor, min(o.limit+1, httpapi.MaxDetails))
	}
}

// search reads a list as readList does, narrowed by free words: by one to the ids that begin with it, by several, or
// where no id does, to the reasons that have them all.
func search(cmd *cobra.Command, read reads, wanted api.Filter, free []string, limit int) (found []api.Listed, more, scanned bool, err error) {
	if len(free) == 0 {
		return readList(read, wanted, limit)
	}
	if len(free) == 1 && wanted.IDPrefix == "" && domain.CheckJobID(free[0]) == nil {
		byID := wanted
		byID.IDPrefix = free[0]
		found, more, scanned, err = readList(read, byID, limit)
		if err != nil || len(found) > 0 {
			return found, more, scanned, err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "no id begins with %s: searched in reasons\n", free[0])
	}
	wanted.Words = strings.TrimSpace(wanted.Words + " " + strings.Join(free, " "))
	return readList(read, wanted, limit)
}

// finder has the flags of a verb that lists jobs: the place to look, the filters, and --scan.
type finder struct {
	remote
	data  string
	found filterFlags
	scan  bool
}

func (o *finder) add(cmd *cobra.Command) {
	o.flags(cmd)
	dataFlag(cmd, &o.data)
	o.found.add(cmd, &o.remote)
	cmd.Flags().BoolVar(&o.scan, "scan", false, "do not ask before the whole table of a stack is read")
}

// readsAll reports whether a filter has the whole table of a stack read.
func (o *finder) readsAll(cmd *cobra.Command, f api.Filter) bool {
	unfinished := f.State != "" && !f.State.Finished() || f.Paused || f.Step != "" || f.Agent != "" || f.ReasonKind != ""
	indexed := unfinished || f.Late || f.LateWithin != 0 || f.DueWithin != 0
	return o.data == "" && o.stackName(cmd) != "" && !indexed
}

// mayScan asks before the whole table of a stack is read to its end.
func (o *finder) mayScan(cmd *cobra.Command, f api.Filter) error {
	if o.scan || !o.readsAll(cmd, f) {
		return nil
	}
	return agreed(cmd, "no index leads to these jobs: read the whole table, half a read unit for each 4 KB", "--scan does it")
}

// checkKnown refuses an unknown workflow, which tells more than an empty list. A stack names only the workflows that
// it was deployed with, so there another one is only reported.
func checkKnown(cmd *cobra.Command, o listOptions, workflow string, jobs api.Reader) error {
	workflows, err := jobs.Workflows(cmd.Context())
	if err != nil {
		return failed(cmd, err)
	}
	known := names(workflows)
	switch {
	case slices.Contains(known, workflow):
		return nil
	case o.data == "" && o.stackName(cmd) != "":
		fmt.Fprintf(cmd.ErrOrStderr(), "the stack was not deployed with a workflow %s, but with %v; it may have been published since\n", workflow, known)
		return nil
	case o.data != "":
		return exit(codeUsage, fmt.Errorf("there is no workflow %s: no engine on %s had one", workflow, o.data))
	}
	return exit(codeUsage, fmt.Errorf("there is no workflow %s; there are %v", workflow, known))
}

// readList reads as many jobs of a list as are asked for, whether there are more, and whether others were read to
// find them. Each comes once, although a job may be listed twice when its key moves during the read.
func readList(read reads, filter api.Filter, limit int) (found []api.Listed, more, scanned bool, err error) {
	found = []api.Listed{}
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := read(filter, cursor)
		if err != nil {
			return nil, false, false, err
		}
		scanned = scanned || page.Scanned
		for _, job := range page.Jobs {
			if !seen[job.ID] && len(found) == limit {
				return found, true, scanned, nil
			}
			if !seen[job.ID] {
				found = append(found, job)
			}
			seen[job.ID] = true
		}
		// A page may be empty before the end; only further reads would tell whether more jobs follow.
		if cursor = page.Cursor; cursor == "" || len(found) == limit {
			return found, cursor != "", scanned, nil
		}
	}
}

func printList(w io.Writer, jobs []api.Listed) {
	if len(jobs) == 0 {
		fmt.Fprintln(w, "no jobs")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading, reported := "", make([]string, len(jobs))
	for i, j := range jobs {
		if reported[i] = reportOf(j); reported[i] != "" {
			heading, reported[i] = "\tREPORTED", "\t"+reported[i]
		}
	}
	fmt.Fprintln(table, "ID\tWORKFLOW\tSTATE\tFAILURES\tCREATED"+heading)
	for i, j := range jobs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s%s\n", j.ID, j.Workflow, j.ProcessState, j.FailureCount, moment(&j.CreatedAt), reported[i])
	}
	_ = table.Flush() // a closed standard output is no error
}

// maxReportBytes is how much a list shows of what an attempt has reported.
const maxReportBytes = 60

// reportOf is the last progress report of the first attempt of a job that has one; empty: none has, or it is not known.
func reportOf(j api.Listed) string {
	if j.Job == nil {
		return ""
	}
	for _, s := range j.Job.Steps {
		for _, a := range []*makegood.Activity{&s.Activity, s.Undo} {
			if a != nil && a.Progress != nil {
				return s.Name + " " + limits.Shorten(plain.Line(string(a.Progress.Value)), maxReportBytes)
			}
		}
	}
	return ""
}
