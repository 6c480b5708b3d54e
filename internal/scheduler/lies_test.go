package scheduler_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// A claim that cannot be true is overruled, and then, before the job is decided about again, the clock jumps: by the new
// time the claim could be true. The decision is made as of when it was begun, so what was overruled counts as that.
func TestADecisionIsMadeAsOfOneMoment(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
	lie := job.Claim{Attempt: 1, LockedBy: "liar", StartedAt: w.now, CompleteBy: w.now.Add(5 * time.Hour)}
	if err := w.file.Claim(t.Context(), w.slot("j", "first"), lie, w.claimUntil("j", "first")); err != nil {
		t.Fatal(err)
	}
	look := w.deadline("j")
	w.strike = func(op, _ string) faultstore.Effect {
		if op == "Overrule" {
			w.now = w.now.Add(4 * time.Hour)
		}
		return faultstore.None
	}
	if failed := w.handle(look); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Overrule": 1})
	if j := w.job("j"); j.FailureCount != 1 || w.open("j", "first") == 1 {
		t.Errorf("got %d failures, attempt %d is out; want the overruled attempt counted and ended", j.FailureCount, w.open("j", "first"))
	}
}

// Before a claim that cannot be true is overruled, its agent writes a newer one. Nothing that was found of the first counts
// any more: the second is looked at afresh, and is what is overruled.
func TestAnOverruleThatMeetsAnotherClaimBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
	lie := func(attempt int, by string) {
		claim := job.Claim{Attempt: attempt, LockedBy: by, StartedAt: w.now, CompleteBy: w.now.Add(5 * time.Hour)}
		if err := w.file.Claim(t.Context(), w.slot("j", "first"), claim, w.claimUntil("j", "first")); err != nil {
			t.Fatal(err)
		}
	}
	lie(8, "liar")
	look := w.deadline("j")
	w.before("Overrule", "j", func() { lie(9, "another") })
	if failed := w.handle(look); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Overrule": 2})
	if j := w.job("j"); j.FailureCount != 1 {
		t.Errorf("got %d failures, want the attempt ended as silent, once", j.FailureCount)
	}
}
