package storetest

import (
	"context"
	"runtime"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func claimMutants() map[string]mutant {
	ctx := context.Background()
	// claiming gives a store whose claims go through f first, under the lock of nobody.
	claiming := func(f func(m *model, job makegood.Job, step string, c makegood.Claim) (done bool, err error)) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, claim: func(id, step string, c makegood.Claim) error {
				job, err := m.Load(ctx, id)
				if err == nil {
					if done, err := f(m, job, step, c); done {
						return err
					}
				}
				return m.Claim(ctx, id, step, c)
			}}
		}
	}
	afterClaim := func(f func(before makegood.Job, job *makegood.Job, step string, c makegood.Claim)) func(m *model) store.Store {
		return claiming(func(m *model, before makegood.Job, step string, c makegood.Claim) (bool, error) {
			err := m.Claim(ctx, before.ID, step, c)
			if err == nil {
				m.edit(before.ID, func(job *makegood.Job) { f(before, job, step, c) })
			}
			return true, err
		})
	}
	beating := func(f func(before makegood.Job, job *makegood.Job, step string, c makegood.Claim, err error) error) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, beat: func(id, step string, c makegood.Claim) error {
				before, _ := m.Load(ctx, id)
				err := m.Beat(ctx, id, step, c)
				if before.ID != "" {
					m.edit(id, func(job *makegood.Job) { err = f(before, job, step, c, err) })
				}
				return err
			}}
		}
	}
	return map[string]mutant{
		"a claim takes any slot": {
			"of two claims of an attempt the second is told that it is taken",
			claiming(func(m *model, job makegood.Job, step string, c makegood.Claim) (bool, error) {
				if job.Open[step] != c.Attempt {
					return false, nil
				}
				m.edit(job.ID, func(j *makegood.Job) { delete(j.Claims.Slots, step) })
				return false, nil
			}),
		},
		"a claim looks and then leaps": {
			"of many concurrent claims of an attempt exactly one wins",
			claiming(func(m *model, job makegood.Job, step string, c makegood.Claim) (bool, error) {
				if job.Open[step] != c.Attempt || job.Claims.Slots[step].LockedBy != "" {
					return false, nil
				}
				for range 100 {
					runtime.Gosched()
				}
				m.edit(job.ID, func(j *makegood.Job) {
					j.Claims.Slots = map[string]makegood.Claim{step: c}
					j.Claims.Rev++
				})
				return true, nil
			}),
		},
		"a claim ignores what is open": {
			"a late task of an attempt that was withdrawn cannot be claimed",
			claiming(func(m *model, job makegood.Job, step string, c makegood.Claim) (bool, error) {
				if job.Open[step] == 0 {
					m.edit(job.ID, func(j *makegood.Job) { j.Open = makeOpen(j.Open, step, c.Attempt) })
				}
				return false, nil
			}),
		},
		"a claim of an older attempt passes": {
			"a forward attempt cannot be claimed once its undo is open",
			claiming(func(m *model, job makegood.Job, step string, c makegood.Claim) (bool, error) {
				if c.Attempt < job.Open[step] && job.Claims.Slots[step].LockedBy == "" {
					m.edit(job.ID, func(j *makegood.Job) { j.Claims.Slots = map[string]makegood.Claim{step: c} })
					return true, nil
				}
				return false, nil
			}),
		},
		"a claim cannot replace an older slot": {
			"a claim of a newer attempt replaces the slot of an older one",
			claiming(func(_ *model, job makegood.Job, step string, c makegood.Claim) (bool, error) {
				held := job.Claims.Slots[step]
				return held.LockedBy != "" && held.Attempt < c.Attempt, store.ErrTaken
			}),
		},
		"a repeated claim raises Claims.Rev": {
			"a repeated claim succeeds and raises nothing",
			afterClaim(func(before makegood.Job, job *makegood.Job, step string, c makegood.Claim) {
				job.Claims.Rev = before.Claims.Rev + 1
			}),
		},
		"a repeated claim is refused": {
			"a repeated claim succeeds and raises nothing",
			claiming(func(_ *model, job makegood.Job, step string, _ makegood.Claim) (bool, error) {
				return job.Claims.Slots[step].LockedBy != "", store.ErrTaken
			}),
		},
		"a repeated claim is refused once withdrawn": {
			"a repeated claim succeeds after its attempt was withdrawn",
			claiming(func(_ *model, job makegood.Job, step string, c makegood.Claim) (bool, error) {
				return job.Open[step] != c.Attempt, store.ErrWithdrawn
			}),
		},
		"a claim raises the revision": {
			"a claim takes its slot and leaves the revision",
			afterClaim(func(_ makegood.Job, job *makegood.Job, _ string, _ makegood.Claim) { job.Rev++ }),
		},
		"a claim leaves a later key": {
			"a claim lowers a later CompleteBy",
			afterClaim(func(before makegood.Job, job *makegood.Job, _ string, _ makegood.Claim) {
				job.CompleteBy = before.CompleteBy
			}),
		},
		"a claim raises an earlier key": {
			"a claim leaves an earlier CompleteBy",
			afterClaim(func(_ makegood.Job, job *makegood.Job, _ string, c makegood.Claim) { job.CompleteBy = c.CompleteBy }),
		},
		"a claim takes other slots away": {
			"claims of several steps stand side by side",
			afterClaim(func(_ makegood.Job, job *makegood.Job, step string, c makegood.Claim) {
				job.Claims.Slots = map[string]makegood.Claim{step: c}
			}),
		},
		"a beat moves the key": {
			"a beat extends the slot and never the key",
			beating(func(_ makegood.Job, job *makegood.Job, _ string, c makegood.Claim, err error) error {
				if err == nil && c.CompleteBy.Before(job.CompleteBy) {
					job.CompleteBy = c.CompleteBy
				}
				return err
			}),
		},
		"a beat leaves Claims.Rev": {
			"a save that rests on the claims conflicts with a beat",
			beating(func(before makegood.Job, job *makegood.Job, _ string, _ makegood.Claim, err error) error {
				job.Claims.Rev = before.Claims.Rev
				return err
			}),
		},
		"a beat brings an ended slot back": {
			"a beat of an attempt that is over is refused",
			beating(func(before makegood.Job, job *makegood.Job, step string, c makegood.Claim, err error) error {
				if err != nil && before.Claims.Slots[step].LockedBy == "" {
					job.Claims.Slots = map[string]makegood.Claim{step: c}
					return nil
				}
				return err
			}),
		},
		"a beat of a withdrawn attempt extends nothing": {
			"a beat of a withdrawn attempt extends its claim and says so",
			beating(func(before makegood.Job, job *makegood.Job, step string, c makegood.Claim, err error) error {
				if before.Open[step] != c.Attempt {
					job.Claims = before.Claims
				}
				return err
			}),
		},
		"a beat of a withdrawn attempt does not say so": {
			"a beat of a withdrawn attempt extends its claim and says so",
			beating(func(before makegood.Job, _ *makegood.Job, step string, c makegood.Claim, err error) error {
				if before.Open[step] != c.Attempt && before.Claims.Slots[step].LockedBy == c.LockedBy {
					return nil
				}
				return err
			}),
		},
		"a beat extends another's claim": {
			"a beat of another's claim is refused",
			beating(func(_ makegood.Job, job *makegood.Job, step string, c makegood.Claim, err error) error {
				if held := job.Claims.Slots[step]; held.Attempt == c.Attempt && held.LockedBy != c.LockedBy {
					held.CompleteBy = c.CompleteBy
					job.Claims.Slots[step] = held
					return nil
				}
				return err
			}),
		},
	}
}

