package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// AskKind is the kind of question about an attempt.
type AskKind string

// The kinds. Each is an operation on the claim item of the step.
const (
	AskLook     AskKind = "look"     // read its claim
	AskClose    AskKind = "close"    // end it, if it has no claim
	AskOverrule AskKind = "overrule" // write over a claim that cannot be true; the job was loaded after it was seen
)

// Ask names a fact about the claim of an attempt.
type Ask struct {
	Kind    AskKind
	Step    string
	Attempt int
	Undo    bool
	// LockedBy is the agent that replied a failure, or that holds the claim to be overruled.
	LockedBy string
	// Mark: the attempt is unwanted, and was so when the job was saved last.
	Mark bool
}

// ask returns the known answer; if there is none it asks, and no change may be made that depends on the answer.
func (t *turn) ask(a Ask) (found job.Found, known bool) {
	if found, known = t.askInline(a); known {
		return found, true
	}
	found, known = t.facts.Found[a]
	if !known && !slices.Contains(t.asks, a) {
		t.asks = append(t.asks, a)
	}
	return found, known
}

// closeOpen asks for the end of every open attempt that was wanted until now: because its direction is given up, or
// because the job comes to stand still and must start no new work. It stays out until the answer is known. Shared
// attempts have no claims and may be running: they are left alone.
func (t *turn) closeOpen() {
	for i := range t.job.Steps {
		at, ok := t.out(i)
		if !ok || !t.wanted(at) || t.shared(at) {
			continue
		}
		a := t.activity(at)
		if a.Inline != "" {
			t.endUnsaved(at)
			continue
		}
		a.Closing, a.Cause = true, t.cause
		a.LookAt = t.now.Add(limits.CloseAgain)
	}
}

// look finds out about a wanted attempt that has sent no reply: silence past CompleteBy is a failure; a task that was
// not claimed by StartBy is no failure, and only sends the same attempt again.
func (t *turn) look(at side) {
	a := t.activity(at)
	found, known := t.ask(t.question(AskLook, at))
	switch {
	case !known:
	case found.Finding == job.FoundHeld && !t.lie(at, found) && t.now.Before(found.Claim.CompleteBy):
		t.held(at, found.Claim)
	case found.Finding == job.FoundOpen && t.holds(at, a.Opened()):
		// Its end is asked for with all that is out.
	case found.Finding == job.FoundOpen && !passed(a.Opened().Add(limits.MaxUnclaimed), t.now):
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

// attemptClosed takes the answer to a closing.
func (t *turn) attemptClosed(e job.AttemptClosed) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at, ok := t.out(i)
	if !ok || t.activity(at).Attempt != e.Attempt {
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has ended", e.Attempt, e.Step)}
	}
	if a := t.activity(at); e.Found.Finding == job.FoundHeld && !(a.Closing && a.Cause == e.Asked) {
		// The claim may end sooner than it says now: only the awaited answer gives its end.
		return Verdict{Kind: Duplicate, Reason: fmt.Sprintf("the end of attempt %d of step %s is not waited for", e.Attempt, e.Step)}
	}
	return t.learn(at, e.Found)
}

// learn takes what closing the attempt that is out has found.
func (t *turn) learn(at side, found job.Found) Verdict {
	if t.lie(at, found) {
		return t.overrule(at, found)
	}
	switch found.Finding {
	case job.FoundNobody:
		t.nobody(at)
	case job.FoundSilent:
		t.silence(at, found.Claim, noReply)
	case job.FoundHeld:
		t.held(at, found.Claim)
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
	if !t.wanted(at) {
		// Its end is set: the events that wait for it need not wait for a later look.
		a.LookAt = claim.CompleteBy
	}
}

// nobody ends an attempt that was never claimed: it uses up none of those granted. If it is wanted, it gets a
// successor at once.
func (t *turn) nobody(at side) {
	a := t.activity(at)
	a.Tries--
	if t.conclude(at) {
		return
	}
	if !t.wanted(at) {
		t.noteOf(at, job.Entry{Kind: makegood.EntryWithdrawn})
		t.rest(a, job.Withdrawn)
		return
	}
	// It is over before the next is made, which may be one too many and stop the job.
	t.rest(a, job.NotStarted)
	if t.going() {
		t.openAttempt(at)
	}
}

// lie reports whether a claim cannot be true: its attempt was never made, or it lasts much longer than the step
// allows. The open attempt is the newest of its step, so a claim on a newer one is a lie, but only if the job was
// loaded afresh after the claim was seen.
func (t *turn) lie(at side, found job.Found) bool {
	tooLarge := len(found.Claim.LockedBy) > limits.MaxLockedByBytes || found.Claim.Bytes > job.MaxClaimItemBytes
	if tooLarge && found.Finding == job.FoundHeld {
		return true
	}
	switch found.Finding {
	case job.FoundOver:
		return true
	case job.FoundHeld:
		p := t.plan(at)
		limit := t.now.Add(p.silence() + limits.MaxClaimAhead)
		if started := found.Claim.StartedAt; p.heartbeat > 0 && !started.IsZero() {
			// No heartbeat moves it past the timeout.
			limit = earlier(limit, started.Add(p.timeout.Std()+limits.MaxClaimAhead))
		}
		// However often it was moved, and whatever the claim says of when it was made.
		limit = earlier(limit, t.activity(at).ClaimUntil().Add(limits.MaxClaim))
		return found.Claim.CompleteBy.After(limit)
	default:
		return false
	}
}

// overrule ends an attempt with a false claim: it counts as silent.
func (t *turn) overrule(at side, found job.Found) Verdict {
	if why, known := t.overruled(at, found); known {
		t.silence(at, job.Claim{}, why)
	}
	return Verdict{Kind: Applied}
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

// Out returns the asks that look at every attempt of a job that is out and can be claimed in an item of its own.
func Out(w makegood.Workflow, j job.Job) (asks []Ask) {
	for i, s := range j.Steps {
		if a, undo, ok := dispatched(s); ok && !w.Steps[i].Shared && a.Inline == "" {
			asks = append(asks, Ask{Kind: AskLook, Step: s.Name, Attempt: a.Attempt, Undo: undo})
		}
	}
	return asks
}
