package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/batch"
	"github.com/makegood-dev/makegood/internal/plain"
)

const (
	// maxShown is how many jobs in Error a summary names.
	maxShown = 10
	// maxReasons is how many reasons a summary gives for jobs that were undone or cancelled.
	maxReasons = 10
)

// stopped describes the state of a run that was cut off, and how to go on.
func stopped(err error, s batch.Summary, o runOptions) error {
	why := ""
	if !errors.Is(err, context.Canceled) {
		why = ": " + err.Error()
	}
	if s.Jobs == 0 {
		return fmt.Errorf("stopped%s\nThe input was not read to its end: no line was submitted", why)
	}
	next := "No job was kept; with --data FOLDER a run can be gone on with."
	if o.data != "" {
		next = fmt.Sprintf("The same command goes on with them: everything is kept in %s.", o.data)
	}
	return fmt.Errorf("stopped%s\n%d of %s at their end (%d Processed, %d Undone, %d Cancelled, %d in Error); %d not.\n%s",
		why, s.Ended(), areJobs(s.Jobs), s.Processed, s.Undone, s.Cancelled, s.Error, s.Jobs-s.Ended(), next)
}

func areJobs(n int) string {
	if n == 1 {
		return "1 job is"
	}
	return fmt.Sprintf("%d jobs are", n)
}

func printSummary(w io.Writer, s batch.Summary, asJSON bool) error {
	if asJSON {
		return writeJSON(w, s)
	}
	fmt.Fprintf(w, "%s in %.1f s\n", count(s.Jobs, "job"), s.Seconds)
	for _, row := range []struct {
		state makegood.ProcessState
		count int
	}{
		{makegood.JobProcessed, s.Processed},
		{makegood.JobUndone, s.Undone},
		{makegood.JobCancelled, s.Cancelled},
		{makegood.JobError, s.Error},
	} {
		if row.count > 0 || row.state == makegood.JobProcessed {
			fmt.Fprintf(w, "  %-10s %6d\n", row.state, row.count)
		}
		printReasons(w, s, row.state)
	}
	for i, p := range s.Problems {
		if i == maxShown {
			fmt.Fprintf(w, "  ... and %d more in Error\n", len(s.Problems)-maxShown)
			break
		}
		fmt.Fprintf(w, "  %s: %s\n", p.Job, plain.Line(p.Reason))
	}
	return nil
}

// printReasons says why jobs were turned round, the most frequent reason first.
func printReasons(w io.Writer, s batch.Summary, state makegood.ProcessState) {
	shown, rest := 0, 0
	for _, r := range s.Reasons {
		switch {
		case r.State != state:
		case shown == maxReasons:
			rest += r.Jobs
		default:
			shown++
			fmt.Fprintf(w, "    %6d  %s\n", r.Jobs, plain.Line(r.Reason))
		}
	}
	if rest > 0 {
		fmt.Fprintf(w, "    %6d  for other reasons\n", rest)
	}
}
