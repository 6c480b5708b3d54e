package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// The tests of this file are about trouble: it stays with whom it is about, and is not lost.

// A job of which nothing is to be sent, or that could not be moved, does not stand before the next job of its batch.
func TestAJobWithNothingToSendDoesNotStandBeforeTheNext(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	for _, id := range []string{"bad", "still", "good"} {
		w.submit(c, id)
	}
	bad, good := w.done("bad", "first"), w.done("good", "first")
	stale := w.record("still", job.DeadlinePassed{Key: w.now.Add(-time.Hour)})
	w.failing("Save", faultstore.FailBefore)
	w.forget()
	if failed := w.handle(bad, stale, good); !slices.Equal(failed, []string{bad.MessageId}) {
		t.Errorf("wants again: %v, want %s", failed, bad.MessageId)
	}
	w.checkSends(send{"tasks-b", []string{"good"}})
}

// One task of a job can never be written. The next one goes out.
func TestATaskThatCannotBeWrittenDoesNotStandBeforeTheNext(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(`
name: odd
steps:
  - {name: first, agent: a}
  - {name: left, agent: a, needs: [first], startBy: 10s, with: "${ .steps.first.output.id }"}
  - {name: right, agent: b, needs: [first], startBy: 10s, with: {}}
`), "j")
	w.handle(w.says("j", "first", w.claim("j", "first"), list(1000)))
	w.use(func(c *scheduler.Config) { c.Payloads = damaged{c.Payloads} })
	due := w.deadline("j")
	w.forget()
	if failed := w.handle(due); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkSends(send{"tasks-b", []string{"j"}})
}

// A task was refused, and what follows could not be saved: the record comes back, and then the step is given up.
func TestARefusalThatCouldNotBeSavedBringsItsRecordBack(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "bad")
	reply := w.done("bad", "first")
	w.deny = func(string, queue.Message) error {
		w.mu.Unlock()
		defer w.mu.Lock()
		w.failing("Save", faultstore.FailBefore)
		return queue.Refused("too heavy")
	}
	if failed := w.handle(reply); !slices.Equal(failed, []string{reply.MessageId}) {
		t.Errorf("wants again: %v, want the reply", failed)
	}
	w.strike, w.deny = nil, func(string, queue.Message) error { return queue.Refused("too heavy") }
	if failed := w.handle(reply); failed != nil || w.job("bad").ProcessState != makegood.JobError {
		t.Errorf("delivered again: wants again %v, %s, want none, Error", failed, w.job("bad").ProcessState)
	}
}

// A reminder that could not be sent, or is refused, costs a wait and no more: nothing comes again, and no step fails.
func TestAReminderThatIsNotSentHarmsNothing(t *testing.T) {
	for name, trouble := range map[string]error{"broken": errBroken, "refused": queue.Refused("too late")} {
		w := newWorld(t)
		w.use(func(c *scheduler.Config) { c.Reminders = true })
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a, retry: {backoff: 1m, max: 1m}}]"), "j")
		failure := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Retryable: true})
		w.deny = func(name string, _ queue.Message) error {
			if name == "events" {
				return trouble
			}
			return nil
		}
		w.forget()
		if failed := w.handle(failure); failed != nil {
			t.Errorf("%s: wants again: %v, want none", name, failed)
		}
		w.checkSends(send{"events", []string{"j"}})
		if j := w.job("j"); j.Steps[0].Forward.State != job.Backoff || w.s.Stats().Reminders != 0 {
			t.Errorf("%s: the step is %s, %d reminders counted, want a backoff and none", name, j.Steps[0].Forward.State, w.s.Stats().Reminders)
		}
	}
}

