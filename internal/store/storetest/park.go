package storetest

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

func parkRules() []rule {
	return []rule{
		{"a parked job is in Error with its reason, and due at its new key", parkedIsInError},
		{"a park conflicts when the key has moved", parkConflicts},
		{"a park raises the revision, so a save of before it conflicts", parkRaisesRev},
		{"a parked job can be saved again", parkedIsMended},
		{"a damaged job is reported as damaged", damagedIsReported},
		{"a damaged job is parked without decoding, and not due before its new key", damagedIsParked},
		{"a damaged job keeps its id", damagedKeepsID},
		{"a job whose item is full is parked, and keeps what is known of its steps", fullIsParked},
	}
}

func parkedIsInError(w *world) {
	job := w.create(w.job("a"))
	want := job.Clone()
	reason := "cannot be applied: ż \"quoted\"\n"
	w.want("park", w.store.Park(w.ctx, job.ID, want.CompleteBy, reason, w.at(limits.FarKey)), nil)
	want.ProcessState, want.Reason, want.CompleteBy, want.Rev = makegood.JobError, reason, w.at(limits.FarKey), job.Rev+1
	w.same("parked job", w.load(job.ID), want)
	w.sees("due", w.at(limits.FarKey), map[string]time.Time{job.ID: w.at(limits.FarKey)})
}

func parkConflicts(w *world) {
	job := w.create(w.job("a"))
	moved := job.Clone()
	moved.CompleteBy = w.at(time.Second)
	w.want("save that moves the key", w.store.Save(w.ctx, store.Change{Job: moved, Seen: job.CompleteBy}), nil)
	moved = w.load(job.ID)
	for _, seen := range []time.Time{job.CompleteBy, {}} {
		w.want("park", w.store.Park(w.ctx, job.ID, seen, "late", w.at(time.Hour)), store.ErrConflict)
	}
	w.same("job after the parks", w.load(job.ID), moved)
}

// parkRaisesRev: a caller that had loaded the job decides again, and sees that it was parked.
func parkRaisesRev(w *world) {
	loaded := w.create(w.job("a"))
	w.want("park", w.store.Park(w.ctx, loaded.ID, loaded.CompleteBy, "why", loaded.CompleteBy), nil)
	parked := w.load(loaded.ID)
	w.want("save of what was loaded before the park", w.save(loaded), store.ErrConflict)
	w.same("job after the save", w.load(loaded.ID), parked)
	w.want("park again", w.store.Park(w.ctx, loaded.ID, loaded.CompleteBy, "why", w.at(time.Hour)), nil)
	w.want("save of what was loaded between the parks", w.save(parked), store.ErrConflict)
}

func parkedIsMended(w *world) {
	job := w.create(w.job("a"))
	w.want("park", w.store.Park(w.ctx, job.ID, job.CompleteBy, "why", w.at(time.Hour)), nil)
	parked := w.load(job.ID)
	want := parked.Clone()
	want.ProcessState, want.Reason, want.Rev = makegood.JobProcessing, "", parked.Rev+1
	mended := want.Clone()
	mended.Rev = parked.Rev
	w.same("job after the save", w.mustSave(mended), want)
}

func damagedIsReported(w *world) {
	job := w.create(w.job("a"))
	w.harness.Damage(job.ID)
	_, err := w.store.Load(w.ctx, job.ID)
	w.want("load", err, store.ErrDamaged)
	w.sees("due, as before", w.at(time.Hour), map[string]time.Time{job.ID: job.CompleteBy})
}

func damagedIsParked(w *world) {
	job := w.create(w.job("a"))
	w.harness.Damage(job.ID)
	w.want("park with a key that is not there", w.store.Park(w.ctx, job.ID, w.at(time.Second), "damaged", w.at(time.Hour)), store.ErrConflict)
	w.want("park", w.store.Park(w.ctx, job.ID, job.CompleteBy, "damaged", w.at(time.Hour)), nil)
	w.sees("due before the new key", w.at(time.Hour-time.Millisecond), map[string]time.Time{})
	w.sees("due at the new key", w.at(time.Hour), map[string]time.Time{job.ID: w.at(time.Hour)})
	_, err := w.store.Load(w.ctx, job.ID)
	w.want("load, for whoever mends it", err, store.ErrDamaged)
	w.want("park with the old key", w.store.Park(w.ctx, job.ID, job.CompleteBy, "again", w.at(2*time.Hour)), store.ErrConflict)
	// Out of the index: the suite tidies the jobs that it can load, and this it cannot.
	w.want("park without a key", w.store.Park(w.ctx, job.ID, w.at(time.Hour), "over", time.Time{}), nil)
	w.sees("due without a key", w.at(time.Hour), map[string]time.Time{})
}

func damagedKeepsID(w *world) {
	job := w.create(w.job("a"))
	w.harness.Damage(job.ID)
	w.want("create", w.store.Create(w.ctx, w.job("a")), store.ErrExists)
	_, err := w.store.Load(w.ctx, job.ID)
	w.want("load", err, store.ErrDamaged)
}

func fullIsParked(w *world) {
	if w.harness.Full == nil {
		w.Skip("items of this store may have any size")
	}
	job := w.create(w.manyTries("full", limits.MaxReasonBytes))
	w.harness.Full(job)
	want := job.Clone()
	w.want("park", w.store.Park(w.ctx, job.ID, want.CompleteBy, "too full", w.at(limits.FarKey)), nil)
	got := w.load(job.ID)
	if got.Rev <= job.Rev {
		w.Errorf("rev: got %d after %d, want a higher one", got.Rev, job.Rev)
	}
	want.ProcessState, want.Reason, want.CompleteBy, want.Rev = makegood.JobError, "too full", w.at(limits.FarKey), got.Rev
	w.same("parked job", got, want)
	want.Rev++
	w.same("job after a save", w.mustSave(got), want)
}
