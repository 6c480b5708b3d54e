package command

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/plain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// blockersEvery is the time between two reads of the jobs below a watched job. Their changes do not change that job.
const blockersEvery = 2 * time.Second

// watched is a job with the jobs below it that stand before a person.
type watched struct {
	makegood.Job
	WaitsFor []protocol.Blocker `json:"waitsFor,omitempty"`
}

// waits names in one line the jobs that the job waits for; empty: none.
func (w watched) waits() string {
	all := make([]string, len(w.WaitsFor))
	for i, b := range w.WaitsFor {
		all[i] = plain.Line(b.String())
	}
	return strings.Join(all, "; ")
}

// line shows in one line the job, its steps, and the jobs that it waits for.
func (w watched) line() string {
	line := headline(w.Job) + changes(w.Job)
	if waits := w.waits(); waits != "" {
		line += "  " + waits
	}
	return line
}

// watchWithBlockers returns a job after each change, as Watch does, and also when another job below it stands before a
// person.
func watchWithBlockers(ctx context.Context, jobs api.Jobs, id string) iter.Seq2[watched, error] {
	var last watched
	var due time.Time
	reads := protocol.BlockerReads{Look: jobs.Look, Definition: readOnce(jobs.Definition)}
	return protocol.Polled(ctx, id, func(ctx context.Context, id string) (watched, error) {
		job, err := jobs.Look(ctx, id)
		if err != nil {
			return watched{Job: job}, err
		}
		if now := time.Now(); job.AtEnd() || !now.Before(due) {
			last.WaitsFor, due = protocol.Blockers(ctx, reads, job), now.Add(blockersEvery)
		}
		return watched{job, last.WaitsFor}, nil
	})
}

// readOnce returns a function that reads each definition once.
func readOnce(read func(context.Context, string) (api.Definition, error)) func(context.Context, string) (api.Definition, error) {
	known := map[string]api.Definition{}
	return func(ctx context.Context, hash string) (api.Definition, error) {
		if d, is := known[hash]; is {
			return d, nil
		}
		d, err := read(ctx, hash)
		if err == nil {
			known[hash] = d
		}
		return d, err
	}
}

// waitTelling waits for the end of a job, and says on standard error when it waits for a job below it that stands
// before a person.
func waitTelling(cmd *cobra.Command, jobs api.Jobs, id string) (makegood.Job, error) {
	told := ""
	for job, err := range watchWithBlockers(cmd.Context(), jobs, id) {
		if err != nil {
			return makegood.Job{}, err
		}
		if waits := job.waits(); waits != told {
			told = waits
			if waits != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), id, waits)
			}
		}
	}
	return jobs.Wait(cmd.Context(), id)
}
