package storetest

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

func claimRules() []rule {
	return []rule{
		{"a claim takes its slot and leaves the revision", claimTakesSlot},
		{"of two claims of an attempt the second is told that it is taken", secondClaimTaken},
		{"of many concurrent claims of an attempt exactly one wins", oneConcurrentClaim},
		{"claims of several steps stand side by side", claimsSideBySide},
		{"a repeated claim succeeds and raises nothing", repeatedClaim},
		{"a repeated claim succeeds after its attempt was withdrawn", repeatedAfterWithdrawal},
		{"a late task of an attempt that was withdrawn cannot be claimed", withdrawnCannotBeClaimed},
		{"a late task of an attempt that a newer one follows cannot be claimed", olderCannotBeClaimed},
		{"a forward attempt cannot be claimed once its undo is open", forwardAfterUndo},
		{"an undo cannot be claimed once a forward attempt of a new round is open", undoAfterForward},
		{"a claim of a newer attempt replaces the slot of an older one", newerReplacesSlot},
		{"an attempt can be claimed by another once its slot was ended", claimAfterEnd},
		{"a claim lowers a later CompleteBy", claimLowersKey},
		{"a claim leaves an earlier CompleteBy", claimLeavesKey},
		{"a claim brings no job into the index", claimBringsNoKey},
	}
}

func claimTakesSlot(w *world) {
	before := w.create(w.job("a"))
	claim := w.claim(1, "agent/1", time.Minute)
	want := before.Clone()
	want.Claims = makegood.Claims{Rev: 1, Slots: map[string]makegood.Claim{"reserve": claim}}
	w.same("job after the claim", w.mustClaim(before.ID, claim), want)
	w.want("claim of a step that is not open", w.store.Claim(w.ctx, before.ID, "charge", claim), store.ErrWithdrawn)
	w.want("claim of an attempt that is not open yet", w.store.Claim(w.ctx, before.ID, "reserve", w.claim(2, "agent/2", time.Minute)), store.ErrWithdrawn)
	w.same("job after the claims that failed", w.load(before.ID), want)
}

func secondClaimTaken(w *world) {
	job := w.create(w.job("a"))
	want := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	w.want("claim by another", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/2", time.Second)), store.ErrTaken)
	w.same("job after the second claim", w.load(job.ID), want)
}

func oneConcurrentClaim(w *world) {
	const many = 16
	job := w.create(w.job("a"))
	errs := atOnce(many, func(i int) error {
		return w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, fmt.Sprint("agent/", i), time.Minute))
	})
	won := winners(w, errs, store.ErrTaken)
	after := w.load(job.ID)
	if got, want := slot(after).LockedBy, fmt.Sprint("agent/", won); got != want || after.Claims.Rev != 1 {
		w.Fatalf("got the slot of %s and Claims.Rev %d, want %s and 1", got, after.Claims.Rev, want)
	}
}

func claimsSideBySide(w *world) {
	job := w.job("a")
	steps := []string{"reserve", "charge", "notify"}
	job.Open = map[string]int{"reserve": 1, "charge": 5, "notify": 2}
	w.create(job)
	errs := atOnce(len(steps), func(i int) error {
		return w.store.Claim(w.ctx, job.ID, steps[i], w.claim(job.Open[steps[i]], steps[i], time.Minute))
	})
	for i, err := range errs {
		w.want("claim of "+steps[i], err, nil)
	}
	want := map[string]makegood.Claim{}
	for _, step := range steps {
		want[step] = w.claim(job.Open[step], step, time.Minute)
	}
	w.same("claims", w.load(job.ID).Claims, makegood.Claims{Rev: 3, Slots: want})
}

func repeatedClaim(w *world) {
	job := w.create(w.job("a"))
	want := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	again := w.claim(1, "agent/1", time.Second)
	w.want("the same claim again", w.store.Claim(w.ctx, job.ID, "reserve", again), nil)
	w.same("job after the second try", w.load(job.ID), want)
}

// repeatedAfterWithdrawal: the first try's answer was lost, and the attempt withdrawn meanwhile. The
// claim was made; that nobody wants its result any more is for a beat to say.
func repeatedAfterWithdrawal(w *world) {
	job := w.create(w.job("a"))
	claimed := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	claimed.Open = nil
	want := w.mustSave(claimed)
	w.want("the same claim again", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Minute)), nil)
	w.same("job after the second try", w.load(job.ID), want)
}

