package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

const threeBranches = `
name: fan
steps:
  - {name: left, agent: a, needs: []}
  - {name: middle, agent: a, needs: []}
  - {name: right, agent: a, needs: []}
  - {name: join, agent: b, needs: [left, middle, right]}
`

const twoAgents = `
name: two
steps:
  - {name: first, agent: a}
  - {name: second, agent: b}
`

var errBroken = errors.New("broken wire")

func TestTheEventsOfAJobInABatchAreOneLoadAndOneSave(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(threeBranches), "j")
	left, middle, right := w.done("j", "left"), w.done("j", "middle"), w.done("j", "right")
	w.forget()
	if failed := w.handle(left, middle, left, right, middle); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Load": 1, "Save": 1})
	w.checkSends(send{"tasks-b", []string{"j"}})
	if got := w.job("j"); got.Rev != 2 || w.open("j", "join") != 1 {
		t.Errorf("got revision %d, join#%d, want 2, join#1", got.Rev, w.open("j", "join"))
	}
	if a, d := w.s.Stats().Applied, w.s.Stats().Duplicate; a != 3 || d != 2 {
		t.Errorf("got %d applied, %d duplicate, want 3, 2", a, d)
	}
}

// All that a batch sends to a queue goes out with one call, whatever jobs it is for.
func TestTheTasksOfSeveralJobsAreSentTogether(t *testing.T) {
	w := newWorld(t)
	c, fan := w.define(twoAgents), w.define(threeBranches)
	var batch []record
	for i := range 5 {
		id := fmt.Sprint("job-", i)
		w.submit(c, id)
		batch = append(batch, w.done(id, "first"))
	}
	for _, step := range []string{"left", "middle", "right"} {
		if step == "left" {
			w.submit(fan, "fan")
		}
		batch = append(batch, w.done("fan", step))
	}
	w.submit(c, "late")
	c0 := w.claim("late", "first")
	batch = append(batch, w.failed("late", "first", c0, job.StepError{Message: "m", Retryable: true}))
	w.forget()
	if failed := w.handle(batch...); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Load": 7, "Save": 7})
	w.checkSends(send{"tasks-b", []string{"job-0", "job-1", "job-2", "job-3", "job-4", "fan"}})

	// The retry of the late one comes with its key.
	w.forget()
	w.handle(w.deadline("late"))
	w.checkSends(send{"tasks-a", []string{"late"}})
}

// An event that changes nothing costs no save, and is not sent again.
func TestAStaleEventCostsALoadAndNoSave(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	w.claim("j", "first")
	w.forget()
	stranger := job.StepSucceeded{Reply: job.Reply{Step: "first", Attempt: 1, Token: "1.guessed", LockedBy: "somebody else"}}
	failed := w.handle(w.record("j", stranger), w.record("j", job.DeadlinePassed{Key: w.now}))
	if failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Load": 1, "Save": 0})
	w.checkSends()
}

// The second delivery of an event finds it applied. It sends again what it made due: the first may have died before it
// could, and whether somebody has the task by now the job does not know. The claim keeps it from running twice.
func TestADuplicateSendsAgainWhatItMadeDue(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	first := w.done("j", "first")
	w.handle(first)
	w.forget()
	w.handle(first)
	w.checkCalls(map[string]int{"Load": 1, "Save": 0})
	w.checkSends(send{"tasks-b", []string{"j"}})
	w.handle(w.done("j", "second"))
	w.forget()
	w.handle(first)
	w.checkSends()
}

// Two Schedulers decide about one job at once. One of them finds the revision changed, loads again and
// decides again: nothing of either is lost.
func TestASaveThatConflictsIsDecidedAgain(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(threeBranches), "j")
	left, right := w.done("j", "left"), w.done("j", "right")
	other := w.second()
	w.beforeSave("j", func() { w.handleWith(other, right) })
	w.forget()
	if failed := w.handle(left); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Load": 2, "Save": 2})
	j := w.job("j")
	for i, want := range []job.ActivityState{job.Done, job.Dispatched, job.Done} {
		if got := j.Steps[i].Forward.State; got != want {
			t.Errorf("step %s: got %q, want %q", j.Steps[i].Name, got, want)
		}
	}
	if got := w.s.Stats().Conflicts; got != 1 || j.Rev != 3 {
		t.Errorf("got %d conflicts, revision %d, want 1, 3", got, j.Rev)
	}
}

