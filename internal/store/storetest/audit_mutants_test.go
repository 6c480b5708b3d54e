package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func auditMutants() map[string]mutant {
	ctx := context.Background()
	// shown returns a store whose audits show something else; a job for which f returns false is left out.
	shown := func(f func(m *model, job *store.Audited) bool) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, audit: func(cursor string, limit int) ([]store.Audited, string, error) {
				page, next, err := m.AuditPage(ctx, cursor, limit)
				var jobs []store.Audited
				for _, job := range page {
					if f(m, &job) {
						jobs = append(jobs, job)
					}
				}
				return jobs, next, err
			}}
		}
	}
	return map[string]mutant{
		"an audit skips a job at the end of a page": {"an audit holds every job, in pages of any size", func(m *model) store.Store {
			return hooked{model: m, audit: func(cursor string, limit int) ([]store.Audited, string, error) {
				jobs, next, err := m.AuditPage(ctx, cursor, limit)
				if next != "" {
					jobs = slices.Delete(jobs, len(jobs)-1, len(jobs))
				}
				return jobs, next, err
			}}
		}},
		"an audit does not look into the index": {
			"an audit finds an unfinished job that has lost its key, until it has one again",
			shown(func(_ *model, job *store.Audited) bool { job.Indexed = true; return true }),
		},
		"an audit takes what has ended for lost": {
			"an audit finds nothing wrong with jobs as they are saved",
			shown(func(_ *model, job *store.Audited) bool { job.ProcessState = makegood.JobProcessing; return true }),
		},
		"an audit leaves damaged jobs out": {
			"an audit finds a job that was damaged and has no key",
			shown(func(m *model, job *store.Audited) bool {
				_, err := m.Load(ctx, job.Job)
				return !errors.Is(err, store.ErrDamaged)
			}),
		},
		"a place is kept by whoever comes": {"a place is kept by whoever saw the last one", func(m *model) store.Store {
			return hooked{model: m, keep: func(name, _, place string) error {
				seen, _ := m.Place(ctx, name) // memory never fails
				return m.KeepPlace(ctx, name, seen, place)
			}}
		}},
	}
}

func leaseMutants() map[string]mutant {
	ctx := context.Background()
	const extends = "a holder extends its lease"
	return map[string]mutant{
		"a lease never runs out": {"a lease has one holder until it runs out", func(m *model) store.Store {
			return hooked{model: m, take: func(name, holder string, now, until time.Time) error {
				return m.TakeLease(ctx, name, holder, now.Add(-time.Hour), until)
			}}
		}},
		"a lease runs out early": {"a lease has one holder until it runs out", func(m *model) store.Store {
			return hooked{model: m, take: func(name, holder string, now, until time.Time) error {
				return m.TakeLease(ctx, name, holder, now.Add(time.Millisecond), until)
			}}
		}},
		"a lease cannot be extended": {extends, func(m *model) store.Store {
			return hooked{model: m, take: func(name, holder string, now, until time.Time) error {
				return m.TakeLease(ctx, name, holder+now.String(), now, until)
			}}
		}},
		"a lease is never longer than ten seconds": {extends, func(m *model) store.Store {
			return hooked{model: m, take: func(name, holder string, now, until time.Time) error {
				return m.TakeLease(ctx, name, holder, now, now.Add(min(until.Sub(now), 10*time.Second)))
			}}
		}},
		"a lease is given up by anybody": {"a lease that is given up is free, and only its holder gives it up", func(m *model) store.Store {
			return hooked{model: m, give: func(name, _ string) error {
				const centuries = 200 * 365 * 24 * time.Hour
				return m.TakeLease(ctx, name, "nobody", time.Now().Add(centuries), time.Time{})
			}}
		}},
		"a lease is never given up": {"a lease that is given up is free, and only its holder gives it up", func(m *model) store.Store {
			return hooked{model: m, give: func(string, string) error { return nil }}
		}},
		"a lease is everybody's": {"of many who want a lease exactly one gets it", func(m *model) store.Store {
			return hooked{model: m, take: func(string, string, time.Time, time.Time) error { return nil }}
		}},
	}
}
