package storetest

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func saveRules() []rule {
	return []rule{
		{"a save raises the revision by one and the next load shows it", saveIsShown},
		{"only one of two saves of a revision wins", oneSave},
		{"only one of many concurrent saves of a revision wins", oneConcurrentSave},
		{"a save never writes a slot", saveWritesNoSlot},
		{"a save removes only the slots that it ends", saveEndsSlots},
		{"a claim is never erased by a concurrent save", claimSurvivesSave},
		{"a claimed task is never withdrawn as unclaimed", claimedNotWithdrawn},
		{"a save that rests on the claims conflicts with a beat", beatDefeatsOnClaims},
		{"a save that rests on the claims wins while they are as loaded", onClaimsWins},
		{"a save that moves CompleteBy conflicts with a claim that lowered it", moveConflictsWithLowering},
		{"a save that moves CompleteBy does not conflict with a claim that left it", moveAfterClaimThatLeftIt},
		{"a save that does not move CompleteBy keeps what a claim lowered it to", unmovedKeepsLowered},
		{"a save that conflicts writes nothing", conflictWritesNothing},
	}
}

func saveIsShown(w *world) {
	job := w.create(w.job("a"))
	job.ProcessState, job.LockedBy, job.FailureCount = makegood.Error, "engine/1", 4
	job.Reason, job.PausedAt, job.FinishedAt = "no stock", w.base, w.at(time.Second)
	job.Open = map[string]int{"charge": 1, "notify": 2}
	job.Steps[0].Forward.State = makegood.Done
	job.Untold = []makegood.Announcement{{Seq: 1, ProcessState: makegood.Error, At: w.base}}
	want := job.Clone()
	want.Rev = 2
	job = w.mustSave(job)
	w.same("after a save", job, want)

	job.Open, job.Untold, job.PausedAt = nil, nil, time.Time{}
	want = job.Clone()
	want.Rev = 3
	w.same("after a save that takes things away", w.mustSave(job), want)
}

func oneSave(w *world) {
	job := w.create(w.job("a"))
	mine, yours := job.Clone(), job.Clone()
	mine.Reason, yours.Reason = "mine", "yours"
	w.want("first save", w.save(mine), nil)
	w.want("second save of the same revision", w.save(yours), store.ErrConflict)
	w.want("the first save again", w.save(mine), store.ErrConflict)
	future := job.Clone()
	future.Rev = 9
	w.want("save of a revision that is not there yet", w.save(future), store.ErrConflict)
	if got := w.load(job.ID); got.Reason != "mine" || got.Rev != 2 {
		w.Fatalf("got the save of %q as revision %d, want mine as 2", got.Reason, got.Rev)
	}
}

func oneConcurrentSave(w *world) {
	const many = 16
	job := w.create(w.job("a"))
	errs := atOnce(many, func(i int) error {
		mine := job.Clone()
		mine.FailureCount = i
		return w.save(mine)
	})
	won := winners(w, errs, store.ErrConflict)
	if got := w.load(job.ID); got.FailureCount != won || got.Rev != 2 {
		w.Fatalf("got the save of %d as revision %d, want that of %d as 2", got.FailureCount, got.Rev, won)
	}
}

func saveWritesNoSlot(w *world) {
	job := w.create(w.job("a"))
	job = w.mustClaim(job.ID, w.claim(1, "x", time.Minute))
	want := job.Clone()
	want.Rev = 2
	job.Claims.Slots = map[string]makegood.Claim{"reserve": w.claim(1, "forged", time.Hour), "charge": w.claim(1, "forged", time.Hour)}
	w.same("after a save with slots of its own", w.mustSave(job), want)
}

func saveEndsSlots(w *world) {
	job := w.job("a")
	job.Open = map[string]int{"reserve": 1, "charge": 1, "notify": 1}
	w.create(job)
	for _, step := range []string{"reserve", "charge", "notify"} {
		w.want("claim", w.store.Claim(w.ctx, job.ID, step, w.claim(1, step, time.Minute)), nil)
	}
	before := w.load(job.ID)
	// It ends one that nobody holds, too: an attempt may be over before its slot was ever taken.
	after := w.mustSave(before, "reserve", "notify", "never_claimed")
	want := map[string]makegood.Claim{"charge": before.Claims.Slots["charge"]}
	w.same("slots", after.Claims.Slots, want)
	after = w.mustSave(after, "charge")
	if len(after.Claims.Slots) != 0 {
		w.Fatalf("slots: got %v, want none", after.Claims.Slots)
	}
}