func TestASaveThatAlwaysConflictsGoesBackToTheQueue(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	first := w.done("j", "first")
	w.strike = func(op, job string) faultstore.Effect {
		if op == "Save" {
			other := w.job("j")
			if err := w.file.Save(t.Context(), store.Change{Job: other, Seen: other.CompleteBy}); err != nil {
				t.Error(err)
			}
		}
		return faultstore.None
	}
	w.forget()
	if failed := w.handle(first); !slices.Equal(failed, []string{first.MessageId}) {
		t.Errorf("wants again: %v, want the record", failed)
	}
	if w.calls["Save"] != 50 {
		t.Errorf("tried to save %d times, want 50", w.calls["Save"])
	}
	w.checkSends()
	w.strike = nil
	if failed := w.handle(first); failed != nil || w.open("j", "second") != 1 {
		t.Errorf("again: wants %v, second#%d, want none, second#1", failed, w.open("j", "second"))
	}
}

// A record fails alone: what could be done of the batch was done, and the record's second delivery
// does what is missing.
func TestOnlyTheRecordsThatFailedAreWantedAgain(t *testing.T) {
	for name, strike := range map[string]func(w *world){
		"a load fails":                 func(w *world) { w.failing("Load", faultstore.FailBefore) },
		"a save fails":                 func(w *world) { w.failing("Save", faultstore.FailBefore) },
		"the answer to a save is lost": func(w *world) { w.failing("Save", faultstore.FailAfter) },
		"a send fails": func(w *world) {
			w.deny = func(name string, m queue.Message) error {
				if jobOf(m) == "bad" {
					return errBroken
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.define(twoAgents)
			for _, id := range []string{"good", "bad", "fine"} {
				w.submit(c, id)
			}
			good, bad, fine := w.done("good", "first"), w.done("bad", "first"), w.done("fine", "first")
			strike(w)
			if failed := w.handle(good, bad, fine, bad); !slices.Equal(failed, []string{bad.MessageId}) {
				t.Errorf("wants again: %v, want %s", failed, bad.MessageId)
			}
			for _, id := range []string{"good", "fine"} {
				if got := w.open(id, "second"); got != 1 {
					t.Errorf("job %s: got second#%d, want second#1", id, got)
				}
			}
			w.strike, w.deny = nil, nil
			w.forget()
			if failed := w.handle(bad); failed != nil {
				t.Errorf("delivered again: wants %v, want none", failed)
			}
			w.checkSends(send{"tasks-b", []string{"bad"}})
			if got := w.job("bad"); w.open(got.ID, "second") != 1 || got.Rev != 2 {
				t.Errorf("job bad: got second#%d, revision %d, want second#1, 2", w.open("bad", "second"), got.Rev)
			}
		})
	}
}

// failing lets the calls of an operation on job bad fail.
func (w *world) failing(op string, effect faultstore.Effect) { w.failingOn("bad", op, effect) }

// failingOn lets the calls of an operation on a job fail; with no job, on every job.
func (w *world) failingOn(job, op string, effect faultstore.Effect) {
	w.strike = func(called, of string) faultstore.Effect {
		if called == op && (job == "" || of == job) {
			return effect
		}
		return faultstore.None
	}
}

// A task that is refused as our fault is a final failure of its step. Its record is dealt with, and the
// others of the same call are sent.
func TestARefusedTaskFailsItsStepAndNotItsRecord(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	w.submit(c, "good")
	w.submit(c, "bad")
	good, bad := w.done("good", "first"), w.done("bad", "first")
	w.deny = func(name string, m queue.Message) error {
		if jobOf(m) == "bad" {
			return queue.Refused("too heavy")
		}
		return nil
	}
	w.forget()
	if failed := w.handle(good, bad); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkSends(send{"tasks-b", []string{"good", "bad"}})
	j := w.job("bad")
	if j.ProcessState != makegood.JobError || j.Reason != "step second failed: the task cannot be sent: too heavy" || j.FailureCount != 0 {
		t.Errorf("got %s %q, %d failures, want Error with the reason, 0", j.ProcessState, j.Reason, j.FailureCount)
	}
	if len(w.told.notices) != 1 || w.told.notices[0].Job != "bad" {
		t.Errorf("told %+v, want the Error of job bad", w.told.notices)
	}
	if !j.Told() {
		t.Errorf("the job does not know that it was told of")
	}
}

// A submission is answered when the job is stored. What could not be sent then is the Supervisor's.
func TestASubmissionIsAnsweredThoughItsTasksCouldNotBeSent(t *testing.T) {
	w := newWorld(t)
	w.deny = func(string, queue.Message) error { return errBroken }
	c := w.define("name: one\nsteps: [{name: first, agent: a, startBy: 10s}]")
	w.submit(c, "j")
	w.deny = nil
	w.forget()
	w.handle(w.deadline("j"))
	w.checkSends(send{"tasks-a", []string{"j"}})
	if got := w.job("j"); got.FailureCount != 0 || got.Steps[0].Attempt != 1 {
		t.Errorf("got %d failures, attempt %d, want 0, 1", got.FailureCount, got.Steps[0].Attempt)
	}
}

// A decision that panics is our bug. The job is put in front of a person, under the key that is stored
// and not the one that an earlier event of the batch would have given it.
func TestAJobThatCannotBeDecidedAboutIsParkedUnderItsStoredKey(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(`
name: odd
steps:
  - {name: left, agent: a, needs: [], undo: none}
  - {name: right, agent: a, needs: [], undo: {action: back}}
  - {name: after, agent: b, needs: [left], timeout: 1s}
`), "j")
	left, right := w.done("j", "left"), w.claim("j", "right")
	odd := w.job("j")
	odd.ProcessState = "" // What no save of ours writes, and what this release knows all the same.
	if err := w.file.Save(t.Context(), store.Change{Job: odd, Seen: odd.CompleteBy}); err != nil {
		t.Fatal(err)
	}
	final := w.failed("j", "right", right, job.StepError{Message: "no", Applied: makegood.AppliedNo})
	if failed := w.handle(left, final); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	j := w.job("j")
	if j.ProcessState != makegood.JobError || !strings.Contains(j.Reason, "no transition from  to Undoing") {
		t.Errorf("got %s (%s), want Error, saying what panicked", j.ProcessState, j.Reason)
	}
	if want := w.now.Add(limits.FarKey); !j.CompleteBy.Equal(want) {
		t.Errorf("got the key %s, want %s", j.CompleteBy, want)
	}
	if len(w.told.notices) != 1 || w.told.notices[0].ProcessState != makegood.JobError {
		t.Errorf("told %+v, want one Error", w.told.notices)
	}
}