// What is due later than the queue can hold a reminder, the Supervisor finds.
func TestWhatIsDueLateIsNotRemindedOf(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Reminders = true })
	c := w.define(twoAgents)
	for id, ahead := range map[string]time.Duration{"within": limits.RemindWithin, "late": limits.RemindWithin + time.Millisecond} {
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{
			ID: id, Definition: c.Hash, Input: json.RawMessage(`{}`), StartAt: w.now.Add(ahead),
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.checkSends(send{"events", []string{"within"}})
}

// A queue delays by whole seconds. A reminder comes no earlier than what it reminds of, since it would be stale then.
func TestAReminderIsRoundedUpToSeconds(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, time.Second: time.Second, 1001 * time.Millisecond: 2 * time.Second, time.Minute: time.Minute,
	} {
		w := newWorld(t)
		w.s = w.with(func(c *scheduler.Config) { c.Reminders = true })
		var delays []time.Duration
		w.deny = func(_ string, m queue.Message) error {
			delays = append(delays, m.Delay)
			return nil
		}
		c := w.define(twoAgents)
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{
			ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`), StartAt: w.now.Add(ahead),
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(delays, []time.Duration{want}) {
			t.Errorf("due in %s: got it sent with the delays %v, want %s", ahead, delays, want)
		}
	}
}

// unreadable are jobs whose items cannot be read.
type unreadable struct{ store.Jobs }

func (unreadable) Load(context.Context, string) (job.Job, error) {
	return job.Job{}, store.ErrDamaged
}

// A definition that is stored and cannot be read is as good as none: no time will mend it.
func TestAJobWhoseDefinitionIsBadIsParked(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	reply := w.done("j", "first")
	if err := w.file.PutDefinition(t.Context(), "bad", "bad", []byte(`{"name":"bad"}`)); err != nil {
		t.Fatal(err)
	}
	w.change("j", func(odd *job.Job) { odd.Definition = "bad" })
	if failed := w.handle(reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if j := w.job("j"); j.ProcessState != makegood.JobError || !strings.HasPrefix(j.Reason, "definition bad: ") || w.s.Stats().Parked != 1 {
		t.Errorf("got %s (%s), %d parked, want Error that names the definition, and 1", j.ProcessState, j.Reason, w.s.Stats().Parked)
	}
}

// Somebody moves a job between its load and its parking: it is theirs, and nothing comes again.
func TestAJobThatMovedMeanwhileIsNotParked(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	reply := w.done("j", "first")
	w.change("j", func(odd *job.Job) { odd.Definition = "gone" })
	w.before("Park", "j", func() {
		w.change("j", func(moved *job.Job) {
			moved.ProcessState, moved.CompleteBy = makegood.JobProcessing, moved.CompleteBy.Add(time.Second)
		})
	})
	if failed := w.handle(reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if w.job("j").ProcessState != makegood.JobProcessing || len(w.told.notices) != 0 || w.s.Stats().Parked != 0 {
		t.Errorf("got %s, told %v, %d parked, want it as it was moved", w.job("j").ProcessState, w.told.notices, w.s.Stats().Parked)
	}
}

// A job whose item cannot be read is parked under the key that the Supervisor saw, whatever else comes with its event. A
// reply alone parks nothing: the next sweep brings the key.
func TestAJobThatCannotBeReadIsParkedUnderTheKeyThatWasSeen(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	reply, due := w.done("j", "first"), w.deadline("j")
	w.use(func(c *scheduler.Config) { c.Jobs = unreadable{c.Jobs} })
	if failed := w.handle(reply); failed != nil || w.job("j").ProcessState == makegood.JobError {
		t.Errorf("a reply: wants again %v, %s, want none, and it is not parked", failed, w.job("j").ProcessState)
	}
	if failed := w.handle(reply, due); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	j := w.job("j")
	if j.ProcessState != makegood.JobError || !j.CompleteBy.Equal(w.now.Add(limits.FarKey)) || len(w.told.notices) != 1 {
		t.Errorf("got %s, key %s, told %v, want Error, a far key, and one to be told", j.ProcessState, j.CompleteBy, w.told.notices)
	}
}

// deleted are jobs that are deleted before they can be parked.
type deleted struct{ store.Jobs }

func (deleted) Park(context.Context, string, time.Time, string, time.Time) error {
	return store.ErrNotFound
}

// A job is deleted between its load and its parking: nothing is left to be told of, and nothing comes again.
func TestAJobThatIsDeletedMeanwhileIsNotParked(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	reply := w.done("j", "first")
	w.change("j", func(odd *job.Job) { odd.Definition = "gone" })
	w.use(func(c *scheduler.Config) { c.Jobs = deleted{c.Jobs} })
	if failed := w.handle(reply); failed != nil || len(w.told.notices) != 0 || w.s.Stats().Parked != 0 {
		t.Errorf("wants again %v, told %v, %d parked, want none", failed, w.told.notices, w.s.Stats().Parked)
	}
}

// A submission that comes again tells the listener what they have not heard, and the job knows it then.
func TestASubmissionThatComesAgainTellsWhatWasNotHeard(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define(twoAgents)
	submit := func() {
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
			t.Fatal(err)
		}
	}
	w.heard.deaf = errBroken
	submit()
	w.heard.deaf, w.now = nil, w.now.Add(limits.TellAgain)
	submit()
	if n := len(w.heard.notices); n != 2 || w.heard.notices[1].Job != "j" || !w.job("j").Told() {
		t.Errorf("told %+v, noted %t, want the same of job j twice, and that it is noted", w.heard.notices, w.job("j").Told())
	}
}

// A job without a key that nobody can decide about is parked by who asks for it without one: no sweep would ever come.
func TestAJobWithoutAKeyThatCannotBeDecidedAboutIsParked(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	w.change("j", func(odd *job.Job) { odd.Definition, odd.CompleteBy = "gone", time.Time{} })
	if failed := w.handle(w.record("j", job.DeadlinePassed{})); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	j := w.job("j")
	if j.ProcessState != makegood.JobError || !j.CompleteBy.Equal(w.now.Add(limits.FarKey)) {
		t.Errorf("got %s, key %s, want Error and a far key", j.ProcessState, j.CompleteBy)
	}
	notice := notify.Notice{Job: "j", Announcement: job.Announcement{ProcessState: makegood.JobError, Reason: j.Reason, At: w.now}}
	if !slices.Equal(w.told.notices, []notify.Notice{notice}) || j.Reason == "" {
		t.Errorf("told %+v, want %+v", w.told.notices, notice)
	}
}

// A job that has ended is not parked, whatever comes for it that nobody can decide about: it has no key, and needs none.
func TestAJobThatHasEndedIsNotParked(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
	reply := w.done("j", "first")
	w.handle(reply)
	w.change("j", func(odd *job.Job) { odd.Definition = "gone" })
	if failed := w.handle(reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if j := w.job("j"); j.ProcessState != makegood.JobProcessed || len(w.told.notices) != 0 {
		t.Errorf("got %s, told %v, want Processed and nobody told", j.ProcessState, w.told.notices)
	}
}

// change changes a stored job as no save of ours does.
func (w *world) change(id string, change func(*job.Job)) {
	w.t.Helper()
	j := w.job(id)
	seen := j.CompleteBy
	change(&j)
	if err := w.file.Save(w.t.Context(), store.Change{Job: j, Seen: seen}); err != nil {
		w.t.Fatal(err)
	}
}

// A submission by message of a job whose item cannot be read can never be answered: it is put away.
func TestASubmissionOntoADamagedJobIsPutAway(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	batch := w.submissions("two", 1)
	w.handle(batch...)
	w.use(func(c *scheduler.Config) { c.Jobs = unreadable{c.Jobs} })
	if failed := w.handle(batch...); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if depth, err := w.local.Depth(t.Context(), "quarantine"); err != nil || depth.Waiting != 1 {
		t.Errorf("got %d messages in quarantine, %v, want 1", depth.Waiting, err)
	}
}

// A submission that comes again, and its job cannot be moved then: it comes once more.
func TestASubmissionThatComesAgainAndCannotBeMovedComesOnceMore(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	batch := w.submissions("two", 1)
	w.handle(batch...)
	loads := 0
	w.strike = func(op, _ string) faultstore.Effect {
		if op != "Load" {
			return faultstore.None
		}
		if loads++; loads == 2 {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	if failed := w.handle(batch...); !slices.Equal(failed, []string{batch[0].MessageId}) {
		t.Errorf("wants again: %v, want the submission", failed)
	}
}

// Other content under a job's id: the answer names the job and both hashes, and gives no job.
func TestOtherContentIsAnsweredWithBothHashes(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	have := w.submit(c, "j")
	got, err := scheduler.ContentHash("two", json.RawMessage(`{"other": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	j, created, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{"other":1}`)})
	var mismatch *scheduler.MismatchError
	if want := (scheduler.MismatchError{Job: "j", Have: have.InputHash, Got: got}); !errors.As(err, &mismatch) || *mismatch != want {
		t.Errorf("got %v, want %v", err, &want)
	}
	if j.ID != "" || created {
		t.Errorf("got job %q, created %t, want none", j.ID, created)
	}
	if _, err := scheduler.ContentHash("two", json.RawMessage(`{`)); err == nil {
		t.Error("what is no JSON has a hash")
	}
}

// An expression that fails when its step is opened fails the step, and says why.
func TestAnExpressionThatFailsFailsItsStep(t *testing.T) {
	for _, what := range []string{"with", "when"} {
		want := `step first failed: step "first": ` + what + ": ${ 1 | .id }: expected an object but got: number (1)"
		w := newWorld(t)
		j := w.submit(w.define("name: one\nsteps: [{name: first, agent: a, "+what+": \"${ 1 | .id }\"}]"), "j")
		if j.ProcessState != makegood.JobError || j.Reason != want || len(w.sends) != 0 {
			t.Errorf("got %s %q, sent %v, want Error %q, and no task", j.ProcessState, j.Reason, w.sends, want)
		}
	}
}

// A submission that comes again is answered with the job as it is stored.
func TestASubmissionThatComesAgainIsAnsweredWithTheJob(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	w.submit(c, "j")
	w.handle(w.done("j", "first"))
	again, created, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`)})
	if want := w.job("j"); err != nil || created || again.Rev != want.Rev || again.ProcessState != makegood.JobProcessing {
		t.Errorf("got %s, revision %d, created %t, %v, want Processing, %d", again.ProcessState, again.Rev, created, err, want.Rev)
	}
}

// A job comes into Error once, whatever comes for it then.
func TestAJobThatIsStoppedIsCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: pair\nonFailure: stop\nsteps: [{name: first, agent: a, needs: []}, {name: other, agent: b, needs: []}]"), "j")
	no := job.StepError{Message: "no"}
	first, other := w.failed("j", "first", w.claim("j", "first"), no), w.failed("j", "other", w.claim("j", "other"), no)
	w.handle(first)
	w.handle(other)
	if got := w.s.Stats().Stopped; got != 1 || w.job("j").FailureCount != 2 {
		t.Errorf("got %d stopped, %d failures, want 1, 2", got, w.job("j").FailureCount)
	}
}

