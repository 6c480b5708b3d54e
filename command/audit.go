package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/api"
)

type auditOptions struct {
	remote
	data string
	mend bool
}

func newAudit() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Look for jobs that the index has lost",
		Long: `Look through all jobs for a wrong index entry, or none: unfinished jobs that no sweep
would find, entries that lead to no job, and jobs that stand still, though each of their steps is consistent,
until a sweep that comes too late. There should be none. The Supervisor looks for them too, a page at a time,
and puts them back; this looks at all jobs at once: at the process at --addr, at a deployed stack, or in the
folder that --data names, where it does not see jobs that stand still.

--mend puts the jobs back: their due work is done, and they are in the index again. It needs a
process or a stack; an engine that is started on a folder does it by itself.

Of a stack it reads the table through, payloads included: 4 KB for half a read unit.

Exit status: 0 no such job was found; 1 bad usage, or no such stack or folder; 2 some were found, mended or
not; 3 the API or AWS cannot be reached, or the walk was cut off.`,
		Example: `  makegood audit
  makegood audit --data ./data
  makegood audit --stack shop-prod --mend
  makegood audit --stack shop-prod --json | jq -r '.strays[].job'`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return audit(cmd, o) },
	}
	o.flags(cmd)
	dataFlag(cmd, &o.data)
	cmd.Flags().BoolVar(&o.mend, "mend", false, "put the found jobs back")
	cmd.MarkFlagsMutuallyExclusive("mend", "data")
	return cmd
}

// audited is what an audit found.
type audited struct {
	Audited int     `json:"audited"`
	Strays  []stray `json:"strays"`
}

// stray is a job that was found. Mended is null without a try to mend it.
type stray struct {
	api.Stray
	Mended *bool `json:"mended"`
}

func audit(cmd *cobra.Command, o auditOptions) error {
	jobs, closeJobs, err := o.jobs(cmd, o.data)
	if err != nil {
		return err
	}
	defer closeJobs()
	found := audited{Strays: []stray{}}
	progress := newBar(cmd.Context(), cmd.ErrOrStderr(), -1)
	for page, pageErr := range jobs.(auditing).Audit(cmd.Context()) {
		if pageErr != nil {
			err = failed(cmd, pageErr)
			break
		}
		found.Audited += page.Audited
		for _, s := range page.Strays {
			found.Strays = append(found.Strays, stray{Stray: s})
		}
		progress.ended(found.Audited)
	}
	progress.close()
	if err == nil && o.mend {
		err = mend(cmd, o, found.Strays)
	}
	return errors.Join(err, printAudit(cmd, o, found, err != nil))
}

// auditing has its jobs audited: a client does, and a folder.
type auditing interface {
	Audit(ctx context.Context) iter.Seq2[api.AuditPage, error]
}

// mend wakes the jobs that were found. If one cannot be mended, the others still are.
func mend(cmd *cobra.Command, o auditOptions, strays []stray) error {
	if len(strays) == 0 {
		return nil
	}
	c, err := o.client(cmd)
	if err != nil {
		return err
	}
	for i := range strays {
		_, err := c.Wake(cmd.Context(), strays[i].Job)
		if cmd.Context().Err() != nil {
			return failed(cmd, err)
		}
		if err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), err)
		}
		woken := err == nil
		strays[i].Mended = &woken
	}
	return nil
}

// printAudit prints the jobs that were found, as far as the walk came, and returns the exit code: whether there were
// any.
func printAudit(cmd *cobra.Command, o auditOptions, found audited, cut bool) error {
	if err := o.print(cmd, found, func(w io.Writer) { printStrays(w, found) }); err != nil {
		return err
	}
	if len(found.Strays) == 0 || cut {
		return nil
	}
	return exit(codeOtherwise, nil)
}

func printStrays(w io.Writer, found audited) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	mended := 0
	for _, s := range found.Strays {
		did := ""
		if s.Mended != nil && *s.Mended {
			did = "\tput back"
			mended++
		}
		fmt.Fprintf(table, "%s\t%s\t%s%s\n", s.Job, s.ProcessState, s.Why, did)
	}
	_ = table.Flush() // a closed standard output is no error
	fmt.Fprintf(w, "%s looked at, %d found astray, %d put back\n", count(found.Audited, "job"), len(found.Strays), mended)
}
