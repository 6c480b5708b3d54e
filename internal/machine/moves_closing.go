package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// look finds out about a wanted attempt that has sent no reply: silence past CompleteBy is a failure; a task that was
// not claimed by StartBy is no failure, and only sends the same attempt again.
func (t *turn) look(at side) {
	a := t.activity(at)
	found, known := t.ask(t.question(AskLook, at))
	switch {
	case !known:
	case found.Finding == job.FoundHeld && (t.isChild(at) || !t.lie(at, found) && t.now.Before(found.Claim.CompleteBy)):
		t.held(at, found.Claim)
	case found.Finding == job.FoundEnded:
		t.childEnded(at, *found.Child)
	case found.Finding == job.FoundOpen && t.holds(at, a.Opened()):
		// Its end is asked for with all that is out.
	case found.Finding == job.FoundOpen && (t.isChild(at) && (at.undo || a.Repeats > 0) || !passed(a.Opened().Add(limits.MaxUnclaimed), t.now)):
		// No closing ends the undo of a child, or a wanted redrive, so it gets no successor: it is asked for again,
		// however late.
		if a.Closing {
			// The request for its end did not ask for its task. Look at it as if no such request was made.
			a.Closing, a.Cause, a.LookAt = false, "", time.Time{}
		}
		t.unclaimed(at)
	case found.Finding == job.FoundOpen:
		t.replace(at)
	default:
		t.end(at)
	}
}

// replace ends an attempt that has been unclaimed for too long. If a successor follows, an operator is told that the
// tasks of its agent are not claimed: with a long StartBy that was not said yet.
func (t *turn) replace(at side) {
	a := t.activity(at)
	old, resent := a.Attempt, a.Resent
	t.end(at)
	if a.Attempt == old {
		return
	}
	a.Resent, a.LookAt = max(resent, alertFrom), time.Time{}
	a.LookAt = t.nextLook(at)
}

// unclaimed waits on for an unclaimed attempt, or sends it again.
func (t *turn) unclaimed(at side) {
	a := t.activity(at)
	if passed(t.startBy(at), t.now) {
		a.OpenedAt = a.Opened()
		a.Resent++
		leaveOut(a, t.now)
		a.At, a.Cause, a.LookAt = t.now, t.cause, time.Time{}
	}
	a.LookAt = t.nextLook(at)
}

// end closes an attempt, as a fact.
func (t *turn) end(at side) {
	closing := t.question(AskClose, at)
	closing.Mark = !t.wanted(at)
	found, known := t.ask(closing)
	if known {
		t.learn(at, found)
	}
}

// learn takes what closing the attempt that is out has found. An attempt with a false claim counts as silent.
func (t *turn) learn(at side, found job.Found) Verdict {
	if t.lie(at, found) {
		if why, known := t.overruled(at, found); known {
			t.silence(at, job.Claim{}, why)
		}
		return Verdict{Kind: Applied}
	}
	switch found.Finding {
	case job.FoundNobody:
		t.nobody(at)
	case job.FoundSilent:
		t.silence(at, found.Claim, noReply)
	case job.FoundHeld:
		t.held(at, found.Claim)
	case job.FoundEnded:
		t.childEnded(at, *found.Child)
	default:
		panic(fmt.Sprintf("machine: closing an attempt found %q", found.Finding))
	}
	return Verdict{Kind: Applied}
}

// held waits on for an attempt that is claimed. Its task is not sent again, nor is its end asked for, before it is
// looked at.
func (t *turn) held(at side, claim job.Claim) {
	a := t.activity(at)
	a.Closing, a.Cause = false, ""
	a.LookAt = t.lives(at, claim)
	if !t.wanted(at) && !t.isChild(at) {
		// Its end is set: the events that wait for it need not wait for a later look.
		a.LookAt = claim.CompleteBy
	}
}

// nobody ends an attempt that no agent has claimed. A wanted activity gets its next attempt at once.
func (t *turn) nobody(at side) {
	// It is over before the next is made, which may be one too many and stop the job.
	if t.unbegun(at); t.activity(at).State == job.NotStarted && t.going() {
		t.openAttempt(at)
	}
}

// unbegun ends an attempt that was never begun: it uses up none of those granted. Its step is done if an answer was
// given before. Else it can begin again, or is not wanted.
func (t *turn) unbegun(at side) {
	a := t.activity(at)
	a.Tries--
	switch {
	case t.conclude(at):
	case t.wanted(at):
		t.rest(a, job.NotStarted)
	default:
		t.noteOf(at, job.Entry{Kind: makegood.EntryWithdrawn})
		t.rest(a, job.Withdrawn)
	}
}

// takeChainBack ends an attempt that its process has not begun, and those behind it in its chain.
func (t *turn) takeChainBack(at side) {
	for out := true; out; {
		next, more := t.behind(at)
		t.job.Transitions = max(0, t.job.Transitions-1)
		t.unbegun(at)
		at, out = next, more
	}
}

// miss ends an attempt of a chain in silence before its turn has come. It may have run, and counts as begun. Its step
// waits for its turn.
func (t *turn) miss(at side) {
	a := t.activity(at)
	noteStart(a, a.At)
	t.noteOf(at, job.Entry{Kind: makegood.EntryInterrupted, LockedBy: a.Inline, StartedAt: a.At})
	a.Unknown = true
	a.Tries--
	t.rest(a, job.NotStarted)
	if !t.wanted(at) {
		a.State = job.Withdrawn
	}
}

// overruled writes over a claim that cannot be true, as a fact, and says why.
func (t *turn) overruled(at side, found job.Found) (why string, known bool) {
	overrule := t.question(AskOverrule, at)
	overrule.LockedBy = found.Claim.LockedBy
	_, known = t.ask(overrule)
	why = fmt.Sprintf("agent %s lied: its claim was of attempt %d until %s",
		agentOf(t.w.Steps[at.step], at.undo), found.Claim.Attempt, found.Claim.CompleteBy.UTC().Format(time.RFC3339))
	if found.Claim.Bytes > job.MaxClaimItemBytes {
		why += fmt.Sprintf(", in an item of %d bytes, where %d are the most", found.Claim.Bytes, job.MaxClaimItemBytes)
	}
	return why, known
}

// silence ends an attempt that started and did not reply in time. Its effect is unknown.
func (t *turn) silence(at side, claim job.Claim, why string) {
	spared := ""
	if t.facts.Incarnation == 0 {
		// What an embedded engine takes with it when it dies is interrupted: no silence is its doing.
		spared = spare(t.activity(at), claim)
	}
	due := claim.CompleteBy
	if t.shared(at) {
		due = t.activity(at).LookAt
	}
	entry := t.fellSilent(at, claim, why)
	entry.Reason = spared
	t.seenLate(at, due, entry.StartedAt)
	t.attemptEnded(at, entry)
}