// A payload that is gone from the store is gone for good: the job is put in front of a person, who is told which.
func TestAPayloadThatIsGoneIsToldOf(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: two\nsteps: [{name: first, agent: a}, {name: other, agent: b, with: \"${ .steps.first.output.id }\", startBy: 10s}]"), "j")
	w.handle(w.says("j", "first", w.claim("j", "first"), list(1000)))
	first, _ := w.job("j").Step("first")
	w.use(func(c *scheduler.Config) { c.Payloads = gone{c.Payloads} })
	if failed := w.handle(w.deadline("j")); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if j, want := w.job("j"), first.Forward.Output.Ref+" of the job is gone from the store"; j.ProcessState != makegood.JobError || j.Reason != want {
		t.Errorf("got %s %q, want Error %q", j.ProcessState, j.Reason, want)
	}
}

// gone are payloads that are not there.
type gone struct{ store.Payloads }

func (gone) Payload(context.Context, string, string) ([]byte, error) { return nil, store.ErrNotFound }

// Of two replies one is left to a newer release, and what the other makes due cannot be sent: that one alone comes again.
func TestAReplyThatWasLeftDoesNotComeAgainWithItsNeighbour(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: pair\nsteps: [{name: first, agent: a, needs: []}, {name: other, agent: a, needs: []}, {name: last, agent: b, needs: [other]}]"), "j")
	later := w.by("j", "first", w.claim("j", "first"))
	later.Token = "2.x"
	left, other := w.record("j", job.StepSucceeded{Reply: later}), w.done("j", "other")
	w.deny = func(name string, _ queue.Message) error {
		if name == "tasks-b" {
			return errBroken
		}
		return nil
	}
	if failed := w.handle(left, other); !slices.Equal(failed, []string{other.MessageId}) {
		t.Errorf("wants again: %v, want %s", failed, other.MessageId)
	}
}

// A clock may jump between two events of a batch. What the first opened was never sent: it is not late for the second.
func TestNothingIsLateInTheBatchThatOpenedIt(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: two\nsteps: [{name: first, agent: a}, {name: second, agent: a, exclusive: false}]"), "j")
	success, due := w.succeeded("j", "first", w.claim("j", "first")), w.deadline("j")
	jump := 24 * time.Hour
	w.use(func(c *scheduler.Config) {
		c.Now = func() time.Time { w.now = w.now.Add(jump); return w.now }
	})
	w.handle(success, due)
	if second := w.job("j").Steps[1].Forward; second.State != job.Dispatched || second.FailureCount != 0 {
		t.Errorf("got it %q, failed %d times, want it out and not failed", second.State, second.FailureCount)
	}
}
