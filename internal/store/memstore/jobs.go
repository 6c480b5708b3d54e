package memstore

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Create stores a new job; see store.Jobs.
func (s *Store) Create(_ context.Context, j job.Job) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	born, err := store.Created(s.jobs[j.ID].job, j)
	if err != nil {
		return err
	}
	s.put(item{job: born})
	return nil
}

// Load reads a job; see store.Jobs.
func (s *Store) Load(_ context.Context, id string) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, found := s.jobs[id]
	switch {
	case !found:
		return job.Job{}, store.ErrNotFound
	case stored.damaged:
		return job.Job{}, store.ErrDamaged
	}
	return stored.job.Clone(), s.Rules.Newer(stored.job)
}

// Save stores a changed job; see store.Jobs. A save that finds its own write has been made already: its answer was
// lost.
func (s *Store) Save(_ context.Context, change store.Change) error {
	if err := s.Rules.Newer(change.Job); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	stored := s.jobs[change.Job.ID].job
	if store.SavedBefore(stored, change.Job) {
		return nil
	}
	saved, err := store.Saved(stored, change)
	if err != nil {
		return err
	}
	s.put(item{job: saved})
	return nil
}

// Park puts a job in front of a person; see store.Jobs.
func (s *Store) Park(_ context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, found := s.jobs[id]
	if !found {
		return store.ErrNotFound
	}
	// A state that is not known keeps no job from being parked: parking does not decode.
	if err := s.Rules.Newer(job.Job{Needs: stored.job.Needs}); err != nil {
		return err
	}
	parked, err := store.Parked(stored.job, seen, reason, completeBy)
	if err != nil {
		return err
	}
	s.put(item{job: parked, damaged: stored.damaged})
	return nil
}

// put stores a job, apart from what the caller holds. s.writing is held.
func (s *Store) put(next item) {
	next.job = next.job.Clone()
	before := s.jobs[next.job.ID].job
	s.keep(next)
	if s.Wrote != nil {
		s.Wrote(before, next.job)
	}
}

// keep puts an item into its place. s.writing is held.
func (s *Store) keep(next item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[next.job.ID] = next
}
