package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// scheduleRules hold a store that is a store.Schedules; they skip any other.
func scheduleRules() []rule {
	tidy := func(w *world, s store.Schedules) { w.Cleanup(func() { w.tidySchedules(s) }) }
	rules := rulesOf(tidy, []portRule[store.Schedules]{
		{"a schedule is read as it was put, and counts its writes", schedulePut},
		{"only one of two writes of a revision of a schedule wins", scheduleConflict},
		{"of many who make a schedule exactly one does", scheduleRace},
		{"a schedule is removed at the revision seen, and made anew begins anew", scheduleRemoved},
		{"schedules are listed by their names", schedulesListed},
		{"what a later release stored of a schedule is kept", scheduleKept},
		{"a schedule that a later release must decide about is left", scheduleNewer},
		{"a schedule is due at its key, and one without is not", scheduleDue},
	})
	return append(rules, rule{"what begins at its key is found like all else", beginningsDue})
}

// tidySchedules removes the schedules of the test. No test relies on it.
func (w *world) tidySchedules(s store.Schedules) {
	all, _ := s.ListSchedules(w.ctx)
	for _, one := range all {
		if strings.HasPrefix(one.Name, w.scheduleName("")) {
			_ = s.RemoveSchedule(w.ctx, one.Name, one.Rev)
		}
	}
}

func (w *world) scheduleName(name string) string { return "s" + w.prefix + "-" + name }

// schedule returns a schedule that may be put.
func (w *world) schedule(name string) store.Scheduled {
	return store.Scheduled{
		Schedule: makegood.Schedule{
			Name: w.scheduleName(name), Workflow: "order", Cron: "*/5 * * * *", Zone: "Europe/Berlin", Input: json.RawMessage(`{"at":"${ .time }"}`),
			Missed: makegood.MissedAll, AtMost: 3, Overlap: makegood.OverlapSkip,
		},
		Key: w.at(time.Minute), From: "order", CreatedAt: w.base, Next: w.at(time.Minute), LastFire: w.base, LastJob: "a:b", Skipped: 2,
		Problem: "it is broken", ChangedBy: "somebody",
	}
}

// putSchedule puts a schedule and returns it as it is read.
func (w *world) putSchedule(s store.Schedules, schedule store.Scheduled) store.Scheduled {
	w.Helper()
	w.want("put schedule", s.PutSchedule(w.ctx, schedule), nil)
	return w.readSchedule(s, schedule.Name)
}

func (w *world) readSchedule(s store.Schedules, name string) store.Scheduled {
	w.Helper()
	read, err := s.Schedule(w.ctx, name)
	w.want("read schedule", err, nil)
	return read
}

func schedulePut(w *world, s store.Schedules) {
	_, err := s.Schedule(w.ctx, w.scheduleName("a"))
	w.want("read what is not there", err, store.ErrNotFound)
	want := w.schedule("a")
	got := w.putSchedule(s, want)
	want.Rev = 1
	w.same("the schedule", got, want)
	want.PausedAt, want.Key, want.Problem = w.at(time.Second), time.Time{}, ""
	got = w.putSchedule(s, want)
	want.Rev = 2
	w.same("the schedule, paused", got, want)
}

func scheduleConflict(w *world, s store.Schedules) {
	first := w.putSchedule(s, w.schedule("a"))
	w.want("put as new once more", s.PutSchedule(w.ctx, w.schedule("a")), store.ErrConflict)
	first.LastJob = "the first"
	w.putSchedule(s, first)
	first.LastJob = "the second"
	w.want("put the same revision again", s.PutSchedule(w.ctx, first), store.ErrConflict)
	w.same("the last job", w.readSchedule(s, first.Name).LastJob, "the first")
	gone := w.schedule("b")
	gone.Rev = 4
	w.want("put over what is not there", s.PutSchedule(w.ctx, gone), store.ErrConflict)
}

func scheduleRace(w *world, s store.Schedules) {
	const many = 8
	won := make(chan int, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if s.PutSchedule(w.ctx, w.schedule("a")) == nil {
				won <- i
			}
		})
	}
	wg.Wait()
	w.same("how many won", len(won), 1)
}

func scheduleRemoved(w *world, s store.Schedules) {
	one := w.putSchedule(s, w.schedule("a"))
	w.want("remove another revision", s.RemoveSchedule(w.ctx, one.Name, one.Rev+1), store.ErrConflict)
	w.want("remove", s.RemoveSchedule(w.ctx, one.Name, one.Rev), nil)
	w.want("remove again", s.RemoveSchedule(w.ctx, one.Name, one.Rev), store.ErrNotFound)
	_, err := s.Schedule(w.ctx, one.Name)
	w.want("read", err, store.ErrNotFound)
	w.want("put over what was removed", s.PutSchedule(w.ctx, one), store.ErrConflict)
	w.same("its revision", w.putSchedule(s, w.schedule("a")).Rev, int64(1))
}

