package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// The tests of this file are about claims: what a decision that rests on one looks at, and closes.

// A claim is seen by the look that a decision rests on: the attempt is not sent again, and no save conflicts with it.
func TestAnAttemptThatIsClaimedIsNotSentAgain(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, startBy: 10s}]"), "j")
	w.claim("j", "first")
	due := w.deadline("j")
	w.forget()
	w.handle(due)
	w.checkSends()
	w.checkCalls(map[string]int{"Look": 1, "Close": 0, "Save": 1})
	if a := w.job("j").Steps[0].Forward; a.Attempt != 1 || a.Resent != 0 || w.held("j", "first").LockedBy != "j/first" {
		t.Errorf("got attempt %d, sent again %d times, held by %q, want the first attempt, by j/first", a.Attempt, a.Resent, w.held("j", "first").LockedBy)
	}
	if got := w.s.Stats().Conflicts; got != 0 {
		t.Errorf("got %d conflicts, want none", got)
	}
}

// A heartbeat comes between the look that finds the claim expired and the Close: the attempt lives.
func TestAHeartbeatBetweenLookAndCloseIsSeen(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
	claim := w.claim("j", "first")
	due := w.deadline("j")
	w.before("Close", "j", func() {
		claim.CompleteBy = w.now.Add(30 * time.Second)
		if _, err := w.file.Heartbeat(t.Context(), w.slot("j", "first"), claim, w.claimUntil("j", "first")); err != nil {
			t.Error(err)
		}
	})
	w.handle(due)
	if j := w.job("j"); j.FailureCount != 0 || w.open("j", "first") != 1 || !w.held("j", "first").CompleteBy.Equal(claim.CompleteBy) {
		t.Errorf("got %d failures, first#%d, held %v, want none, first#1, claimed until %s", j.FailureCount, w.open("j", "first"), w.held("j", "first"), claim.CompleteBy)
	}
	// Its success is taken.
	w.handle(w.succeeded("j", "first", claim))
	if got := w.job("j").ProcessState; got != makegood.JobProcessed {
		t.Errorf("after the reply: got %s, want Processed", got)
	}
}

// A claim that comes between the save of a cancel and its closings is not withdrawn: it is told so, and its end is
// waited for.
func TestACancelThatMeetsAClaimLetsItRun(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "j")
	var claim job.Claim
	w.before("Close", "j", func() { claim = w.claim("j", "first") })
	j, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbCancel, Request: "r"})
	if err != nil || j.ProcessState != makegood.JobUndoing || j.Steps[0].Forward.State != job.Dispatched {
		t.Errorf("got %s with the step %q, %v, want Undoing, waiting for what was claimed", j.ProcessState, j.Steps[0].Forward.State, err)
	}
	if a := j.Steps[0].Forward; a.Closing || !a.LookAt.Equal(claim.CompleteBy) {
		t.Errorf("got it closing %t, looked at %s, want that its end is known, and looked at: %s", a.Closing, a.LookAt, claim.CompleteBy)
	}
	if stored := w.job("j"); j.Rev != stored.Rev || j.LockedBy != stored.LockedBy {
		t.Errorf("answered with revision %d by %s, want %d by %s, as stored", j.Rev, j.LockedBy, stored.Rev, stored.LockedBy)
	}
	if _, err := w.file.Heartbeat(t.Context(), w.slot("j", "first"), claim, w.claimUntil("j", "first")); !errors.Is(err, store.ErrWithdrawn) {
		t.Errorf("its heartbeat: got %v, want %v", err, store.ErrWithdrawn)
	}
}

// A cancel of a hundred branches is two saves: what is wanted, and what became of what was out.
func TestACancelOfAHundredBranchesIsTwoSaves(t *testing.T) {
	w := newWorld(t)
	branches := "name: wide\nsteps:\n"
	for i := range 100 {
		branches += fmt.Sprintf("  - {name: s%d, agent: a, needs: [], undo: {action: back}}\n", i)
	}
	w.submit(w.define(branches), "j")
	w.handle(w.done("j", "s0"))
	w.claim("j", "s1")
	w.forget()
	j, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbCancel, Request: "r"})
	if err != nil || j.ProcessState != makegood.JobUndoing {
		t.Fatalf("got %s, %v, want Undoing", j.ProcessState, err)
	}
	w.checkCalls(map[string]int{"Save": 2, "Close": 99, "Look": 0})
	if got := w.open("j", "s1"); got != 1 {
		t.Errorf("the branch that is held: got attempt %d out, want its first", got)
	}
	if got := w.job("j").Steps[99].Forward.State; got != job.Withdrawn {
		t.Errorf("a branch that nobody claimed: got %s, want withdrawn", got)
	}
}

