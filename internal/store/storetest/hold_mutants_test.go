package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// holding is a store whose methods for holds may be replaced.
type holding struct {
	*model
	born func(j job.Job)
	put  func(h store.Held) error
	jobs func(hold string, limit int) ([]string, error)
	due  func(page []store.Entry) []store.Entry
}

func (h holding) Create(ctx context.Context, j job.Job) error {
	if h.born != nil {
		h.born(j)
	}
	return h.model.Create(ctx, j)
}

func (h holding) PutHolds(ctx context.Context, held store.Held) error {
	if h.put != nil {
		return h.put(held)
	}
	return h.model.PutHolds(ctx, held)
}

func (h holding) HeldJobs(ctx context.Context, hold string, limit int) ([]string, error) {
	if h.jobs != nil {
		return h.jobs(hold, limit)
	}
	return h.model.HeldJobs(ctx, hold, limit)
}

func (h holding) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	page, err := h.model.Due(ctx, shard, now, after, limit)
	if h.due != nil {
		page = h.due(page)
	}
	return page, err
}

func holdMutants() map[string]mutant {
	ctx := context.Background()
	return map[string]mutant{
		"what is held is put over whatever is there": {
			"only one of two writes of a revision of what is held wins",
			func(m *model) store.Store {
				return holding{model: m, put: func(h store.Held) error {
					stored, _ := m.Holds(ctx, true)
					h.Rev = stored.Rev
					return m.PutHolds(ctx, h)
				}}
			},
		},
		"a hold loses its reason": {
			"what is held is read as it was put, and counts its writes",
			func(m *model) store.Store {
				return holding{model: m, put: func(h store.Held) error {
					h.Holds = slices.Clone(h.Holds)
					for i := range h.Holds {
						h.Holds[i].Reason = ""
					}
					return m.PutHolds(ctx, h)
				}}
			},
		},
		"a hold loses what a later release stored": {
			"what a later release stored of a hold is kept",
			func(m *model) store.Store {
				return holding{model: m, put: func(h store.Held) error {
					h.Holds = slices.Clone(h.Holds)
					for i := range h.Holds {
						h.Holds[i].Kept = ""
					}
					return m.PutHolds(ctx, h)
				}}
			},
		},
		"what is held is never due": {
			"what is held is due when the next of its jobs go on, and else not",
			func(m *model) store.Store {
				return holding{model: m, due: func(page []store.Entry) []store.Entry {
					return slices.DeleteFunc(page, func(e store.Entry) bool { return e.Holds })
				}}
			},
		},
		"held jobs come newest first": {
			"the jobs that a hold keeps still are found, oldest first",
			func(m *model) store.Store {
				return holding{model: m, jobs: func(hold string, limit int) ([]string, error) {
					ids, err := m.HeldJobs(ctx, hold, 1000)
					slices.Reverse(ids)
					return ids[:min(limit, len(ids))], err
				}}
			},
		},
		"jobs that went on are still found": {
			"a job that goes on, or is parked, is not found by what held it",
			func(m *model) store.Store {
				born := map[string][]string{}
				return holding{
					model: m, born: func(j job.Job) { born[j.HeldBy] = append(born[j.HeldBy], j.ID) },
					jobs: func(hold string, _ int) ([]string, error) { return born[hold], nil },
				}
			},
		},
	}
}