func schedulesListed(w *world, s store.Schedules) {
	var want []string
	for _, name := range []string{"b", "c", "a"} {
		want = append(want, w.putSchedule(s, w.schedule(name)).Name)
	}
	slices.Sort(want)
	all, err := s.ListSchedules(w.ctx)
	w.want("list schedules", err, nil)
	var got []string
	for _, one := range all {
		if strings.HasPrefix(one.Name, w.scheduleName("")) {
			got = append(got, one.Name)
			w.same("what is listed", one, w.readSchedule(s, one.Name))
		}
	}
	w.same("the names", got, want)
}

func scheduleKept(w *world, s store.Schedules) {
	one := w.schedule("a")
	one.Kept = map[string]json.RawMessage{"jitter": json.RawMessage(`{"max":"1m"}`)}
	one = w.putSchedule(s, one)
	one.LastJob = ""
	w.same("what is kept", w.putSchedule(s, one).Kept, map[string]json.RawMessage{"jitter": json.RawMessage(`{"max":"1m"}`)})
}

func scheduleNewer(w *world, s store.Schedules) {
	one := w.schedule("a")
	one.Needs = store.ScheduleLevel + 1
	w.want("put", s.PutSchedule(w.ctx, one), nil)
	read, err := s.Schedule(w.ctx, one.Name)
	w.want("read", err, store.ErrNewer)
	w.same("its workflow", read.Workflow, one.Workflow)
}

func scheduleDue(w *world, s store.Schedules) {
	seen := func(what string, now time.Time, want ...string) {
		w.Helper()
		slices.Sort(want)
		w.eventually(what, func() (got, wanted any) { return w.dueSchedules(now), want })
	}
	for i := range 5 {
		one := w.schedule(fmt.Sprint("at", i/2, "-", i))
		one.Key = w.at(time.Duration(i/2) * time.Minute)
		w.putSchedule(s, one)
	}
	never := w.schedule("never")
	never.Key = time.Time{}
	w.putSchedule(s, never)
	seen("due at first", w.at(0), "at0-0", "at0-1")
	seen("due a minute later", w.at(time.Minute), "at0-0", "at0-1", "at1-2", "at1-3")
	seen("due before", w.at(-time.Millisecond))
	one := w.readSchedule(s, w.scheduleName("at0-1"))
	one.Key = w.at(time.Hour)
	w.putSchedule(s, one)
	one = w.readSchedule(s, w.scheduleName("at0-0"))
	w.want("remove", s.RemoveSchedule(w.ctx, one.Name, one.Rev), nil)
	seen("due after one was moved and one removed", w.at(time.Minute), "at1-2", "at1-3")
}

// dueSchedules returns the names of this test's schedules that are due, read in pages of two.
func (w *world) dueSchedules(now time.Time) []string {
	var names []string
	for shard := range w.store.Shards() {
		for after := (store.Entry{CompleteBy: w.at(-time.Hour)}); ; {
			page, err := w.store.Due(w.ctx, shard, now, after, 2)
			w.want("due", err, nil)
			for _, e := range page {
				if name, mine := strings.CutPrefix(e.Schedule, w.scheduleName("")); mine {
					names = append(names, name)
				}
				after = e
			}
			if len(page) < 2 {
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// beginningsDue: wherever a store keeps the keys at which work begins, a sweep finds them, and one that becomes another
// kind of key with it.
func beginningsDue(w *world) {
	starts := w.job("starts")
	starts.StartAt, starts.CompleteBy = w.at(time.Minute), w.at(time.Minute)
	waits := w.job("waits")
	waits.CompleteBy = w.at(time.Minute)
	if !store.Begins(starts) || store.Begins(waits) {
		w.Fatalf("begins: got %v and %v, want true and false", store.Begins(starts), store.Begins(waits))
	}
	starts = w.create(starts)
	w.create(waits)
	want := map[string]time.Time{starts.ID: w.at(time.Minute), waits.ID: w.at(time.Minute)}
	w.sees("due", w.at(time.Hour), want)
	if b, ok := w.store.(store.Beginnings); ok {
		w.eventually("which is due where something begins", func() (got, wanted any) {
			var begins []string
			for shard := range w.store.Shards() {
				if b.OfBeginnings(shard) {
					for id := range w.dueOfShard(shard, w.at(time.Hour), 10) {
						begins = append(begins, id)
					}
				}
			}
			return begins, []string{starts.ID}
		})
	}
	seen := starts.CompleteBy
	starts.Steps[0].Forward = job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, At: w.at(time.Minute), LookAt: w.at(2 * time.Minute)}
	starts.CompleteBy = w.at(2 * time.Minute)
	w.want("save", w.store.Save(w.ctx, store.Change{Job: starts, Seen: seen}), nil)
	want[starts.ID] = starts.CompleteBy
	w.sees("due after it began", w.at(time.Hour), want)
}
