package storetest

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

func saveRules() []rule {
	return []rule{
		{"a save raises the revision by one and the next load shows it", saveIsShown},
		{"only one of two saves of a revision wins", oneSave},
		{"only one of many concurrent saves of a revision wins", oneConcurrentSave},
		{"a save moves CompleteBy, or leaves it", keyMovesAndStays},
		{"a save that conflicts writes nothing", conflictWritesNothing},
	}
}

func saveIsShown(w *world) {
	j := w.create(w.job("a"))
	j.ProcessState, j.LockedBy, j.FailureCount = makegood.Error, "engine/1", 4
	j.Reason, j.PausedAt, j.FinishedAt = "no stock", w.base, w.at(time.Second)
	j.Requests, j.RemindAt, j.Unheard = []string{"cancel/1"}, w.at(time.Hour), 2
	j.Steps[0].Forward.State = job.Done
	j.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.Error, At: w.base, Operator: true}}
	want := j.Clone()
	want.Rev = 2
	j = w.mustSave(j)
	w.same("after a save", j, want)

	j.Requests, j.Untold, j.PausedAt, j.RemindAt = nil, nil, time.Time{}, time.Time{}
	want = j.Clone()
	want.Rev = 3
	w.same("after a save that takes things away", w.mustSave(j), want)
}

func oneSave(w *world) {
	j := w.create(w.job("a"))
	mine, yours := j.Clone(), j.Clone()
	mine.Reason, yours.Reason = "mine", "yours"
	w.want("first save", w.save(mine), nil)
	w.want("second save of the same revision", w.save(yours), store.ErrConflict)
	w.want("the first save again", w.save(mine), store.ErrConflict)
	future := j.Clone()
	future.Rev = 9
	w.want("save of a revision that is not there yet", w.save(future), store.ErrConflict)
	if got := w.load(j.ID); got.Reason != "mine" || got.Rev != 2 {
		w.Fatalf("got the save of %q as revision %d, want mine as 2", got.Reason, got.Rev)
	}
}

func oneConcurrentSave(w *world) {
	const many = 16
	j := w.create(w.job("a"))
	errs := atOnce(many, func(i int) error {
		mine := j.Clone()
		mine.FailureCount = i
		return w.save(mine)
	})
	won := winners(w, errs, store.ErrConflict)
	if got := w.load(j.ID); got.FailureCount != won || got.Rev != 2 {
		w.Fatalf("got the save of %d as revision %d, want that of %d as 2", got.FailureCount, got.Rev, won)
	}
}

// keyMovesAndStays: a key that is not moved need not be written, one that is must be.
func keyMovesAndStays(w *world) {
	j := w.create(w.job("a"))
	for _, key := range []time.Time{w.at(time.Hour), w.at(time.Second), {}, w.at(time.Minute)} {
		seen := j.CompleteBy
		j.CompleteBy = key
		w.want("save that moves CompleteBy", w.store.Save(w.ctx, store.Change{Job: j, Seen: seen}), nil)
		j = w.load(j.ID)
		w.sameTime("CompleteBy", j.CompleteBy, key)
		j = w.mustSave(j)
		w.sameTime("CompleteBy after a save that leaves it", j.CompleteBy, key)
	}
}

func conflictWritesNothing(w *world) {
	want := w.create(w.job("a"))
	stale := want.Clone()
	stale.ProcessState, stale.CompleteBy, stale.Birth, stale.Rev = makegood.Error, w.at(time.Hour), "another", 9
	w.want("save", w.store.Save(w.ctx, store.Change{Job: stale, Seen: want.CompleteBy}), store.ErrConflict)
	w.same("job after the conflict", w.load(want.ID), want)
}
