package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// deadlinePassed acts on everything that is due. The event is only a hint: it acts if the key that the Supervisor saw
// is still stored and has passed. An audit may have found a missing key in a job that must have one, or too late a
// key in a job that stands still: then the job is looked at and gets a correct key.
func (t *turn) deadlinePassed(e job.DeadlinePassed) Verdict {
	released := t.free() && (e.Key.IsZero() || e.Key.Equal(t.job.CompleteBy))
	if released {
		// What held it does so no more. That it is still paused is all that keeps it.
		t.release()
		if e.Key.IsZero() || t.now.Before(e.Key) {
			return Verdict{Kind: Applied}
		}
	}
	stands := ""
	if e.Key.IsZero() || e.Key.Equal(t.job.CompleteBy) && t.now.Before(e.Key) {
		stands = t.standing()
	}
	switch {
	case t.job.CompleteBy.IsZero() && t.job.ProcessState.Finished() && t.job.Told():
		return Verdict{Kind: Stale, Reason: "the job has ended, and all announcements were made"}
	case stands != "":
		// No sweep would come before it is too late.
	case !e.Key.Equal(t.job.CompleteBy):
		return Verdict{Kind: Stale, Reason: "CompleteBy has moved since it was seen"}
	case t.now.Before(e.Key):
		return Verdict{Kind: Stale, Reason: "CompleteBy has not passed here"}
	}
	if t.job.ProcessState == makegood.JobError && !t.now.Before(t.job.RemindAt) {
		// Still in front of a person: remind them. A listener already knows. A job that was parked has no time yet. An
		// undelivered announcement to an operator is kept, and is reminder enough.
		if !slices.ContainsFunc(t.job.Untold, func(a job.Announcement) bool { return a.Operator }) {
			t.announce(true, false)
		}
		t.job.RemindAt = t.now.Add(limits.FarKey)
	}
	t.publishAgain()
	if t.going() && t.forwards() && (passed(t.job.Deadline, t.now) || passed(t.job.WarnAt, t.now)) {
		t.heldUp(released)
	}
	if t.going() && t.forwards() && passed(t.job.Deadline, t.now) {
		// What is out is given up by the timeout. That must be saved before it is closed, so no close is due now.
		t.timeUp()
	}
	for i := range t.job.Steps {
		t.dueStep(i)
	}
	t.nextRoundDue()
	return Verdict{Kind: Applied, Reason: stands}
}

// timeUp ends the forward direction of a job that took too long.
func (t *turn) timeUp() {
	reason := fmt.Sprintf("the job's timeout of %s passed", t.timeout())
	if t.w.OnFailure.Action == makegood.FailureStop || !domain.HasUndo(t.w) {
		t.stop(reason)
		return
	}
	t.turnRound(makegood.JobUndone, reason)
}

// publishAgain backs off further each time the pending changes of a job at rest fail to publish, and drops old ones.
func (t *turn) publishAgain() {
	c := &t.job.Changes
	due := t.publishBy()
	if due.IsZero() || t.now.Before(t.job.CompleteBy) {
		return
	}
	if last := c.Pending[len(c.Pending)-1]; !t.now.Before(last.At.Add(limits.MaxPublish)) {
		c.Pending, c.Tries, c.At = nil, 0, time.Time{}
		return
	}
	c.At = t.now.Add(doubled[time.Duration](limits.TellAgain, c.Tries, limits.MaxTellAgain))
	c.Tries++
}

// heldUp holds the job if its timeout or its expected time passes while one of its sides waits for a hold: its times
// have stood still since. released: the job stood still until this event.
func (t *turn) heldUp(released bool) {
	for i := range t.job.Steps {
		at := t.inDirection(i)
		switch a := t.activity(at); {
		case a.State == job.Backoff && passed(a.At, t.now):
			t.holds(at, a.At)
		case a.State == job.Dispatched && t.wanted(at) && !a.Closing && !t.shared(at):
			if _, on := t.heldBack(at); !on {
				continue
			}
			if found, known := t.ask(t.question(AskLook, at)); known && found.Finding == job.FoundOpen {
				t.holds(at, a.Opened())
			}
		}
	}
	t.hold(released)
}

// release lets a job go on that was held, unless a person has paused it, too.
func (t *turn) release() {
	t.note(job.Entry{Kind: makegood.EntryHeld, Verb: makegood.VerbResume, Reason: t.heldFor("")})
	if t.job.PausedToo {
		t.notHeld()
		return
	}
	t.resume()
}
