package memstore

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// Holds reads the holds; see store.Holds.
func (s *Store) Holds(context.Context, bool) (store.Held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	held.Holds = slices.Clone(held.Holds)
	return held, nil
}

// PutHolds stores the holds; see store.Holds.
func (s *Store) PutHolds(_ context.Context, h store.Held) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := h.PutOver(s.held)
	if err == nil {
		s.held = next
	}
	return err
}

// HeldJobs returns jobs that a hold keeps still, those born first first; see store.Holds.
func (s *Store) HeldJobs(_ context.Context, hold string, limit int) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []job.Job
	for _, stored := range s.jobs {
		if store.HeldName(stored.job) == hold {
			held = append(held, stored.job)
		}
	}
	slices.SortFunc(held, func(a, b job.Job) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	var ids []string
	for _, j := range held[:min(limit, len(held))] {
		ids = append(ids, j.ID)
	}
	return ids, nil
}

// CountHeld counts them; see store.Holds.
func (s *Store) CountHeld(ctx context.Context, hold string, most int) (int, error) {
	ids, err := s.HeldJobs(ctx, hold, most)
	return len(ids), err
}

// holdsKey returns the key of the holds being released. s.mu is held meanwhile.
func (s *Store) holdsKey() iter.Seq[store.Entry] {
	return func(yield func(store.Entry) bool) {
		yield(store.Entry{CompleteBy: s.held.Key(), Holds: true})
	}
}
