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

// withItems adds the counts of items to the steps with a map of a job that was shown without an error.
func (r *Reader) withItems(ctx context.Context, j job.Job, v makegood.Job, err error) (makegood.Job, error) {
	if err != nil || !slices.ContainsFunc(v.Steps, func(s makegood.JobStep) bool { return s.Child != "" }) {
		return v, err
	}
	counter := view.CountItems(r.loadAny, time.Now())
	itemOf := r.itemOf(ctx, j)
	for i := range v.Steps {
		s := &v.Steps[i]
		if agent := itemOf(s.Name); s.Child != "" && agent != "" {
			if s.Items, err = counter.Items(ctx, s.Child, agent); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// loadAny reads a job, also one that a newer release wrote.
func (r *Reader) loadAny(ctx context.Context, id string) (job.Job, error) {
	j, err := r.reading.Store.Load(ctx, id)
	if errors.Is(err, store.ErrNewer) {
		err = nil
	}
	return j, err
}

// itemOf returns the agent of the items of each step with a map; empty: the step has no map, or the definition of the
// job cannot be read.
func (r *Reader) itemOf(ctx context.Context, j job.Job) func(step string) string {
	none := func(string) string { return "" }
	ref, part := domain.MapRefOf(j.Definition)
	if !part {
		ref.Definition = j.Definition
	}
	definition, err := r.Definition(ctx, ref.Definition)
	if err != nil || part && domain.PartSize(ref.Items) == 1 {
		return none
	}
	return func(step string) string {
		if part {
			step = ref.Step
		}
		for _, s := range definition.Workflow.Steps {
			if s.Name == step && s.Map != nil {
				return domain.ItemOf(s).Agent
			}
		}
		return ""
	}
}
