package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// The tests of this file are rows of docs/failure-modes.md that no other test provokes.

// DSP-2: an agent may have a task before Send has returned. It must find its attempt.
func TestATaskIsSentOnlyAfterItsAttemptIsStored(t *testing.T) {
	w := newWorld(t)
	sent := 0
	w.deny = func(_ string, m queue.Message) error {
		task, err := wire.DecodeTask(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		sent++
		if got := w.open(task.Job, task.Step); got != task.Attempt {
			t.Errorf("%s#%d is sent while attempt %d is the one stored", task.Step, task.Attempt, got)
		}
		return nil
	}
	w.submit(w.define("name: two\nsteps: [{name: first, agent: a, startBy: 10s}, {name: second, agent: b}]"), "j")
	w.handle(w.deadline("j"))
	w.handle(w.done("j", "first"))
	if sent != 3 {
		t.Errorf("%d tasks were sent, want first, first again, second", sent)
	}
}

// CMP-2: one attempt says two things. The first that was saved holds, whichever it is.
func TestTheFirstOfTwoOutcomesOfAnAttemptHolds(t *testing.T) {
	for _, successFirst := range []bool{true, false} {
		w := newWorld(t)
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
		c := w.claim("j", "first")
		want := makegood.JobProcessed
		said := []record{
			w.succeeded("j", "first", c),
			w.failed("j", "first", c, job.StepError{Message: "no"}),
		}
		if !successFirst {
			said[0], said[1], want = said[1], said[0], makegood.JobError
		}
		w.handle(said[0])
		before := w.job("j")
		w.forget()
		if failed := w.handle(said[1]); failed != nil {
			t.Errorf("wants again: %v, want none", failed)
		}
		w.checkSends()
		if got := w.job("j"); got.ProcessState != want || got.Rev != before.Rev {
			t.Errorf("success first: %t: got %s, revision %d, want %s, %d", successFirst, got.ProcessState, got.Rev, want, before.Rev)
		}
	}
}

// ADV-3: the last two branches of a join end at once, and each Scheduler has loaded the other's as
// unfinished. The join is started, and once.
func TestTheLastTwoBranchesAtOnceStartTheirJoinOnce(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(threeBranches), "j")
	w.handle(w.done("j", "left"))
	middle, right := w.done("j", "middle"), w.done("j", "right")
	other := w.second()
	w.beforeSave("j", func() { w.handleWith(other, right) })
	w.forget()
	w.handle(middle)
	w.checkSends(send{"tasks-b", []string{"j"}})
	if got := w.open("j", "join"); got != 1 {
		t.Errorf("got join#%d, want join#1", got)
	}
}

// CLM-7, SWP-7: a clock that is ahead takes a claim for expired while its agent still works. That is
// wasteful and not wrong: what the first agent says then is not heard. One that is behind waits.
func TestASkewedClockIsWastefulAndNotWrong(t *testing.T) {
	const skew = 5 * time.Minute
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, retry: {backoff: 1ms, max: 1ms}}]"), "j")
	zombie := w.claim("j", "first")
	begin := w.now
	w.now = begin.Add(skew - time.Second)
	w.handleWith(w.skewed(-skew), w.record("j", job.DeadlinePassed{Key: w.job("j").CompleteBy}))
	if got := w.job("j"); got.FailureCount != 0 || w.open("j", "first") != 1 {
		t.Errorf("a clock that is behind: got %d failures, first#%d, want none, first#1", got.FailureCount, w.open("j", "first"))
	}
	w.now = begin
	ahead := w.skewed(skew)
	for range 3 {
		w.handleWith(ahead, w.record("j", job.DeadlinePassed{Key: w.job("j").CompleteBy}))
		w.now = w.now.Add(time.Second)
	}
	second := job.Claim{Attempt: 2, LockedBy: "another", StartedAt: w.now, CompleteBy: w.now.Add(30 * time.Second)}
	if err := w.file.Claim(t.Context(), w.slot("j", "first"), second, w.claimUntil("j", "first")); err != nil {
		t.Fatalf("claim of the second attempt: %v", err)
	}
	before := w.job("j")
	w.handle(w.succeeded("j", "first", zombie))
	if got := w.job("j"); got.Rev != before.Rev || got.ProcessState != makegood.JobProcessing {
		t.Errorf("after the first agent's word: got %s, revision %d, want Processing, %d", got.ProcessState, got.Rev, before.Rev)
	}
	w.handle(w.succeeded("j", "first", second))
	if got := w.job("j"); got.ProcessState != makegood.JobProcessed || got.FailureCount != 1 {
		t.Errorf("after the second's: got %s, %d failures, want Processed, 1", got.ProcessState, got.FailureCount)
	}
}