func claimSurvivesSave(w *world) {
	loaded := w.create(w.job("a"))
	claim := w.claim(1, "agent/1", time.Minute)
	claimed := w.mustClaim(loaded.ID, claim)
	loaded.Reason = "saved after the claim, decided before it"
	after := w.mustSave(loaded)
	w.same("slot after the save", slot(after), claim)
	if after.Rev != loaded.Rev+1 || after.Claims.Rev != claimed.Claims.Rev || after.Reason != loaded.Reason {
		w.Fatalf("got Rev %d, Claims.Rev %d, reason %q; want %d, %d, %q",
			after.Rev, after.Claims.Rev, after.Reason, loaded.Rev+1, claimed.Claims.Rev, loaded.Reason)
	}
}

func claimedNotWithdrawn(w *world) {
	loaded := w.create(w.job("a"))
	claimed := w.mustClaim(loaded.ID, w.claim(1, "agent/1", time.Minute))
	loaded.Open = nil
	err := w.store.Save(w.ctx, store.Change{Job: loaded, Seen: loaded.CompleteBy, OnClaims: true})
	w.want("save that withdraws a task claimed meanwhile", err, store.ErrConflict)
	w.same("job after the conflict", w.load(loaded.ID), claimed)
}

func beatDefeatsOnClaims(w *world) {
	job := w.create(w.job("a"))
	loaded := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	w.want("beat", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", 2*time.Minute)), nil)
	err := w.store.Save(w.ctx, store.Change{Job: loaded, Seen: loaded.CompleteBy, Ended: []string{"reserve"}, OnClaims: true})
	w.want("save that takes a claim for expired which was extended meanwhile", err, store.ErrConflict)
	w.same("slot", slot(w.load(job.ID)), w.claim(1, "agent/1", 2*time.Minute))
}

func onClaimsWins(w *world) {
	job := w.create(w.job("a"))
	w.want("save before any claim", w.store.Save(w.ctx, store.Change{Job: job, Seen: job.CompleteBy, OnClaims: true}), nil)
	loaded := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	w.want("save after a claim that it knows", w.store.Save(w.ctx, store.Change{Job: loaded, Seen: loaded.CompleteBy, OnClaims: true}), nil)
	w.same("slot", slot(w.load(job.ID)), w.claim(1, "agent/1", time.Minute))
}

func moveConflictsWithLowering(w *world) {
	loaded := w.create(w.job("a"))
	claimed := w.mustClaim(loaded.ID, w.claim(1, "agent/1", 10*time.Second))
	for name, key := range map[string]time.Time{"raises": w.at(time.Hour), "lowers": w.at(time.Second), "clears": {}} {
		moved := loaded.Clone()
		moved.CompleteBy = key
		err := w.store.Save(w.ctx, store.Change{Job: moved, Seen: loaded.CompleteBy})
		w.want("save that "+name+" a CompleteBy which is another one now", err, store.ErrConflict)
	}
	w.same("job after the conflicts", w.load(loaded.ID), claimed)
	claimed.CompleteBy = w.at(time.Hour)
	w.want("save that has seen it", w.store.Save(w.ctx, store.Change{Job: claimed, Seen: w.at(10 * time.Second)}), nil)
	w.sameTime("CompleteBy", w.load(loaded.ID).CompleteBy, w.at(time.Hour))
}

func moveAfterClaimThatLeftIt(w *world) {
	loaded := w.create(w.job("a"))
	w.mustClaim(loaded.ID, w.claim(1, "agent/1", time.Hour))
	seen := loaded.CompleteBy
	loaded.CompleteBy = w.at(30 * time.Second)
	w.want("save that moves CompleteBy", w.store.Save(w.ctx, store.Change{Job: loaded, Seen: seen}), nil)
	after := w.load(loaded.ID)
	w.sameTime("CompleteBy", after.CompleteBy, w.at(30*time.Second))
	w.same("slot", slot(after), w.claim(1, "agent/1", time.Hour))
}

func unmovedKeepsLowered(w *world) {
	loaded := w.create(w.job("a"))
	w.mustClaim(loaded.ID, w.claim(1, "agent/1", 10*time.Second))
	w.want("save that leaves CompleteBy", w.save(loaded), nil)
	after := w.load(loaded.ID)
	w.sameTime("CompleteBy, which the claim had lowered", after.CompleteBy, w.at(10*time.Second))
	w.sees("key in the index", w.at(time.Hour), map[string]time.Time{loaded.ID: w.at(10 * time.Second)})
}

func conflictWritesNothing(w *world) {
	job := w.create(w.job("a"))
	stale := job.Clone()
	want := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	stale.ProcessState, stale.CompleteBy, stale.Open = makegood.Error, w.at(time.Hour), nil
	stale.Rev = 9
	w.want("save", w.store.Save(w.ctx, store.Change{Job: stale, Seen: want.CompleteBy, Ended: []string{"reserve"}}), store.ErrConflict)
	w.same("job after the conflict", w.load(job.ID), want)
}
