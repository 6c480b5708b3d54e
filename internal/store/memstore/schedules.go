package memstore

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/makegood-dev/makegood/internal/store"
)

// PutSchedule stores a schedule; see store.Schedules.
func (s *Store) PutSchedule(_ context.Context, schedule store.Scheduled) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := schedule.PutOver(s.schedules[schedule.Name])
	if err == nil {
		s.schedules[schedule.Name] = next
	}
	return err
}

// Schedule reads a schedule; see store.Schedules.
func (s *Store) Schedule(_ context.Context, name string) (store.Scheduled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := valueOf(s.schedules, name)
	if err == nil && stored.Needs > store.ScheduleLevel {
		err = store.ErrNewer
	}
	return stored, err
}

// RemoveSchedule removes a schedule; see store.Schedules.
func (s *Store) RemoveSchedule(_ context.Context, name string, rev int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := valueOf(s.schedules, name)
	switch {
	case err != nil:
		return err
	case stored.Rev != rev:
		return store.ErrConflict
	}
	delete(s.schedules, name)
	return nil
}

// ListSchedules returns all schedules; see store.Schedules.
func (s *Store) ListSchedules(context.Context) ([]store.Scheduled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []store.Scheduled
	for _, stored := range s.schedules {
		all = append(all, stored)
	}
	slices.SortFunc(all, func(a, b store.Scheduled) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// scheduleKeys returns the keys of all schedules, zero where there is none, in no order. s.mu is held meanwhile.
func (s *Store) scheduleKeys() iter.Seq[store.Entry] {
	return func(yield func(store.Entry) bool) {
		for name, stored := range s.schedules {
			if !yield(store.Entry{CompleteBy: stored.Key, Schedule: name}) {
				return
			}
		}
	}
}