func withdrawnCannotBeClaimed(w *world) {
	job := w.create(w.job("a"))
	job.Open = nil
	err := w.store.Save(w.ctx, store.Change{Job: job, Seen: job.CompleteBy, OnClaims: true})
	w.want("save that withdraws", err, nil)
	want := w.load(job.ID)
	w.want("claim", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Second)), store.ErrWithdrawn)
	w.same("job after the late claim", w.load(job.ID), want)
}

func olderCannotBeClaimed(w *world) {
	job := w.create(w.job("a"))
	job.Open = map[string]int{"reserve": 2}
	w.want("save that opens attempt 2", w.store.Save(w.ctx, store.Change{Job: job, Seen: job.CompleteBy, OnClaims: true}), nil)
	w.want("claim of attempt 1", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Minute)), store.ErrWithdrawn)
	w.same("slot after the claim of attempt 2", slot(w.mustClaim(job.ID, w.claim(2, "agent/2", time.Minute))), w.claim(2, "agent/2", time.Minute))
	w.want("claim of attempt 1, later", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Minute)), store.ErrWithdrawn)
}

// forwardAfterUndo: a step and its undo count their attempts together, so the undo's is a newer one.
func forwardAfterUndo(w *world) {
	job := w.create(w.job("a"))
	claimed := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	claimed.ProcessState, claimed.Open = makegood.Undoing, map[string]int{"reserve": 2}
	claimed.Steps[0].Attempt, claimed.Steps[0].Undo = 2, makegood.Activity{State: makegood.Dispatched, Attempt: 2}
	w.mustSave(claimed, "reserve")
	w.want("claim of the forward attempt", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/9", time.Minute)), store.ErrWithdrawn)
	undo := w.claim(2, "agent/2", time.Minute)
	w.same("slot after the claim of the undo", slot(w.mustClaim(job.ID, undo)), undo)
	w.want("claim of the forward attempt, later", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(1, "agent/9", time.Minute)), store.ErrWithdrawn)
}

func undoAfterForward(w *world) {
	job := w.job("a")
	job.ProcessState, job.Open = makegood.Undoing, map[string]int{"reserve": 2}
	loaded := w.create(job)
	loaded.ProcessState, loaded.Round, loaded.Open = makegood.Processing, 2, map[string]int{"reserve": 3}
	w.mustSave(loaded)
	w.want("claim of the undo", w.store.Claim(w.ctx, job.ID, "reserve", w.claim(2, "agent/1", time.Minute)), store.ErrWithdrawn)
	forward := w.claim(3, "agent/2", time.Minute)
	w.same("slot after the claim of the forward attempt", slot(w.mustClaim(job.ID, forward)), forward)
}

// newerReplacesSlot: the save that opened the next attempt was not asked to end the slot of the last.
func newerReplacesSlot(w *world) {
	job := w.create(w.job("a"))
	claimed := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	claimed.Open = map[string]int{"reserve": 2}
	saved := w.mustSave(claimed)
	w.same("slot after the save", slot(saved), w.claim(1, "agent/1", time.Minute))
	after := w.mustClaim(job.ID, w.claim(2, "agent/2", 2*time.Minute))
	want := makegood.Claims{Rev: 2, Slots: map[string]makegood.Claim{"reserve": w.claim(2, "agent/2", 2*time.Minute)}}
	w.same("claims", after.Claims, want)
}

func claimAfterEnd(w *world) {
	job := w.create(w.job("a"))
	claimed := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	w.mustSave(claimed, "reserve")
	after := w.mustClaim(job.ID, w.claim(1, "agent/2", time.Minute))
	want := makegood.Claims{Rev: 2, Slots: map[string]makegood.Claim{"reserve": w.claim(1, "agent/2", time.Minute)}}
	w.same("claims", after.Claims, want)
}

func claimLowersKey(w *world) {
	job := w.create(w.job("a"))
	after := w.mustClaim(job.ID, w.claim(1, "agent/1", 10*time.Second))
	w.sameTime("CompleteBy", after.CompleteBy, w.at(10*time.Second))
	w.sees("key in the index", w.at(time.Hour), map[string]time.Time{job.ID: w.at(10 * time.Second)})
}

