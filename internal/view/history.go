package view

import (
	"cmp"
	"context"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// addHistory adds the history of a job that has one, which takes a read; that of one that goes well takes none.
func addHistory(ctx context.Context, v *makegood.Job, j job.Job, from Source) error {
	if j.History.Count == 0 {
		return nil
	}
	pages, err := from.HistoryPages(ctx, j.ID)
	if err != nil {
		return fmt.Errorf("history of job %s: %w", j.ID, err)
	}
	entries, gaps := j.History.Read(j.Birth, pages)
	for _, e := range entries {
		v.History = append(v.History, entry(e))
	}
	for _, g := range gaps {
		v.HistoryGaps = append(v.HistoryGaps, makegood.HistoryGap(g))
	}
	return nil
}

func entry(e job.Numbered) makegood.Entry {
	return makegood.Entry{
		N: e.N, At: e.At.UTC(), Kind: e.Kind, Step: e.Step, Undo: e.Undo, Attempt: e.Attempt,
		StartedAt: moment(e.StartedAt), LockedBy: e.LockedBy, Error: failure(e.Error), Failure: e.Failure,
		By: e.By, Verb: e.Verb, Reason: e.Reason, State: e.State, Round: e.Round, StartAt: moment(e.StartAt),
		Definition: e.Definition, Input: e.Input, Timeout: e.Timeout, Concurrency: e.Concurrency, Tolerate: e.Tolerate, As: e.As, Items: e.Items, Indexes: string(e.Indexes),
	}
}

// failure is why an attempt failed; nil: it did not.
func failure(e *job.StepError) *makegood.StepError {
	if e == nil {
		return nil
	}
	return &makegood.StepError{Message: e.Message, Retryable: e.Retryable, Kind: e.Kind, Applied: cmp.Or(e.Applied, makegood.AppliedUnknown)}
}