// Poison is put away with its reason; only if that cannot be done is it wanted again.
func TestPoisonIsWantedAgainOnlyIfItCouldNotBePutAway(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	first, poison := w.done("j", "first"), w.raw("{")
	w.deny = func(name string, _ queue.Message) error {
		if name == "quarantine" {
			return errBroken
		}
		return nil
	}
	if failed := w.handle(poison, first); !slices.Equal(failed, []string{poison.MessageId}) {
		t.Errorf("wants again: %v, want the poison", failed)
	}
	if w.open("j", "second") != 1 {
		t.Errorf("its neighbour was not dealt with")
	}
	w.deny = nil
	if failed := w.handle(poison); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if depth, err := w.local.Depth(t.Context(), "quarantine"); err != nil || depth.Waiting != 1 {
		t.Errorf("got %d messages in quarantine, %v, want 1", depth.Waiting, err)
	}
}

// One alert an agent is enough for many jobs, and for an hour.
func TestAnOperatorHearsOfASilentAgentOnceAnHour(t *testing.T) {
	w := newWorld(t)
	c := w.define("name: one\nsteps: [{name: first, agent: a, startBy: 1m}]")
	w.submit(c, "j")
	w.submit(c, "k")
	begin := w.now
	for w.now.Before(begin.Add(3 * time.Hour)) {
		w.handle(w.deadline("j"), w.deadline("k"))
	}
	// After 7, 15, 31, 63, 127 minutes it is sent again for the third, fourth, ... time.
	if got, want := fmt.Sprint(w.told.silent), "[a a a]"; got != want {
		t.Errorf("within %s: got the alerts %s, want %s", w.now.Sub(begin), got, want)
	}
}

// Whoever listens is told until they hear, and the job notes it with one small save.
func TestAnAnnouncementIsMadeUntilItWasHeardAndThenNotedOnce(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
	c := w.claim("j", "first")
	fails := w.failed("j", "first", c, job.StepError{Message: "no"})
	w.told.deaf = errBroken
	w.forget()
	if failed := w.handle(fails); failed != nil {
		t.Errorf("wants again: %v, want none: the job keeps what is to be told", failed)
	}
	w.checkCalls(map[string]int{"Save": 2}) // The failure, and that the bus, if there is one, has heard of it.
	if j := w.job("j"); j.Told() || j.CompleteBy.After(w.now.Add(limits.TellAgain)) {
		t.Errorf("got told %t, key %s, want it to be told of within a minute", j.Told(), j.CompleteBy.Sub(w.now))
	}
	w.told.deaf = nil
	w.forget()
	w.handle(w.deadline("j"))
	if j := w.job("j"); !j.Told() || len(w.told.notices) != 2 || w.told.notices[1].Seq != w.told.notices[0].Seq {
		t.Errorf("got told %t, notices %+v, want the same one twice", j.Told(), w.told.notices)
	}
	if w.calls["Save"] > 2 {
		t.Errorf("got %d saves, want at most two: the key, and that it was heard", w.calls["Save"])
	}
}

