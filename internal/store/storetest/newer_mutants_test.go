package storetest

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

func newerMutants() map[string]mutant {
	ctx := context.Background()
	ofThisRelease := func(j job.Job) job.Job {
		j.Needs, j.Desired = 0, makegood.JobProcessed
		for i := range j.Steps {
			j.Steps[i].Forward.State = job.Done
		}
		return j
	}
	return map[string]mutant{
		"a save drops what it does not know": {"what a later release has stored survives, at every level", func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				c.Job = c.Job.Clone()
				c.Job.Steps[1].Undo.Kept = ""
				return m.Save(ctx, c)
			}}
		}},
		"a job of a later release is parked": {"a job that needs a later release is shown, and neither saved nor parked", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, seen time.Time, reason string, key time.Time) error {
				edit(m, id, func(j *job.Job) { j.Needs = 0 })
				return m.Park(ctx, id, seen, reason, key)
			}}
		}},
		"a job of a later release is saved": {"a job in a state of a later release is shown, and not saved", func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				c.Job = ofThisRelease(c.Job.Clone())
				return m.Save(ctx, c)
			}}
		}},
		"a job of a later release is nothing to be seen": {"a job in a state of a later release is shown, and not saved", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (job.Job, error) {
				j, err := m.Load(ctx, id)
				if err != nil {
					return job.Job{}, err
				}
				return j, nil
			}}
		}},
	}
}
