package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// AskKind is what is to be found out about an attempt.
type AskKind string

// The kinds. Each is an operation on the claim item of the step.
const (
	AskLook     AskKind = "look"     // what is known of it
	AskClose    AskKind = "close"    // end it, if nobody holds it
	AskOverrule AskKind = "overrule" // write over a claim that cannot be true; the job was loaded after it was seen
)

// Ask names a fact about the claim of an attempt.
type Ask struct {
	Kind    AskKind
	Step    string
	Attempt int
	Undo    bool
	// LockedBy is who replied a failure, or whose claim is overruled.
	LockedBy string
	// Mark: the attempt is unwanted, and was so when the job was saved last.
	Mark bool
}

// ask gives what is known in answer; if nothing is, it is asked for, and nothing may change that rests on it.
func (t *turn) ask(a Ask) (found job.Found, known bool) {
	found, known = t.facts.Found[a]
	if !known {
		t.asks = append(t.asks, a)
	}
	return found, known
}

// closeOpen asks for the end of every attempt that is out and was wanted until now: because its direction is given up,
// or because the job comes to stand still and nothing new is to start. It stays out until the answer is known. Shared
// attempts are nobody's to claim and may be running: they are left alone.
func (t *turn) closeOpen() {
	for i, s := range t.job.Steps {
		_, undo, ok := dispatched(s)
		if !ok || undo == t.forwards() || t.w.Steps[i].Shared {
			continue
		}
		a := t.activity(i, undo)
		a.Closing, a.Cause = true, t.cause
		a.LookAt = t.now.Add(makegood.CloseAgain)
	}
}

// look finds out about an attempt that is wanted and of which nothing was heard: silence past CompleteBy is a failure;
// not having been claimed by StartBy is none, and only sends the same attempt again.
func (t *turn) look(i int, undo bool) {
	a := t.activity(i, undo)
	found, known := t.ask(Ask{Kind: AskLook, Step: t.job.Steps[i].Name, Attempt: a.Attempt, Undo: undo})
	switch {
	case !known:
	case found.Finding == job.FoundHeld && !t.lie(i, undo, found) && t.now.Before(found.Claim.CompleteBy):
		t.held(i, undo, found.Claim)
	case found.Finding == job.FoundOpen && !passed(a.Opened().Add(makegood.MaxUnclaimed), t.now):
		if a.Closing {
			// Who asked for its end did not ask for its task. It is looked at as if nobody had.
			a.Closing, a.Cause, a.LookAt = false, "", time.Time{}
		}
		t.unclaimed(i, undo)
	case found.Finding == job.FoundOpen:
		t.replace(i, undo)
	default:
		t.end(i, undo)
	}
}

// replace ends an attempt that nobody has claimed for too long. If that gives it a successor, somebody is told that
// nobody claims the tasks of its agent: with a long StartBy that was not said yet.
func (t *turn) replace(i int, undo bool) {
	a := t.activity(i, undo)
	old, resent := a.Attempt, a.Resent
	t.end(i, undo)
	if a.Attempt == old {
		return
	}
	a.Resent, a.LookAt = max(resent, alertFrom), time.Time{}
	a.LookAt = t.nextLook(i, undo)
}

// unclaimed waits on for an attempt that nobody has claimed, or sends it again.
func (t *turn) unclaimed(i int, undo bool) {
	a := t.activity(i, undo)
	if passed(t.startBy(i, undo), t.now) {
		a.OpenedAt = a.Opened()
		a.Resent++
		a.At, a.Cause, a.LookAt = t.now, t.cause, time.Time{}
	}
	a.LookAt = t.nextLook(i, undo)
}

// end closes an attempt, as a fact.
func (t *turn) end(i int, undo bool) {
	a := t.activity(i, undo)
	found, known := t.ask(Ask{
		Kind: AskClose, Step: t.job.Steps[i].Name, Attempt: a.Attempt, Undo: undo, Mark: undo == t.forwards(),
	})
	if known {
		t.learn(i, undo, found)
	}
}