// Saved sees what is stored, so that of two sights of a job the newer can be told.
func TestSavedSeesTheJobAsItIsStored(t *testing.T) {
	w := newWorld(t)
	answered := w.submit(w.define(twoAgents), "j")
	if stored, seen := w.job("j"), w.saved[0]; seen.Rev != stored.Rev || answered.Rev != stored.Rev {
		t.Errorf("saw it born with revision %d, answered with %d, want %d", seen.Rev, answered.Rev, stored.Rev)
	}
	for _, step := range []string{"first", "second"} {
		w.handle(w.done("j", step))
		stored, seen := w.job("j"), w.saved[len(w.saved)-1]
		if seen.Rev != stored.Rev || seen.LockedBy != stored.LockedBy || seen.ProcessState != stored.ProcessState {
			t.Errorf("after %s: saw revision %d by %q, %s, want %d by %q, %s", step,
				seen.Rev, seen.LockedBy, seen.ProcessState, stored.Rev, stored.LockedBy, stored.ProcessState)
		}
	}
	if len(w.saved) != 3 {
		t.Errorf("saw %d jobs, want 3: the birth and two saves", len(w.saved))
	}
}

// Every save says whose it is: this instance's, under a name that no other save has.
func TestEverySaveIsUnderANameOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	if by := w.job("j").LockedBy; by != "" {
		t.Errorf("it was born saved by %q, want nobody: it is Pending", by)
	}
	names := map[string]bool{}
	for _, step := range []string{"first", "second"} {
		w.handle(w.done("j", step))
		by := w.job("j").LockedBy
		if of, nonce, _ := strings.Cut(by, ":"); of != "test" || nonce == "" || names[by] {
			t.Errorf("after %s: got it saved by %q, want by test and a nonce that is not among %v", step, by, names)
		}
		names[by] = true
	}
}

// Whatever comes first after a restart finds the attempts of the last run over: an overdue claim is no
// failure then, and a reply of that run is not heard.
func TestWhateverComesFirstAfterARestartInterruptsTheJob(t *testing.T) {
	for name, first := range map[string]func(w *world) record{
		"what recovery sends": func(w *world) record { return w.record("j", job.DeadlinePassed{}) },
		"a deadline":          func(w *world) record { return w.deadline("j") },
		"a reply":             func(w *world) record { return w.succeeded("j", "first", w.held("j", "first")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.submit(w.define(twoAgents), "j")
			w.claim("j", "first")
			restarted := w.secondWith(func(c *scheduler.Config) { c.Incarnation = 1 })
			w.forget()
			w.handleWith(restarted, first(w))
			w.handleWith(restarted, w.record("j", job.DeadlinePassed{}))
			j := w.job("j")
			if j.FailureCount != 0 || w.open("j", "first") != 2 || j.Incarnation != 1 || j.Rev != 2 {
				t.Errorf("got %d failures, first#%d, run %d, revision %d, want none, first#2, 1, 2",
					j.FailureCount, w.open("j", "first"), j.Incarnation, j.Rev)
			}
			if n := len(w.sends); n == 0 || n > 2 {
				t.Errorf("the next attempt was sent %d times, want once for the first event and at most once more for its own", n)
			}
		})
	}
}

// second is another Scheduler on the same store and queues, whose calls are not counted.
func (w *world) second() *scheduler.Scheduler { return w.secondWith(func(*scheduler.Config) {}) }

func (w *world) secondWith(change func(*scheduler.Config)) *scheduler.Scheduler {
	return w.with(func(c *scheduler.Config) {
		c.Jobs, c.Closings, c.Payloads, c.Definitions = w.file, w.file, w.file, w.file
		change(c)
	})
}

// The listener is gone. The operator is told at once and once; the listener is tried again after a minute, two, four.
func TestAListenerThatIsGoneDoesNotSilenceTheOperator(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]")
	w.heard.deaf = errBroken
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"}))
	begin := w.now
	for w.now.Before(begin.Add(12 * time.Hour)) {
		w.handle(w.deadline("j"))
	}
	if len(w.told.notices) != 1 {
		t.Errorf("the operator was told %d times in half a day, want once", len(w.told.notices))
	}
	if tries := len(w.heard.notices); tries < 10 || tries > 24 {
		t.Errorf("the listener was tried %d times in half a day, want each hour, and more often at first", tries)
	}
	for w.now.Before(begin.Add(limits.MaxTell + 2*limits.MaxTellAgain)) {
		w.handle(w.deadline("j"))
	}
	if j := w.job("j"); !j.Told() || j.Unheard == 0 {
		t.Errorf("after %v: told %t, %d given up, want that it was given up, and noted", limits.MaxTell, j.Told(), j.Unheard)
	}
}

// What a listener does not say while it hangs costs no agent its task.
func TestTasksGoOutBeforeAnybodyIsTold(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define(twoAgents)
	w.heard.before = func() {
		if len(w.sends) == 0 {
			t.Error("somebody is told while the task has not been sent")
		}
	}
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	if len(w.heard.notices) == 0 {
		t.Error("nobody was told")
	}
}
