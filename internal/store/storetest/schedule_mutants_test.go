package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// scheduling is a store whose methods for schedules may be replaced.
type scheduling struct {
	*model
	put    func(s store.Scheduled) error
	read   func(name string) (store.Scheduled, error)
	remove func(name string, rev int64) error
	list   func() ([]store.Scheduled, error)
	due    func(page []store.Entry) []store.Entry
}

func (h scheduling) PutSchedule(ctx context.Context, s store.Scheduled) error {
	if h.put != nil {
		return h.put(s)
	}
	return h.model.PutSchedule(ctx, s)
}

func (h scheduling) Schedule(ctx context.Context, name string) (store.Scheduled, error) {
	if h.read != nil {
		return h.read(name)
	}
	return h.model.Schedule(ctx, name)
}

func (h scheduling) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	if h.remove != nil {
		return h.remove(name, rev)
	}
	return h.model.RemoveSchedule(ctx, name, rev)
}

func (h scheduling) ListSchedules(ctx context.Context) ([]store.Scheduled, error) {
	if h.list != nil {
		return h.list()
	}
	return h.model.ListSchedules(ctx)
}

func (h scheduling) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	page, err := h.model.Due(ctx, shard, now, after, limit)
	if h.due != nil {
		page = h.due(page)
	}
	return page, err
}

func scheduleMutants() map[string]mutant {
	ctx := context.Background()
	// as returns a store that puts something else.
	as := func(f func(m *model, s *store.Scheduled)) func(m *model) store.Store {
		return func(m *model) store.Store {
			return scheduling{model: m, put: func(s store.Scheduled) error {
				f(m, &s)
				return m.PutSchedule(ctx, s)
			}}
		}
	}
	return map[string]mutant{
		"a schedule loses its problem": {
			"a schedule is read as it was put, and counts its writes",
			as(func(_ *model, s *store.Scheduled) { s.Problem = "" }),
		},
		"a schedule is put over whatever is there": {
			"only one of two writes of a revision of a schedule wins",
			as(func(m *model, s *store.Scheduled) {
				stored, _ := m.Schedule(ctx, s.Name)
				s.Rev = stored.Rev
			}),
		},
		"a schedule that is there is made again": {
			"of many who make a schedule exactly one does",
			func(m *model) store.Store {
				return scheduling{model: m, put: func(s store.Scheduled) error { _ = m.PutSchedule(ctx, s); return nil }}
			},
		},
		"a schedule is removed whatever its revision": {
			"a schedule is removed at the revision seen, and made anew begins anew",
			func(m *model) store.Store {
				return scheduling{model: m, remove: func(name string, _ int64) error {
					stored, _ := m.Schedule(ctx, name)
					return m.RemoveSchedule(ctx, name, stored.Rev)
				}}
			},
		},
		"schedules are listed backwards": {
			"schedules are listed by their names",
			func(m *model) store.Store {
				return scheduling{model: m, list: func() ([]store.Scheduled, error) {
					all, err := m.ListSchedules(ctx)
					slices.Reverse(all)
					return all, err
				}}
			},
		},
		"what is not known of a schedule is dropped": {
			"what a later release stored of a schedule is kept",
			as(func(_ *model, s *store.Scheduled) { s.Kept = nil }),
		},
		"a schedule of a later release is taken for one of ours": {
			"a schedule that a later release must decide about is left",
			func(m *model) store.Store {
				return scheduling{model: m, read: func(name string) (store.Scheduled, error) {
					stored, _ := m.Schedule(ctx, name)
					return stored, nil
				}}
			},
		},
		"schedules are not in the index": {
			"a schedule is due at its key, and one without is not",
			func(m *model) store.Store {
				return scheduling{model: m, due: func(page []store.Entry) []store.Entry {
					return slices.DeleteFunc(page, func(e store.Entry) bool { return e.Schedule != "" })
				}}
			},
		},
		"what begins is not in the index": {
			"what begins at its key is found like all else",
			func(m *model) store.Store {
				return scheduling{model: m, due: func(page []store.Entry) []store.Entry {
					return slices.DeleteFunc(page, func(e store.Entry) bool {
						j, err := m.Load(ctx, e.Job)
						return err == nil && store.Begins(j)
					})
				}}
			},
		},
	}
}