// attemptClosed takes the answer to a closing.
func (t *turn) attemptClosed(e job.AttemptClosed) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	a, undo, ok := dispatched(t.job.Steps[i])
	if !ok || a.Attempt != e.Attempt {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has ended", e.Attempt, e.Step)}
	}
	if e.Found.Finding == job.FoundHeld && !(a.Closing && a.Cause == e.Asked) {
		// What is held now need not be so for long: only the answer that is waited for says until when.
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("the end of attempt %d of step %s is not waited for", e.Attempt, e.Step)}
	}
	return t.learn(i, undo, e.Found)
}

// learn takes what closing the attempt that is out has found.
func (t *turn) learn(i int, undo bool, found job.Found) Verdict {
	if t.lie(i, undo, found) {
		return t.overrule(i, undo, found)
	}
	switch found.Finding {
	case job.FoundNobody:
		t.nobody(i, undo)
	case job.FoundSilent:
		t.silence(i, undo, found.Claim, noReply)
	case job.FoundHeld:
		t.held(i, undo, found.Claim)
	default:
		panic(fmt.Sprintf("machine: closing an attempt found %q", found.Finding))
	}
	return Verdict{Kind: Applied}
}

// held waits on for an attempt that is claimed. Its task is not sent again, nor is its end asked for, before it is
// looked at.
func (t *turn) held(i int, undo bool, claim job.Claim) {
	a := t.activity(i, undo)
	a.Closing, a.Cause = false, ""
	a.LookAt = t.lives(i, undo, claim)
	if undo == t.forwards() {
		// Its end is set: what waits for it need not wait for a look that comes later.
		a.LookAt = claim.CompleteBy
	}
}

// nobody ends an attempt that nobody ever claimed: it uses up none of those granted. If it is wanted, it gets a
// successor at once.
func (t *turn) nobody(i int, undo bool) {
	a := t.activity(i, undo)
	a.Tries--
	if undo == t.forwards() {
		t.rest(a, job.Withdrawn)
		return
	}
	// It is over before the next is made, which may be one too many and stop the job.
	t.rest(a, job.NotStarted)
	if t.going() {
		t.openAttempt(i, undo)
	}
}

// lie reports whether a claim cannot be true: it is of an attempt that was never made, or much longer than the step
// allows. The attempt that is out is the newest of its step, so a claim of a newer one is a lie; but only if the job was
// loaded afresh since it was seen.
func (t *turn) lie(i int, undo bool, found job.Found) bool {
	if len(found.Claim.LockedBy) > makegood.MaxLockedByBytes && found.Finding == job.FoundHeld {
		return true
	}
	switch found.Finding {
	case job.FoundOver:
		return true
	case job.FoundHeld:
		limit := t.now.Add(planOf(t.w.Steps[i], undo).timeout.Std() + makegood.MaxClaimAhead)
		// However often it was moved, and whatever the claim says of when it was made.
		if end := t.activity(i, undo).ClaimUntil().Add(makegood.MaxClaim); end.Before(limit) {
			limit = end
		}
		return found.Claim.CompleteBy.After(limit)
	default:
		return false
	}
}

// overrule ends an attempt whose agent lies: it counts as silent.
func (t *turn) overrule(i int, undo bool, found job.Found) Verdict {
	a := t.activity(i, undo)
	_, known := t.ask(Ask{
		Kind: AskOverrule, Step: t.job.Steps[i].Name, Attempt: a.Attempt, Undo: undo, LockedBy: found.Claim.LockedBy,
	})
	if known {
		t.silence(i, undo, job.Claim{}, fmt.Sprintf("agent %s lied: its claim was of attempt %d until %s",
			agentOf(t.w.Steps[i], undo), found.Claim.Attempt, found.Claim.CompleteBy.UTC().Format(time.RFC3339)))
	}
	return Verdict{Kind: Applied}
}

// Out gives the asks that look at every attempt of a job that is out and can be claimed.
func Out(w makegood.Workflow, j job.Job) (asks []Ask) {
	for i, s := range j.Steps {
		if a, undo, ok := dispatched(s); ok && !w.Steps[i].Shared {
			asks = append(asks, Ask{Kind: AskLook, Step: s.Name, Attempt: a.Attempt, Undo: undo})
		}
	}
	return asks
}
