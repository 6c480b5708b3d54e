package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
)

// counting returns show with counts of items added to the steps with a map.
func (r *Reader) counting(show shows) shows {
	return func(ctx context.Context, j job.Job, held map[string]job.Claim, from view.Source) (makegood.Job, error) {
		v, err := show(ctx, j, held, from)
		if err == nil {
			err = r.countItems(ctx, j, v.Steps)
		}
		return v, err
	}
}

// countItems counts the items of steps of a job. There are no counts where its definition cannot be read.
func (r *Reader) countItems(ctx context.Context, j job.Job, steps []makegood.JobStep) (err error) {
	if !slices.ContainsFunc(steps, func(s makegood.JobStep) bool { return s.Child != "" }) {
		return nil
	}
	compiled, unread := r.definition(ctx, j.Definition)
	if unread != nil {
		return nil
	}
	counter := view.CountItems(r.loadAny, time.Now())
	for _, s := range compiled.Workflow.Steps {
		i := slices.IndexFunc(steps, func(of makegood.JobStep) bool { return of.Name == s.Name })
		if s.Map == nil || i < 0 || steps[i].Child == "" {
			continue
		}
		if steps[i].Items, err = counter.Items(ctx, steps[i].Child, domain.ItemOf(s).Agent); err != nil {
			return err
		}
	}
	return nil
}

// loadAny reads a job, also one that a newer release wrote.
func (r *Reader) loadAny(ctx context.Context, id string) (job.Job, error) {
	j, err := r.reading.Store.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) {
		err = nil
	}
	return j, err
}
