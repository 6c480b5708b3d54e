package storetest

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
)

func saveRules() []rule {
	return []rule{
		{"a save raises the revision by one and the next load shows it", saveIsShown},
		{"only one of two saves of a revision wins", oneSave},
		{"only one of many concurrent saves of a revision wins", oneConcurrentSave},
		{"a save moves CompleteBy, or leaves it", keyMovesAndStays},
		{"a save that conflicts writes nothing", conflictWritesNothing},
		{"what a job has cost is kept as it is given, where nobody counts", spentKept},
		{"a store that counts keeps what it tells the account, and nothing of a save that lost", spentCounted},
	}
}

func saveIsShown(w *world) {
	j := w.create(w.job("a"))
	j.ProcessState, j.LockedBy, j.FailureCount = makegood.JobError, "engine/1", 4
	j.Reason, j.PausedAt, j.FinishedAt = "no stock", w.base, w.at(time.Second)
	j.Requests, j.RemindAt, j.Unheard = []string{"cancel/1"}, w.at(time.Hour), 2
	j.Steps[0].Forward.State = job.Done
	j.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.JobError, At: w.base, Operator: true}}
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
	stale.ProcessState, stale.CompleteBy, stale.Birth, stale.Rev = makegood.JobError, w.at(time.Hour), "another", 9
	w.want("save", w.store.Save(w.ctx, store.Change{Job: stale, Seen: want.CompleteBy}), store.ErrConflict)
	w.same("job after the conflict", w.load(want.ID), want)
}

// spent is a count with numbers that each have a length of their own.
func spent() job.Spent {
	return job.Spent{Writes: 3, HalfReads: 400, Requests: 50_000 * job.SpentParts, Invocations: 7, GBMicros: 1 << 45}
}

func spentKept(w *world) {
	given := w.job("a")
	given.Spent = spent()
	j := w.create(given)
	w.same("created", j.Spent, spent())
	j.Spent.GBMicros = 0
	want := j.Spent
	j = w.mustSave(j)
	w.same("saved", j.Spent, want)
	j.Spent = job.Spent{Invocations: 1}
	j = w.mustSave(j)
	w.same("saved with one number of five", j.Spent, job.Spent{Invocations: 1})
	w.same("what nobody counted", w.create(w.job("b")).Spent, job.Spent{})
}

// spentCounted goes as a Scheduler does: the usage due is put on the job, told to the account, and taken off when the
// save has held. A store that knows the cost of its writes adds that, and reports it; any other leaves the usage.
func spentCounted(w *world) {
	account := spend.NewAccount(nil, spent())
	w.ctx = spend.With(w.ctx, account)
	keeps := func(what string, j job.Job, write func(j job.Job) error) job.Job {
		due := account.Due()
		j.Spent = j.Spent.Plus(due)
		account.Store(j.Spent)
		w.want(what, write(j), nil)
		account.Keep(due)
		// Not by w.load, which would be counted in the account.
		got, err := w.store.Load(spend.Without(w.ctx), j.ID)
		w.want("load", err, nil)
		w.same(what+": what is stored, and what the account was told", got.Spent, account.Stored())
		if less := got.Spent.Minus(j.Spent); negative(less) {
			w.Fatalf("%s: got %+v, want at least what was given, %+v", what, got.Spent, j.Spent)
		}
		return got
	}
	w.made = append(w.made, w.id("a"))
	j := keeps("create", w.job("a"), func(j job.Job) error { return w.store.Create(w.ctx, j) })
	stale := j
	account.Add(job.Spent{Requests: 1})
	j = keeps("save", j, w.save)

	account.Add(job.Spent{Requests: 2})
	due := account.Due()
	stale.Spent = stale.Spent.Plus(due)
	w.want("save of a revision that is over", w.save(stale), store.ErrConflict)
	if lost := account.Due().Minus(due); negative(lost) {
		w.Fatalf("after the conflict %+v are due, want at least %+v", account.Due(), due)
	}
	got, err := w.store.Load(spend.Without(w.ctx), j.ID)
	w.want("load", err, nil)
	w.same("after the conflict", got.Spent, j.Spent)
	got = keeps("save after the conflict", got, w.save)
	if kept := got.Spent.Minus(j.Spent); kept.Requests < 2 {
		w.Fatalf("got %+v more, want what was due", kept)
	}
}

func negative(s job.Spent) bool {
	return s.Writes < 0 || s.HalfReads < 0 || s.Requests < 0 || s.Invocations < 0 || s.GBMicros < 0
}