// skewed returns a Scheduler whose clock is off by this much.
func (w *world) skewed(by time.Duration) *scheduler.Scheduler {
	return w.secondWith(func(c *scheduler.Config) { c.Now = func() time.Time { return w.now.Add(by) } })
}

// REC-3: the reply and the deadline of an attempt race, either before the other's save. The step is done
// once, and is a failure only if the deadline was first.
func TestAReplyAndADeadlineThatRaceHaveOneWinner(t *testing.T) {
	for _, replyFirst := range []bool{true, false} {
		w := newWorld(t)
		w.submit(w.define("name: two\nsteps: [{name: first, agent: a, retry: {backoff: 1s}}, {name: second, agent: b}]"), "j")
		reply := w.done("j", "first")
		loser, winner, failures := w.deadline("j"), reply, 0
		if !replyFirst {
			loser, winner, failures = winner, loser, 1
		}
		other := w.second()
		w.beforeSave("j", func() { w.handleWith(other, winner) })
		w.forget()
		w.handle(loser)
		w.checkSends(send{"tasks-b", []string{"j"}})
		if got := w.job("j"); got.FailureCount != failures || w.open("j", "second") != 1 || w.open("j", "first") != 0 {
			t.Errorf("reply first: %t: got %d failures, second#%d, first#%d, want %d, second#1 alone",
				replyFirst, got.FailureCount, w.open("j", "second"), w.open("j", "first"), failures)
		}
	}
}

// I13: no event is dropped without being counted as what became of it.
func TestEveryEventIsCountedAsWhatBecameOfIt(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	first := w.done("j", "first")
	stranger := w.record("j", job.StepSucceeded{Reply: job.Reply{Step: "second", Attempt: 9, LockedBy: "stranger"}})
	unknown := w.record("nobody", job.StepSucceeded{Reply: job.Reply{Step: "first", Attempt: 1, LockedBy: "x"}})
	if failed := w.handle(first, first, stranger, unknown, w.raw("{")); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if _, v, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbResubmit, Request: "r"}); err != nil || v.Kind != machine.Refused {
		t.Errorf("a resubmit: got %s, %v, want it refused", v.Kind, err)
	}
	c := w.s.Stats()
	got := [6]int64{c.Applied, c.Duplicate, c.Stale, c.Unknown, c.Poisoned, c.Refused}
	if want := [6]int64{1, 1, 1, 1, 1, 1}; got != want {
		t.Errorf("applied, duplicate, stale, unknown, poisoned, refused: got %v, want %v", got, want)
	}
}

// SUB-10: who cancels a job that is not there yet is told so, and may ask again; nothing is kept that
// would meet the submission.
func TestACancelThatOvertakesItsSubmissionIsToldSo(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	cancel := job.Requested{Verb: makegood.VerbCancel, Request: "r"}
	if _, _, err := w.s.Request(t.Context(), "j", cancel); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before the submission: got %v, want %v", err, store.ErrNotFound)
	}
	if j := w.submit(c, "j"); j.ProcessState != makegood.JobPending {
		t.Errorf("got %s, want Pending", j.ProcessState)
	}
	if j, _, err := w.s.Request(t.Context(), "j", cancel); err != nil || j.ProcessState != makegood.JobCancelled {
		t.Errorf("after it: got %s, %v, want Cancelled", j.ProcessState, err)
	}
}

