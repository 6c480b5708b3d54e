package sqlitestore

import (
	"context"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// shared are the jobs of a store for callers that do not change them. Steps are large, and each save of a job copied
// all its steps twice: once for the cache, and once from the cache for the next load.
type shared struct{ *Store }

var _ store.Sharer = (*Store)(nil)

// Shared is what store.Sharer says.
func (s *Store) Shared() store.Jobs { return shared{s} }

// Create stores a new job; see store.Jobs.
func (s shared) Create(ctx context.Context, j job.Job) error { return s.createKept(ctx, j) }

// Load reads a job; see store.Jobs.
func (s shared) Load(ctx context.Context, id string) (job.Job, error) {
	if j, ok := s.cached(ctx, id); ok {
		return clipped(j), nil
	}
	return s.Reader.Load(ctx, id)
}

// Save stores a changed job; see store.Jobs.
func (s shared) Save(ctx context.Context, change store.Change) error { return s.saveKept(ctx, change) }

// clipped has a caller that appends to a list of a job get its own list: the end of a shared list may have room, which
// two callers would both take.
func clipped(j job.Job) job.Job {
	j.Steps, j.Untold = slices.Clip(j.Steps), slices.Clip(j.Untold)
	j.Requests, j.Answers = slices.Clip(j.Requests), slices.Clip(j.Answers)
	j.Former, j.Changes.Pending = slices.Clip(j.Former), slices.Clip(j.Changes.Pending)
	return j
}
