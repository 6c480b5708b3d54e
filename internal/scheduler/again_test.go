package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// A submission by message whose job could not be stored is neither deleted nor poison: it comes back, and then is stored.
func TestASubmissionWhoseJobWasNotStoredComesBack(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	batch := w.submissions("two", 3)
	w.strike = func(op, job string) faultstore.Effect {
		if op == "Create" && job == "job-1" {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	if failed := w.handle(batch...); !slices.Equal(failed, []string{batch[1].MessageId}) {
		t.Errorf("wants again: %v, want %s", failed, batch[1].MessageId)
	}
	if depth, err := w.local.Depth(t.Context(), "quarantine"); err != nil || depth.Waiting != 0 {
		t.Errorf("got %d messages in quarantine, %v, want none", depth.Waiting, err)
	}
	w.strike = nil
	if failed := w.handle(batch[1]); failed != nil || w.open("job-1", "first") != 1 {
		t.Errorf("wants again: %v, and attempt %d is open, want none, and attempt 1", failed, w.open("job-1", "first"))
	}
}

// The queue of submissions has its records back one by one, too.
func TestOfTheSubmissionsQueueTheRecordThatFailedComesBack(t *testing.T) {
	w := newWorld(t)
	w.define(twoAgents)
	batch := w.submissions("two", 2)
	w.strike = func(op, job string) faultstore.Effect {
		if op == "Create" && job == "job-1" {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	response, err := w.s.HandleSubmissions(t.Context(), events.SQSEvent{Records: batch})
	if err != nil || len(response.BatchItemFailures) != 1 || response.BatchItemFailures[0].ItemIdentifier != batch[1].MessageId {
		t.Errorf("got %v, %v, want %s back", response.BatchItemFailures, err, batch[1].MessageId)
	}
}

// A reply that comes twice in a batch makes its task due once.
func TestATaskThatTwoEventsOfABatchMakeDueIsSentOnce(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	reply := w.done("j", "first")
	again := reply
	again.MessageId = "again"
	w.forget()
	if failed := w.handle(reply, again); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkSends(send{"tasks-b", []string{"j"}})
}

// An announcement that is the listener's alone does not stand between the operator and the next.
func TestTheOperatorHearsWhatComesBehindAnAnnouncementOfTheListener(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]")
	w.heard.deaf = errBroken
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	// It is time to tell the listener again.
	w.now = w.now.Add(2 * time.Minute)
	w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"}))
	if len(w.told.notices) != 1 || w.told.notices[0].ProcessState != makegood.JobError {
		t.Errorf("the operator was told %+v, want of the Error", w.told.notices)
	}
}

// That somebody was told could not be noted: the record comes back, and with it the note.
func TestATellingThatCouldNotBeNotedBringsItsRecordBack(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
	fails := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"})
	saves := 0
	w.strike = func(op, _ string) faultstore.Effect {
		if op == "Save" {
			saves++
		}
		if op == "Save" && saves == 2 {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	if failed := w.handle(fails); !slices.Equal(failed, []string{fails.MessageId}) {
		t.Errorf("wants again: %v, want %s", failed, fails.MessageId)
	}
	if failed := w.handle(fails); failed != nil || !w.job("j").Told() {
		t.Errorf("wants again: %v, told %t, want none, and that it is noted", failed, w.job("j").Told())
	}
}

// The tasks that a restart made due could not be sent. What recovery sent comes again, and they go out; what else is
// delivered then, and is not from recovery, sends nothing.
func TestTasksOfARestartThatWereNotSentGoOutWithTheNextDelivery(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoAgents), "j")
	w.s = w.with(func(c *scheduler.Config) { c.Incarnation = 1 })
	w.deny = func(string, queue.Message) error { return errBroken }
	recovery := w.record("j", job.DeadlinePassed{})
	if failed := w.handle(recovery); !slices.Equal(failed, []string{recovery.MessageId}) {
		t.Errorf("wants again: %v, want what recovery sent", failed)
	}
	w.deny = nil
	w.forget()
	w.handle(w.record("j", job.DeadlinePassed{Key: w.now.Add(-time.Hour)}))
	w.checkSends()
	if failed := w.handle(recovery); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkSends(send{"tasks-a", []string{"j"}})
	if got := w.open("j", "first"); got != 2 {
		t.Errorf("got first#%d out, want first#2", got)
	}
}
