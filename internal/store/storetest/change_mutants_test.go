package storetest

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

func changeMutants() map[string]mutant {
	ctx := context.Background()
	saving := func(edit func(m *model, c *store.Change)) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				edit(m, &c)
				return m.Save(ctx, c)
			}}
		}
	}
	return map[string]mutant{
		"a save forgets what waits to be published": {"changes that wait to be published are kept with the job until a save drops them", saving(func(_ *model, c *store.Change) {
			c.Job.Changes.Pending = nil
		})},
		"a job carries few changes": {"as many changes as a job keeps, with reasons as long as can be, are kept", saving(func(_ *model, c *store.Change) {
			c.Job.Changes.Pending = c.Job.Changes.Pending[max(0, len(c.Job.Changes.Pending)-limits.MaxUnpublished/2):]
		})},
		"a save that lost leaves its changes": {"of two saves of a revision the changes of one are kept", func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				err := m.Save(ctx, c)
				if err != nil {
					edit(m, c.Job.ID, func(j *job.Job) { j.Changes = c.Job.Changes })
				}
				return err
			}}
		}},
		"a job that has ended is not due": {"a job at its end is due as long as its changes wait to be published, and no longer", saving(func(_ *model, c *store.Change) {
			if c.Job.ProcessState.Finished() {
				c.Job.CompleteBy = time.Time{}
			}
		})},
		"a park drops changes": {"a park leaves changes as they are", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, seen time.Time, reason string, key time.Time) error {
				err := m.Park(ctx, id, seen, reason, key)
				if err == nil {
					edit(m, id, func(j *job.Job) { j.Changes = job.Changes{} })
				}
				return err
			}}
		}},
	}
}
