package machine

import (
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// interrupted ends the attempts that an earlier run of the embedded engine dispatched. They may have
// started, claimed or not: claims are not flushed, so one may have been lost with the power.
func (t *turn) interrupted(e job.Interrupted) Verdict {
	if t.job.Incarnation >= e.Incarnation || t.job.ProcessState.Finished() {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("run %d is known to the job", e.Incarnation)}
	}
	// Jobs that wait need no save at a start, and they may be many.
	verdict := Verdict{Kind: Duplicate, Reason: "no attempt was under way"}
	for i := range t.job.Steps {
		at, ok := t.out(i)
		switch {
		case !ok:
		case t.activity(at).Queued: // Its task was not sent. The hint that it may begin may have died with the run.
			if t.wanted(at) && t.going() && t.admit(at) {
				verdict = Verdict{Kind: Applied}
			}
		case !t.isChild(at):
			verdict = Verdict{Kind: Applied}
			t.interrupt(at, e.Clean)
		case t.lookAtChild(at): // It has not died: but the run may have died before it was begun, or heard of.
			verdict = Verdict{Kind: Applied}
		}
	}
	if verdict.Kind == Applied {
		t.job.Incarnation = e.Incarnation
	}
	return verdict
}

// interrupt is no failure: the attempt is not counted against those granted, and the next is made at once. But a step
// that runs whenever the engine dies may be the cause, unless it was told to stop (clean). An attempt that another
// process has claimed did not die with the engine, and goes on.
func (t *turn) interrupt(at side, clean bool) {
	a := t.activity(at)
	found, ok := t.ask(t.question(AskLook, at))
	if !ok || found.Finding == job.FoundHeld && found.Claim.Outside() {
		return
	}
	if t.shared(at) && a.Inline == "" {
		// It is never claimed: its item only says whether another process was given the task.
		found = job.Found{}
	}
	// An item that was closed unclaimed names the attempt, but no holder.
	claimed := found.Claim.Attempt == a.Attempt && found.Claim.LockedBy != ""
	if claimed {
		noteStart(a, found.Claim.StartedAt)
	}
	t.noteInterrupted(at, found.Claim, claimed)
	a.Unknown = true
	a.Tries--
	if t.conclude(at) {
		return
	}
	t.rest(a, job.NotStarted)
	if !t.wanted(at) {
		a.State = job.Withdrawn
	}
	if !claimed || clean {
		return
	}
	suspect(a, found.Claim)
	if a.Interruptions > limits.MaxInterruptions && t.active() {
		a.State = job.Failed
		t.stop(fmt.Sprintf("step %s was cut off %d times by the death of the engine, %d times while no other attempt ran: it may be the cause",
			t.name(at), a.Interruptions, a.Interruptions-suspectAfter))
	}
}

// noteInterrupted notes that the engine died over an attempt that was begun or may have been: a shared one is never
// claimed. An attempt that was not begun is withdrawn, if it is unwanted.
func (t *turn) noteInterrupted(at side, claim job.Claim, claimed bool) {
	switch {
	case claimed:
		t.noteOf(at, job.Entry{Kind: makegood.EntryInterrupted, LockedBy: claim.LockedBy, StartedAt: claim.StartedAt})
	case t.shared(at):
		t.noteOf(at, job.Entry{Kind: makegood.EntryInterrupted})
	case !t.wanted(at) && !t.activity(at).Held():
		t.noteOf(at, job.Entry{Kind: makegood.EntryWithdrawn})
	}
}
