package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// goOn takes up the direction that stopped, with fresh attempts for what failed in it.
func (t *turn) goOn() {
	t.job.Transitions = 0
	// While it is stopped still: a failure now counts against no grant, and gets fresh attempts with the rest.
	for i := range t.job.Steps {
		t.catchUp(i)
	}
	t.job.ProcessState = makegood.JobUndoing
	if t.forwards() {
		t.job.ProcessState = makegood.JobProcessing
		t.noReason()
		t.renewDeadline()
		t.expect()
	}
	for i := range t.job.Steps {
		a := t.activity(t.inDirection(i))
		if a.State == job.Failed {
			a.State, a.FinishedAt = job.NotStarted, time.Time{}
			a.Interruptions = 0
			grant(a)
		}
	}
	if t.forwards() && t.w.Part != nil {
		t.redriveItems(job.Requested{})
	}
	for i := range t.job.Steps {
		if at := t.inDirection(i); t.activity(at).State == job.Waiting {
			t.dueWait(at)
		}
	}
}

// resume takes a pause back. The job's own timeout did not run meanwhile.
func (t *turn) resume() {
	if stood := later(t.job.PausedAt, t.job.StartAt); !t.early() { // Before its start its time stood still.
		if !t.job.Deadline.IsZero() {
			t.job.Deadline = t.job.Deadline.Add(t.now.Sub(stood))
		}
		t.expectLater(t.now.Sub(stood))
	}
	t.endPause()
	for i := range t.job.Steps {
		if t.active() {
			t.catchUp(i)
		}
	}
	t.nextRoundDue()
}

// catchUp acts on the times that fell due in a step while the job stood still. The Supervisor would take up to a
// minute; if the job has less time than that, the Supervisor would find only the job's timeout, time after time. A
// retry that is not due yet gets a reminder of its own.
func (t *turn) catchUp(i int) {
	at := t.inDirection(i)
	a := t.activity(at)
	if a.State == job.Dispatched && (a.Closing || t.isChild(at)) && t.wanted(at) {
		// The attempt is wanted again, if no closing has ended it. A child that may not know of its redrive is asked
		// again.
		t.look(at)
	} else {
		t.dueStep(i)
	}
	if a.State == job.Backoff {
		a.Cause = t.cause
		if passed(a.At, t.now) {
			t.openAttempt(at)
		}
	}
}

func (t *turn) dueStep(i int) {
	for _, at := range sides(i) {
		a := t.activity(at)
		switch a.State {
		case job.Backoff:
			if t.going() && t.wanted(at) && passed(a.At, t.now) {
				t.openAttempt(at)
			}
		case job.Dispatched:
			t.dueAttempt(at)
		case job.Waiting:
			t.dueWait(at)
		}
	}
}

// dueAttempt looks at an attempt that is out, when it is time to, or ends it if it is not wanted.
func (t *turn) dueAttempt(at side) {
	a := t.activity(at)
	due := passed(a.LookAt, t.now)
	switch {
	case t.ahead(at):
		if due {
			t.miss(at)
		}
	case a.Queued && !a.Closing && t.wanted(at) && t.going():
		if due && !t.admit(at) {
			a.LookAt = t.nextLook(at)
		}
	case a.Queued:
		if due {
			t.end(at)
		}
	case t.shared(at):
		if due {
			t.silence(at, inlineClaim(t.activity(at)), noReply)
		}
	case due && t.redriving(at) && !t.wanted(at) && t.standsBehind(at.step):
		t.lookBehind(at)
	case due && (!t.wanted(at) || !t.going()):
		t.end(at)
	case due || t.lookedAtEarly(at):
		t.look(at)
	}
}

// lookBehind looks at a child that is to be cancelled once the steps behind it are over.
func (t *turn) lookBehind(at side) {
	t.look(at)
	if a := t.activity(at); len(t.asks) == 0 && a.State == job.Dispatched {
		a.Closing, a.Cause = true, ""
	}
}
