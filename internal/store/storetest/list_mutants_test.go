package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func listMutants() map[string]mutant {
	// asked returns a store that is asked for something else.
	asked := func(f func(filter *store.Filter, cursor *string)) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, list: func(filter store.Filter, cursor string, limit int) (store.Page, error) {
				f(&filter, &cursor)
				return m.ListJobs(context.Background(), filter, cursor, limit)
			}}
		}
	}
	// shown returns a store that shows something else; a job for which f returns false is left out.
	shown := func(f func(m *model, job *store.Listed) bool) func(m *model) store.Store {
		return func(m *model) store.Store {
			return hooked{model: m, list: func(filter store.Filter, cursor string, limit int) (store.Page, error) {
				page, err := m.ListJobs(context.Background(), filter, cursor, limit)
				page.Jobs = slices.DeleteFunc(page.Jobs, func(job store.Listed) bool { return !f(m, &job) })
				for i := range page.Jobs {
					f(m, &page.Jobs[i])
				}
				return page, err
			}}
		}
	}
	paged := "a list holds every job once, in pages of any size"
	filtered := "a list holds what its filter says, and nothing else"
	shows := "a list shows a job as it is: state, failures, key and birth"
	mutants := filterMutants(asked)
	maps.Copy(mutants, map[string]mutant{
		"a page skips a job": {paged, asked(func(f *store.Filter, cursor *string) {
			if place, _ := f.Open(*cursor); place != "" {
				// The id that follows in the test.
				last := len(place) - 1
				*cursor = f.Seal(place[:last] + string(place[last]+1))
			}
		})},
		"a page repeats a job": {paged, asked(func(f *store.Filter, cursor *string) {
			if place, _ := f.Open(*cursor); place != "" {
				*cursor = f.Seal(place[:len(place)-1])
			}
		})},
		"a list ends after a page": {paged, func(m *model) store.Store {
			return hooked{model: m, list: func(filter store.Filter, cursor string, limit int) (store.Page, error) {
				page, err := m.ListJobs(context.Background(), filter, cursor, limit)
				page.Cursor = ""
				return page, err
			}}
		}},
		"a list ignores the state": {filtered, asked(func(filter *store.Filter, _ *string) { filter.State = "" })},
		"a list of paused jobs holds all": {
			"a list of paused jobs holds those, in whatever state, and no others", asked(func(filter *store.Filter, _ *string) { filter.Paused = false }),
		},
		"a list ignores the workflow": {filtered, asked(func(filter *store.Filter, _ *string) { filter.Workflow = "" })},
		"a list shows no failures":    {shows, shown(func(_ *model, job *store.Listed) bool { job.FailureCount = 0; return true })},
		"a list shows no key":         {shows, shown(func(_ *model, job *store.Listed) bool { job.CompleteBy = job.CreatedAt; return true })},
		"a list shows the state of birth": {shows, shown(func(_ *model, job *store.Listed) bool {
			job.ProcessState = makegood.JobPending
			return true
		})},
		"a list leaves damaged jobs out": {"a job that was parked is listed in Error", shown(func(m *model, job *store.Listed) bool {
			_, err := m.Load(context.Background(), job.ID)
			return !errors.Is(err, store.ErrDamaged)
		})},
	})
	return mutants
}

// filterMutants forget a field of a filter each, or take a cursor of any list.
func filterMutants(asked func(f func(filter *store.Filter, cursor *string)) func(m *model) store.Store) map[string]mutant {
	mutants := map[string]mutant{"a cursor of another list is taken": {"a cursor of another list is refused", func(m *model) store.Store {
		return hooked{model: m, list: func(filter store.Filter, cursor string, limit int) (store.Page, error) {
			if _, err := filter.Open(cursor); err != nil {
				cursor = ""
			}
			return m.ListJobs(context.Background(), filter, cursor, limit)
		}}
	}}}
	for name, forget := range map[string]func(f *store.Filter){
		"Definition": func(f *store.Filter) { f.Definition = "" }, "Tenant": func(f *store.Filter) { f.Tenant = "" },
		"Labels": func(f *store.Filter) { f.Labels = nil }, "Step": func(f *store.Filter) { f.Step = "" },
		"Agent": func(f *store.Filter) { f.Agent = "" }, "ReasonPrefix": func(f *store.Filter) { f.ReasonPrefix = "" },
		"IDPrefix": func(f *store.Filter) { f.IDPrefix = "" }, "Roots": func(f *store.Filter) { f.Roots = false }, "Words": func(f *store.Filter) { f.Words = "" },
		"ReasonKind": func(f *store.Filter) { f.ReasonKind = "" }, "Since": func(f *store.Filter) { f.Since = time.Time{} },
		"Until": func(f *store.Filter) { f.Until = time.Time{} }, "Late": func(f *store.Filter) { f.Late = false },
		"LateWithin": func(f *store.Filter) { f.LateWithin = 0 }, "DueWithin": func(f *store.Filter) { f.DueWithin = 0 },
		"Now": func(f *store.Filter) { f.Now = f.Now.Add(-time.Hour) },
		"all labels but one": func(f *store.Filter) {
			if len(f.Labels) > 1 {
				f.Labels = map[string]string{"region": f.Labels["region"]}
			}
		},
	} {
		mutants["a list ignores "+name] = mutant{
			"a filter finds the jobs that its doc says, alone and beside every other",
			asked(func(f *store.Filter, cursor *string) {
				whole := *f
				forget(f)
				if place, err := whole.Open(*cursor); err == nil {
					*cursor = f.Seal(place)
				}
			}),
		}
	}
	return mutants
}