// The claim on an undo lies with the undo's own agent. A pause closes it there: whoever has the task finds it withdrawn.
func TestAPauseClosesAnUndoWithItsOwnAgent(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(`
name: two
steps:
  - {name: first, agent: a, undo: {agent: b, action: back}}
  - {name: second, agent: a}
`), "j")
	w.handle(w.done("j", "first"))
	w.handle(w.failed("j", "second", w.claim("j", "second"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	undo := w.job("j").Steps[0].Undo
	if undo.State != job.Dispatched {
		t.Fatalf("the undo is %s, want it out", undo.State)
	}
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbPause, Request: "1"}); err != nil {
		t.Fatal(err)
	}
	slot := w.slot("j", "first")
	slot.Agent = "b"
	claim := job.Claim{Attempt: undo.Attempt, LockedBy: "late", StartedAt: w.now, CompleteBy: w.now.Add(time.Minute)}
	if err := w.file.Claim(t.Context(), slot, claim, undo.ClaimUntil()); !errors.Is(err, store.ErrWithdrawn) {
		t.Errorf("a claim on the undo after the pause: got %v, want %v", err, store.ErrWithdrawn)
	}
	if got := w.job("j").Steps[0].Undo.State; got != job.NotStarted {
		t.Errorf("the undo is %q, want that it has not started", got)
	}
}

// The Scheduler dies between the save of a cancel and its closings. A minute later the Supervisor comes, and they are made.
func TestClosingsThatWereNotMadeAreMadeAfterAMinute(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "j")
	w.failingOn("", "Close", faultstore.FailBefore)
	begin := w.now
	j, v, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbCancel, Request: "r"})
	if err != nil || v.Kind != machine.Applied || j.ProcessState != makegood.JobUndoing {
		t.Fatalf("got %s, %s, %v, want that it is Undoing", j.ProcessState, v.Kind, err)
	}
	w.strike = nil
	// The key may be that of the first look, which is earlier than the minute.
	for range 2 {
		w.handle(w.deadline("j"))
	}
	if got := w.job("j").ProcessState; got != makegood.JobCancelled || w.now.Sub(begin) > limits.CloseAgain {
		t.Errorf("got %s after %v, want Cancelled within %v", got, w.now.Sub(begin), limits.CloseAgain)
	}
}

// An agent writes claims that cannot be true. The claim is written over, the attempt counts as silent, and the job goes on.
func TestAClaimThatCannotBeTrueIsOverruled(t *testing.T) {
	for name, lie := range map[string]job.Claim{
		"of an attempt that was never made": {Attempt: 9, LockedBy: "liar"},
		"a year ahead":                      {Attempt: 1, LockedBy: "liar", CompleteBy: time.Date(2027, 11, 20, 12, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submit(w.define("name: one\nsteps: [{name: first, agent: a, retry: {backoff: 1ms, max: 1ms}}]"), "j")
			lie.StartedAt = w.now
			if err := w.file.Claim(t.Context(), w.slot("j", "first"), lie, w.now.Add(limits.MaxClaimDelay)); err != nil {
				t.Fatal(err)
			}
			w.handle(w.deadline("j"))
			if got := w.job("j"); got.FailureCount != 1 || w.s.Stats().Lies != 1 {
				t.Errorf("got %d failures, %d lies, want one of each", got.FailureCount, w.s.Stats().Lies)
			}
			w.handle(w.deadline("j"))
			w.handle(w.done("j", "first"))
			if got := w.job("j").ProcessState; got != makegood.JobProcessed {
				t.Errorf("got %s, want Processed", got)
			}
		})
	}
}

// A job that had ended before a restart is revived after it. Its first wave belongs to this run: what comes next must not
// take it for one of the last run, and send a second beside it.
func TestAJobThatIsRevivedAfterARestartRunsItsFirstWaveOnce(t *testing.T) {
	for verb, yaml := range map[makegood.Verb]string{
		makegood.VerbUndo:     "name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]",
		makegood.VerbResubmit: "name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]",
	} {
		t.Run(string(verb), func(t *testing.T) {
			w := newWorld(t)
			w.submit(w.define(yaml), "j")
			w.handle(w.done("j", "first"))
			if verb == makegood.VerbResubmit {
				if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbUndo, Request: "u"}); err != nil {
					t.Fatal(err)
				}
				w.handle(w.done("j", "first"))
			}
			w.use(func(c *scheduler.Config) { c.Incarnation = 1 })
			if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: verb, Request: "r"}); err != nil {
				t.Fatal(err)
			}
			before := w.open("j", "first")
			w.claim("j", "first")
			w.handle(w.record("j", job.DeadlinePassed{}))
			if got := w.open("j", "first"); got != before || before == 0 {
				t.Errorf("got attempt %d, want %d, which is under way", got, before)
			}
		})
	}
}
