package scheduler_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// Where submissions have a queue of their own, whoever may reply may not say that a job was submitted, either.
func TestSubmittedOnTheEventsQueueIsPoisonWhereSubmissionsComeApart(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Submissions = "submissions" })
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
	w.forget()
	w.handle(w.record("j", job.Submitted{}))
	if got := w.s.Stats().Poisoned; got != 1 {
		t.Errorf("got %d poisoned, want 1", got)
	}
	for _, s := range w.sends {
		if s.queue == "tasks-a" {
			t.Errorf("a stranger let tasks be sent again: %v", w.sends)
		}
	}
}

// A reply without the token of its attempt makes nothing due: not even the tasks again that the true one did.
func TestAForgedReplySendsNoTasks(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: fan\nsteps: [{name: first, agent: a}, {name: x, agent: b}, {name: y, agent: b, needs: [first]}, {name: z, agent: b, needs: [first]}]"), "j")
	w.handle(w.done("j", "first"))
	w.forget()
	w.handle(w.record("j", job.StepSucceeded{Reply: job.Reply{Step: "first", Attempt: 1, Token: "1.x", LockedBy: "thief"}}))
	w.checkSends()
}
