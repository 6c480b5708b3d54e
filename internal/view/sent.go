package view

import (
	"context"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// Redefined returns the times at which a job got another definition or input, and the times of entries that its
// history has lost: one may be such a change.
func Redefined(ctx context.Context, from Source, j job.Job) (at []time.Time, err error) {
	if j.History.Count == 0 {
		return nil, nil
	}
	pages, err := from.HistoryPages(ctx, j.ID)
	if err != nil {
		return nil, fmt.Errorf("history of job %s: %w", j.ID, err)
	}
	entries, gaps := j.History.Read(j.Birth, pages)
	for _, e := range entries {
		if e.Definition != "" || e.Input {
			at = append(at, e.At)
		}
		for _, g := range gaps {
			if g.To == e.N-1 {
				at = append(at, e.At) // The missing entries happened by then.
			}
		}
	}
	return at, nil
}
