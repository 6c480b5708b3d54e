package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// auditRules hold a store that is a store.Auditor, and one that is a store.Places; they skip any other.
func auditRules() []rule {
	audits := onlyOf[store.Auditor]([]rule{
		{"an audit holds every job, in pages of any size", auditInPages},
		{"an audit finds an unfinished job that has lost its key, until it has one again", auditFindsLost},
		{"an audit finds nothing wrong with jobs as they are saved", auditFindsNothing},
		{"an audit finds a job that was damaged and has no key", auditFindsDamaged},
		{"an audit comes by every schedule that is in the index", auditSchedules},
	})
	return append(audits, rule{"a place is kept by whoever saw the last one", placeKept})
}

// audit walks to the end, holds no page to be longer than its limit, and returns this test's jobs.
func (w *world) audit(limit int) map[string]store.Audited {
	w.Helper()
	mine := map[string]store.Audited{}
	w.auditPages(limit, func(a store.Audited) {
		if strings.HasPrefix(a.Job, w.id("")) {
			mine[a.Job] = a
		}
	})
	return mine
}

func (w *world) auditPages(limit int, see func(store.Audited)) {
	w.Helper()
	for cursor, pages := "", 0; ; pages++ {
		page, next, err := w.store.(store.Auditor).AuditPage(w.ctx, cursor, limit)
		if err != nil {
			w.Fatalf("audit: %v", err)
		}
		if len(page) > limit {
			w.Fatalf("audit: got %d items, the limit is %d", len(page), limit)
		}
		for _, a := range page {
			if (a.Job == "") == (a.Schedule == "") {
				w.Errorf("audit: got %+v, want a job or a schedule", a)
			}
			if a.Told && a.Untold || (a.Told || a.Untold) && !a.ProcessState.Finished() {
				w.Errorf("audit: got %+v, want one that has ended and everybody was told of, or somebody was not, or neither", a)
			}
			see(a)
		}
		if next == "" {
			return
		}
		if cursor = next; pages > 100_000 {
			w.Fatalf("audit: no end after %d pages", pages)
		}
	}
}

// auditSchedules: an audit comes by each schedule that is in the index, with its key, and by none that is not.
func auditSchedules(w *world) {
	s := also[store.Schedules](w)
	w.create(w.job("beside"))
	want := map[string]time.Time{}
	for n := range 5 {
		sched := w.schedule(fmt.Sprint("s", n))
		sched.Key = w.at(time.Duration(n) * time.Hour)
		if n == 2 {
			sched.Key = time.Time{}
		} else {
			want[sched.Name] = sched.Key
		}
		w.putSchedule(s, sched)
	}
	for _, limit := range []int{1, 2, 1000} {
		w.eventually(fmt.Sprintf("schedules in pages of %d", limit), func() (got, wanted any) {
			found := map[string]time.Time{}
			w.auditPages(limit, func(a store.Audited) {
				if strings.HasPrefix(a.Schedule, w.scheduleName("")) {
					found[a.Schedule] = a.CompleteBy
					if a.Stray() != "" || a.FarOff(a.CompleteBy.Add(-time.Hour)) || !a.FarOff(a.CompleteBy.Add(-time.Hour-1)) {
						w.Errorf("audit: got %+v, want no stray, and far off where it is more than an hour ahead", a)
					}
				}
			})
			return found, want
		})
	}
}

// strays waits for an audit to find these strays, by the ids of this test's jobs.
func (w *world) strays(what string, want map[string]store.Stray) {
	w.Helper()
	w.eventually(what, func() (got, wanted any) {
		found := map[string]store.Stray{}
		for id, a := range w.audit(1000) {
			if s := a.Stray(); s != "" {
				found[id] = s
			}
		}
		return found, want
	})
}

func auditInPages(w *world) {
	want := map[string]bool{}
	for i := range 7 {
		want[w.create(w.job(fmt.Sprint("a", i))).ID] = true
	}
	for _, limit := range []int{2, 7, 1000} {
		w.eventually(fmt.Sprintf("jobs in pages of %d", limit), func() (got, wanted any) {
			seen := map[string]bool{}
			for id := range w.audit(limit) {
				seen[id] = true
			}
			return seen, want
		})
	}
	page, next, err := w.store.(store.Auditor).AuditPage(w.ctx, "", 0)
	if err != nil || len(page) > 1 || next == "" {
		w.Errorf("a limit below one: got %d items, the cursor %q, %v, want one at most, and more pages", len(page), next, err)
	}
	_, _, err = w.store.(store.Auditor).AuditPage(w.ctx, "no page of this store", 10)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.Errorf("a cursor that no page gave: got %v, want %v", err, store.ErrNotFound)
	}
}

func auditFindsLost(w *world) {
	j, sound := w.create(w.job("lost")), w.create(w.job("sound"))
	w.strays("at first", map[string]store.Stray{})
	j = w.rekey(j, time.Time{})
	w.strays("without its key", map[string]store.Stray{j.ID: store.StrayUnfinished})
	w.rekey(j, w.at(time.Minute))
	w.strays("with one again", map[string]store.Stray{})
	w.eventually("the key of the other", func() (got, wanted any) { return w.audit(1000)[sound.ID].CompleteBy, sound.CompleteBy })
}

// rekey saves a job with another key.
func (w *world) rekey(j job.Job, key time.Time) job.Job {
	w.Helper()
	seen := j.CompleteBy
	j.CompleteBy = key
	w.want("save", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
	return w.load(j.ID)
}

func auditFindsNothing(w *world) {
	var saved []job.Job
	for _, state := range domain.ProcessStates() {
		j := w.create(w.job(string(state)))
		j.ProcessState = state
		if state.Finished() {
			j.FinishedAt, j.Seq = w.at(time.Second), 1
			j.Untold = []job.Announcement{{Seq: 1, ProcessState: state, At: w.base, Operator: true}}
		}
		saved = append(saved, w.mustSave(j))
	}
	w.strays("all states, and nobody was told", map[string]store.Stray{})
	for _, j := range saved {
		if j.ProcessState.Finished() {
			j.Untold = nil
			w.rekey(j, time.Time{})
		}
	}
	w.strays("all states", map[string]store.Stray{})
}

func auditFindsDamaged(w *world) {
	j := w.create(w.job("a"))
	j = w.rekey(j, time.Time{})
	w.harness.Damage(j.ID)
	w.strays("damaged", map[string]store.Stray{j.ID: store.StrayUnfinished})
	w.want("park", w.store.Park(w.ctx, j.ID, time.Time{}, "cannot be decoded", w.at(time.Minute)), nil)
	w.strays("parked", map[string]store.Stray{})
}

func placeKept(w *world) {
	places := also[store.Places](w)
	name := w.id("walk")
	is := func(want string) {
		w.Helper()
		w.eventually("place", func() (got, wanted any) {
			place, err := places.Place(w.ctx, name)
			w.want("place", err, nil)
			return place, want
		})
	}
	is("")
	w.want("keep the first", places.KeepPlace(w.ctx, name, "", "a"), nil)
	is("a")
	w.want("keep what another has", places.KeepPlace(w.ctx, name, "", "b"), store.ErrConflict)
	w.want("keep the second", places.KeepPlace(w.ctx, name, "a", "b"), nil)
	is("b")
	w.want("keep the end", places.KeepPlace(w.ctx, name, "b", ""), nil)
	is("")
	w.want("begin again", places.KeepPlace(w.ctx, name, "", "c"), nil)
	is("c")
}