// NTF-1: the Scheduler dies when it has saved the end of a job and before it has told anybody. The job is
// in the index until somebody was told, so the next sweep brings it up.
func TestAnEndThatWasSavedAndNotToldIsToldAfterTheNextSweep(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "bad")
	c := w.claim("bad", "first")
	w.failing("Save", faultstore.FailAfter)
	w.handle(w.failed("bad", "first", c, job.StepError{Message: "no"}))
	if j := w.job("bad"); j.ProcessState != makegood.JobError || j.Told() || len(w.told.notices) != 0 {
		t.Fatalf("got %s, told %t, notices %+v, want an Error that nobody was told of", j.ProcessState, j.Told(), w.told.notices)
	}
	w.strike = nil
	before := w.now
	w.handleWith(w.second(), w.deadline("bad"))
	if j := w.job("bad"); !j.Told() || len(w.told.notices) != 1 {
		t.Errorf("got told %t, notices %+v, want one", j.Told(), w.told.notices)
	}
	if waited := w.now.Sub(before); waited > limits.TellAgain {
		t.Errorf("the key was %v ahead, want at most %v", waited, limits.TellAgain)
	}
}

// An attempt that one event of a batch opens is not closed by the next one before it was saved: when that save fails, the
// claim item would have closed a number that the job gives to somebody else, and look like a lie of its agent.
func TestWhatABatchOpensIsNotClosedBeforeItWasSaved(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(`{"name": "w", "steps": [{"name": "first", "agent": "a", "action": "x", "timeout": "30s", "retry": {"attempts": 3, "backoff": "1ms", "max": "1ms"}}]}`), "j")
	claim := w.claim("j", "first")
	late := w.succeeded("j", "first", claim)
	w.now = claim.CompleteBy.Add(time.Hour)
	due := w.deadline("j")
	w.failingOn("", "Save", faultstore.FailBefore)
	if failed := w.handle(due, late); len(failed) != 2 {
		t.Fatalf("wants again: %v, want both", failed)
	}
	found, err := w.file.Look(t.Context(), w.slot("j", "first"), 1, w.claimUntil("j", "first"), w.now)
	if err != nil || found.Finding != job.FoundClosed {
		t.Errorf("got %+v, %v, want the first attempt closed, and nothing known of a second", found, err)
	}
	w.strike = nil
	w.handle(due, late)
	if lies := w.s.Stats().Lies; lies != 0 || w.job("j").ProcessState != makegood.JobProcessed {
		t.Errorf("got %d lies and %s, want none and Processed", lies, w.job("j").ProcessState)
	}
}

// What no decision can know of itself it is told: how often the Supervisor looks, and a number to draw the waits from.
func TestDecisionsAreToldThePeriodAndARandomNumber(t *testing.T) {
	waits := map[time.Duration]bool{}
	for _, random := range []uint64{1, 2} {
		w := newWorld(t)
		w.use(func(c *scheduler.Config) { c.Period, c.Random = time.Minute, func() uint64 { return random } })
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a, timeout: 10s, retry: {backoff: 1h, max: 1h}}]"), "j")
		if got := w.job("j").Steps[0].Forward.LookAt; !got.Equal(w.now.Add(time.Minute)) {
			t.Errorf("got the attempt looked at after %s, want the period, which is longer than its timeout", got.Sub(w.now))
		}
		w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Retryable: true}))
		waits[w.job("j").Steps[0].Forward.At.Sub(w.now)] = true
	}
	if len(waits) != 2 {
		t.Errorf("got the waits %v, want another for each random number", waits)
	}
}