func otherMutants() map[string]mutant {
	ctx := context.Background()
	return map[string]mutant{
		"a create overwrites": {"only one of two creates of an id wins", func(m *model) store.Store {
			return hooked{model: m, create: func(job makegood.Job) error {
				m.mu.Lock()
				delete(m.jobs, job.ID)
				m.mu.Unlock()
				return m.Create(ctx, job)
			}}
		}},
		"a load gives away what is stored": {"the store shares nothing with its callers", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (makegood.Job, error) {
				if job, err := m.Load(ctx, id); err != nil {
					return job, err
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.jobs[id], nil
			}}
		}},
		"a load rounds to seconds": {"times keep their milliseconds", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (makegood.Job, error) {
				job, err := m.Load(ctx, id)
				if !job.CompleteBy.IsZero() {
					job.CompleteBy = job.CompleteBy.Truncate(time.Second)
				}
				return job, err
			}}
		}},
		"a load cuts long reasons": {"a job of 200 steps with long reasons is loaded as it was", func(m *model) store.Store {
			return hooked{model: m, load: func(id string) (makegood.Job, error) {
				job, err := m.Load(ctx, id)
				job.Reason = job.Reason[:min(255, len(job.Reason))]
				return job, err
			}}
		}},
		"a park ignores the key that was seen": {"a park conflicts when the key has moved", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, _ time.Time, reason string, key time.Time) error {
				m.mu.Lock()
				seen := m.jobs[id].CompleteBy
				m.mu.Unlock()
				return m.Park(ctx, id, seen, reason, key)
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
		"a park drops the claims": {"a parked job is in Error with its reason, and due at its new key", func(m *model) store.Store {
			return hooked{model: m, park: func(id string, seen time.Time, reason string, key time.Time) error {
				err := m.Park(ctx, id, seen, reason, key)
				if err == nil {
					m.edit(id, func(job *makegood.Job) { job.Claims = makegood.Claims{} })
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