func claimLeavesKey(w *world) {
	job := w.create(w.job("a"))
	after := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Hour))
	w.sameTime("CompleteBy", after.CompleteBy, job.CompleteBy)
	w.sees("key in the index", w.at(time.Hour), map[string]time.Time{job.ID: job.CompleteBy})
}

func claimBringsNoKey(w *world) {
	job := w.job("a")
	job.CompleteBy = time.Time{}
	w.create(job)
	after := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Second))
	w.sameTime("CompleteBy", after.CompleteBy, time.Time{})
	w.sees("keys in the index", w.at(time.Hour), map[string]time.Time{})
}

func beatRules() []rule {
	return []rule{
		{"a beat extends the slot and never the key", beatExtendsSlot},
		{"a beat of an attempt that is over is refused", beatAfterEnd},
		{"a beat of another's claim is refused", beatOfAnother},
		{"a beat of a withdrawn attempt extends its claim and says so", beatAfterWithdrawal},
	}
}

func beatExtendsSlot(w *world) {
	job := w.create(w.job("a"))
	want := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	later := makegood.Claim{Attempt: 1, LockedBy: "agent/1", StartedAt: w.at(time.Second), CompleteBy: w.at(2 * time.Hour)}
	w.want("beat", w.store.Beat(w.ctx, job.ID, "reserve", later), nil)
	want.Claims = makegood.Claims{Rev: 2, Slots: map[string]makegood.Claim{"reserve": w.claim(1, "agent/1", 2*time.Hour)}}
	w.same("job after a beat, which moves no StartedAt", w.load(job.ID), want)

	w.want("earlier beat", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Second)), nil)
	after := w.load(job.ID)
	w.sameTime("CompleteBy of the slot", slot(after).CompleteBy, w.at(time.Second))
	w.sameTime("CompleteBy of the job, which no beat moves", after.CompleteBy, job.CompleteBy)
	w.sees("key in the index", w.at(time.Hour), map[string]time.Time{job.ID: job.CompleteBy})
}

func beatAfterEnd(w *world) {
	job := w.create(w.job("a"))
	claimed := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	want := w.mustSave(claimed, "reserve")
	w.want("beat after the slot was ended", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Hour)), store.ErrTaken)
	w.same("job after the beat", w.load(job.ID), want)

	want.Open = map[string]int{"reserve": 2}
	w.mustSave(want)
	want = w.mustClaim(job.ID, w.claim(2, "agent/2", time.Minute))
	w.want("beat when a newer attempt is claimed", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Hour)), store.ErrTaken)
	w.same("job after the beat", w.load(job.ID), want)
}

func beatOfAnother(w *world) {
	job := w.create(w.job("a"))
	w.want("beat before any claim", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Hour)), store.ErrTaken)
	want := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
	w.want("beat by another", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/2", time.Hour)), store.ErrTaken)
	w.want("beat of another attempt", w.store.Beat(w.ctx, job.ID, "reserve", w.claim(2, "agent/1", time.Hour)), store.ErrTaken)
	w.want("beat of another step", w.store.Beat(w.ctx, job.ID, "charge", w.claim(1, "agent/1", time.Hour)), store.ErrTaken)
	w.same("job after the beats", w.load(job.ID), want)
}

func beatAfterWithdrawal(w *world) {
	for name, open := range map[string]map[string]int{"gone": nil, "newer": {"reserve": 2}} {
		job := w.create(w.job(name))
		claimed := w.mustClaim(job.ID, w.claim(1, "agent/1", time.Minute))
		claimed.Open = open
		w.mustSave(claimed)
		w.want("beat, the attempt being "+name, w.store.Beat(w.ctx, job.ID, "reserve", w.claim(1, "agent/1", time.Hour)), store.ErrWithdrawn)
		want := makegood.Claims{Rev: 2, Slots: map[string]makegood.Claim{"reserve": w.claim(1, "agent/1", time.Hour)}}
		w.same("claims, which stand and were extended", w.load(job.ID).Claims, want)
	}
}
