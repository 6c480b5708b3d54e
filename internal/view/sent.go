package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Asker is where it can be evaluated what a job has asked its agents.
type Asker interface {
	Job(ctx context.Context, id string) (job.Job, error)
	HistoryPages(ctx context.Context, job string) (map[string][]byte, error)
	SentInputs(ctx context.Context, id, step string, changed []time.Time) (makegood.SentInputs, error)
}

// SentInputs returns what the attempts of a job were asked, of one step or, where that is empty, of all. Whether that is as it was sent is
// taken from its history too. Errors are those of from.
func SentInputs(ctx context.Context, from Asker, id, step string) (makegood.SentInputs, error) {
	j, err := from.Job(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNewer) {
		return makegood.SentInputs{}, err
	}
	changed, err := redefined(ctx, from, j)
	if err != nil {
		return makegood.SentInputs{}, err
	}
	return from.SentInputs(ctx, id, step, changed)
}

// redefined are the times at which a job got another definition or another input, and those of the entries that its history does not
// have any more: one of them may be that.
func redefined(ctx context.Context, from Asker, j job.Job) (at []time.Time, err error) {
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
				at = append(at, e.At) // Whatever is missing happened by then.
			}
		}
	}
	return at, nil
}
