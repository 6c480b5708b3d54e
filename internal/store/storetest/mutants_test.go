package storetest

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

func otherMutants() map[string]mutant {
	ctx := context.Background()
	return map[string]mutant{
		"a create overwrites": {"only one of two creates of an id wins", func(m *model) store.Store {
			return hooked{model: m, create: func(j job.Job) error {
				j.Rev = 1
				m.Overwrite(j)
				return nil
			}}
		}},
		"a load gives away what is stored": {"the store shares nothing with its callers", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (job.Job, error) {
				if j, err := m.Load(ctx, id); err != nil {
					return j, err
				}
				j, _ := m.Stored(id)
				return j, nil
			}}
		}},
		"a load rounds to seconds": {"times keep their milliseconds", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (job.Job, error) {
				j, err := m.Load(ctx, id)
				if !j.CompleteBy.IsZero() {
					j.CompleteBy = j.CompleteBy.Truncate(time.Second)
				}
				return j, err
			}}
		}},
		"a load cuts long reasons": {"a job of 200 steps with long reasons is loaded as it was", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (job.Job, error) {
				j, err := m.Load(ctx, id)
				j.Reason = j.Reason[:min(255, len(j.Reason))]
				return j, err
			}}
		}},
		"a load gives the first output of a step that was done again": {"a job of 200 steps is loaded as it was after each save, when steps are done again and saves are lost, too", func(m *model) store.Store {
			first := map[string]job.Payload{}
			return hooked{model: m, load: func(id string) (job.Job, error) {
				j, err := m.Load(ctx, id)
				for i := range j.Steps {
					s := &j.Steps[i]
					if s.Attempt == 1 {
						first[s.Name] = s.Forward.Output
					}
					if s.Attempt > 1 {
						s.Forward.Output = first[s.Name]
					}
				}
				return j, err
			}}
		}},
		"a save that lost leaves the end of a step": {"a job of 200 steps is loaded as it was after each save, when steps are done again and saves are lost, too", func(m *model) store.Store {
			return hooked{model: m, save: func(c store.Change) error {
				err := m.Save(ctx, c)
				if err != nil && len(c.Job.Steps) > 3 {
					edit(m, c.Job.ID, func(j *job.Job) { j.Steps[0].Forward.Output = c.Job.Steps[0].Forward.Output })
				}
				return err
			}}
		}},
		"a load cuts the errors of what is tried again": {"a job of 200 steps that are tried again after long errors is kept as it is, and can be parked", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (job.Job, error) {
				j, err := m.Load(ctx, id)
				for i := range j.Steps {
					if e := j.Steps[i].Undo.Error; e != nil && j.Steps[i].Undo.State == job.Backoff {
						short := *e
						short.Message = short.Message[:min(100, len(short.Message))]
						j.Steps[i].Undo.Error = &short
					}
				}
				return j, err
			}}
		}},
		"a park drops what fills the item": {"a job whose item is full is parked, and keeps what is known of its steps", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, seen time.Time, reason string, key time.Time) error {
				edit(m, id, func(j *job.Job) {
					for i := range j.Steps {
						if j.Steps[i].Forward.State == job.Backoff {
							j.Steps[i].Forward.Error = nil
						}
					}
				})
				return m.Park(ctx, id, seen, reason, key)
			}}
		}},
		"a park ignores the key that was seen": {"a park conflicts when the key has moved", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, _ time.Time, reason string, key time.Time) error {
				stored, _ := m.Stored(id)
				return m.Park(ctx, id, stored.CompleteBy, reason, key)
			}}
		}},
		"a park must decode": {"a damaged job is parked without decoding, and not due before its new key", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, seen time.Time, reason string, key time.Time) error {
				if _, err := m.Load(ctx, id); err != nil {
					return err
				}
				return m.Park(ctx, id, seen, reason, key)
			}}
		}},
		"a park leaves the revision": {"a park raises the revision, so a save of before it conflicts", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, seen time.Time, reason string, key time.Time) error {
				err := m.Park(ctx, id, seen, reason, key)
				if err == nil {
					edit(m, id, func(j *job.Job) { j.Rev-- })
				}
				return err
			}}
		}},
		"due starts over": {"what is due comes oldest first and in pages, equal keys too", func(m *model) store.Store {
			return hooked{model: m, due: func(now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
				return m.Due(ctx, 0, now, store.Entry{CompleteBy: after.CompleteBy}, limit)
			}}
		}},
		"due skips equal keys": {"what is due comes oldest first and in pages, equal keys too", func(m *model) store.Store {
			return hooked{model: m, due: func(now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
				return m.Due(ctx, 0, now, store.Entry{CompleteBy: after.CompleteBy, Job: "\xff"}, limit)
			}}
		}},
		"due forgets the last moment": {"a key that is after now is not due", func(m *model) store.Store {
			return hooked{model: m, due: func(now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
				return m.Due(ctx, 0, now.Add(time.Millisecond), after, limit)
			}}
		}},
	}
}
