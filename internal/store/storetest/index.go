package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

func indexRules() []rule {
	return []rule{
		{"what is due comes oldest first and in pages, equal keys too", dueInOrder},
		{"a key that is after now is not due", afterNowNotDue},
		{"a finished job is not in the index", finishedNotInIndex},
		{"a job that waits for a person is in the index with its far key", waitingInIndex},
		{"a key that moves is found where it is, and only there", movedKey},
	}
}

func dueInOrder(w *world) {
	want := map[string]time.Time{}
	for i, after := range []time.Duration{5, 3, 3, 9, 3, 1, 3, 7, 3, 2, 3} {
		job := w.job(fmt.Sprint("a", i))
		job.CompleteBy = w.at(after * time.Second)
		w.create(job)
		want[job.ID] = job.CompleteBy
	}
	for _, limit := range []int{1, 2, 3, 100} {
		w.eventually(fmt.Sprintf("due in pages of %d", limit), func() (got, wanted any) { return w.due(w.at(time.Minute), limit), want })
	}
}

func afterNowNotDue(w *world) {
	job := w.create(w.job("a"))
	w.sees("due at its key", job.CompleteBy, map[string]time.Time{job.ID: job.CompleteBy})
	w.same("due a millisecond before its key", w.due(job.CompleteBy.Add(-time.Millisecond), 10), map[string]time.Time{})
}

func finishedNotInIndex(w *world) {
	job := w.create(w.job("a"))
	other := w.create(w.job("b"))
	born := w.job("c")
	born.CompleteBy = time.Time{}
	w.create(born)
	seen := job.CompleteBy
	job.ProcessState, job.CompleteBy = makegood.JobProcessed, time.Time{}
	w.want("save that finishes", w.store.Save(w.ctx, store.Change{Job: job, Seen: seen}), nil)
	w.sees("due", w.at(time.Hour), map[string]time.Time{other.ID: other.CompleteBy})
	w.sameTime("CompleteBy", w.load(job.ID).CompleteBy, time.Time{})

	job = w.load(job.ID)
	job.ProcessState, job.CompleteBy = makegood.JobUndoing, w.at(2*time.Second)
	w.want("save that takes it up again", w.store.Save(w.ctx, store.Change{Job: job}), nil)
	w.sees("due", w.at(time.Hour), map[string]time.Time{job.ID: w.at(2 * time.Second), other.ID: other.CompleteBy})
}

func waitingInIndex(w *world) {
	failed, paused := w.job("failed"), w.job("paused")
	failed.ProcessState, failed.CompleteBy = makegood.JobError, w.at(limits.FarKey)
	paused.PausedAt, paused.CompleteBy = w.base, w.at(limits.FarKey)
	w.create(failed)
	w.create(paused)
	w.sees("due", w.at(limits.FarKey), map[string]time.Time{failed.ID: failed.CompleteBy, paused.ID: paused.CompleteBy})
}

func movedKey(w *world) {
	job := w.create(w.job("a"))
	for _, key := range []time.Time{w.at(time.Hour), w.at(time.Second), w.at(30 * time.Second)} {
		seen := job.CompleteBy
		job.CompleteBy = key
		w.want("save", w.store.Save(w.ctx, store.Change{Job: job, Seen: seen}), nil)
		w.sees("due", w.at(2*time.Hour), map[string]time.Time{job.ID: key})
		job = w.load(job.ID)
	}
}

// sees waits until the index shows exactly these jobs of the test.
func (w *world) sees(what string, now time.Time, want map[string]time.Time) {
	w.Helper()
	w.eventually(what, func() (got, wanted any) { return w.due(now, 25), want })
}

// eventually waits until got is wanted, as long as the index may lag.
func (w *world) eventually(what string, f func() (got, wanted any)) {
	w.Helper()
	deadline := time.Now().Add(w.harness.Lag)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got, wanted := f()
		if fmt.Sprint(got) == fmt.Sprint(wanted) {
			return
		}
		if !time.Now().Before(deadline) {
			w.Fatalf("%s, after %v:\n got %v\nwant %v", what, w.harness.Lag, got, wanted)
		}
		<-tick.C
	}
}

// due reads the whole index up to now in pages, holds each page to its limit and all pages to their order, and returns
// the keys of this test's jobs.
func (w *world) due(now time.Time, limit int) map[string]time.Time {
	w.Helper()
	if n := w.store.Shards(); n < 1 {
		w.Fatalf("got %d shards, want at least 1", n)
	}
	mine := map[string]time.Time{}
	for shard := range w.store.Shards() {
		maps.Copy(mine, w.dueOfShard(shard, now, limit))
	}
	return mine
}

func (w *world) dueOfShard(shard int, now time.Time, limit int) map[string]time.Time {
	w.Helper()
	mine := map[string]time.Time{}
	var last store.Entry
	for {
		page, err := w.store.Due(w.ctx, shard, now, last, limit)
		if err != nil {
			w.Fatalf("due: %v", err)
		}
		if len(page) > limit {
			w.Fatalf("due: got %d entries, the limit is %d", len(page), limit)
		}
		ordered := slices.IsSortedFunc(page, func(a, b store.Entry) int { return a.CompleteBy.Compare(b.CompleteBy) })
		if !ordered || len(page) > 0 && page[0].CompleteBy.Before(last.CompleteBy) {
			w.Fatalf("due: after %v got %v, which is not in order", last, page)
		}
		for _, e := range page {
			// An index that lags may show a job at its old key and, on a later page, at its new one.
			if _, twice := mine[e.Job]; twice && w.harness.Lag == 0 {
				w.Fatalf("due: got %s twice", e.Job)
			}
			if e.CompleteBy.After(now) {
				w.Fatalf("due: got %v, which is after %v", e, now)
			}
			if strings.HasPrefix(e.Job, w.id("")) {
				mine[e.Job] = e.CompleteBy
			}
			last = e
		}
		if len(page) < limit {
			return mine
		}
	}
}
