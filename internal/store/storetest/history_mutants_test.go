package storetest

import (
	"context"
	"maps"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// unruly is a model whose histories are kept otherwise.
type unruly struct {
	*model
	put   func(job, key string, value []byte) error
	pages func(job string) (map[string][]byte, error)
	drop  func(job string, after, before int) error
	save  func(c store.Change) error
}

func (u unruly) PutPayload(ctx context.Context, id, key string, value []byte) error {
	if u.put != nil {
		return u.put(id, key, value)
	}
	return u.model.PutPayload(ctx, id, key, value)
}

func (u unruly) HistoryPages(ctx context.Context, id string) (map[string][]byte, error) {
	if u.pages != nil {
		return u.pages(id)
	}
	return u.model.HistoryPages(ctx, id)
}

func (u unruly) DropPages(ctx context.Context, id string, after, before int) error {
	if u.drop != nil {
		return u.drop(id, after, before)
	}
	return u.model.DropPages(ctx, id, after, before)
}

func (u unruly) Save(ctx context.Context, c store.Change) error {
	if u.save != nil {
		return u.save(c)
	}
	return u.model.Save(ctx, c)
}

func historyMutants() map[string]mutant {
	ctx := context.Background()
	return map[string]mutant{
		"pages of other jobs come along": {"the pages of a history are those of its job, and no other payloads", func(m *model) store.Store {
			all := map[string][]byte{}
			return unruly{model: m, pages: func(id string) (map[string][]byte, error) {
				pages, err := m.HistoryPages(ctx, id)
				maps.Copy(all, pages)
				return all, err
			}, put: func(id, key string, value []byte) error {
				all[key] = value
				return m.PutPayload(ctx, id, key, value)
			}}
		}},
		"a save that lost leaves its history": {"of two saves with a page the one that won is in the history", func(m *model) store.Store {
			return unruly{model: m, save: func(c store.Change) error {
				err := m.Save(ctx, c)
				if err != nil {
					edit(m, c.Job.ID, func(j *job.Job) { j.History = c.Job.History })
				}
				return err
			}}
		}},
		"a page is in the history before it is saved": {"what a lost save has written is no part of the history that goes on", func(m *model) store.Store {
			return unruly{model: m, put: func(id, key string, value []byte) error {
				err := m.PutPayload(ctx, id, key, value)
				edit(m, id, func(j *job.Job) {
					j.History = job.History{Count: j.History.Count + 2, Head: key[len(job.HistoryPrefix):]}
				})
				return err
			}}
		}},
		"a page is made up": {"a page that is gone or damaged leaves a gap, and the rest", func(m *model) store.Store {
			return unruly{model: m, put: func(id, key string, value []byte) error {
				if len(value) < 60 {
					return nil
				}
				return m.PutPayload(ctx, id, key, value)
			}}
		}},
		"a drop takes the ends along": {"of a long history the first and the last entries stay", func(m *model) store.Store {
			return unruly{model: m, drop: func(id string, after, before int) error { return m.DropPages(ctx, id, after-200, before+80) }}
		}},
		"a drop takes another job's pages": {"a dropped page takes nothing else along", func(m *model) store.Store {
			var ids []string
			return unruly{model: m, put: func(id, key string, value []byte) error {
				ids = append(ids, id)
				return m.PutPayload(ctx, id, key, value)
			}, drop: func(_ string, after, before int) error {
				for _, id := range ids {
					if err := m.DropPages(ctx, id, after, before); err != nil {
						return err
					}
				}
				return nil
			}}
		}},
		"a page is forgotten": {"a history is there with the save that names it", func(m *model) store.Store {
			return unruly{model: m, pages: func(string) (map[string][]byte, error) { return nil, nil }}
		}},
	}
}
