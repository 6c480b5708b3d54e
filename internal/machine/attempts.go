package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// plan is what the workflow says of a step, or of its undo.
type plan struct {
	startBy, timeout makegood.Duration
	retry            makegood.Retry
	shared           bool
}

func planOf(s makegood.Step, undo bool) plan {
	if undo {
		return plan{s.Undo.StartBy, s.Undo.Timeout, s.Undo.Retry, s.Shared}
	}
	return plan{s.StartBy, s.Timeout, s.Retry, s.Shared}
}

func (t *turn) activity(i int, undo bool) *job.Activity {
	if undo {
		return &t.job.Steps[i].Undo
	}
	return &t.job.Steps[i].Forward
}

// dispatched gives the activity of a step that is with its agent. A step and its undo never are at
// once: an undo starts when no attempt of its step is left.
func dispatched(s job.StepState) (a job.Activity, undo, ok bool) {
	switch {
	case s.Undo.State == job.Dispatched:
		return s.Undo, true, true
	case s.Forward.State == job.Dispatched:
		return s.Forward, false, true
	default:
		return job.Activity{}, false, false
	}
}

// openAttempt makes the next attempt of an activity that rests: its number has never been used, and never will be again.
func (t *turn) openAttempt(i int, undo bool) {
	if limit := maxTransitions(t.w); t.job.Transitions >= limit {
		t.stop(fmt.Sprintf("%d attempts and no end: the job goes in circles", limit))
		return
	}
	t.job.Transitions++
	s := &t.job.Steps[i]
	a := t.activity(i, undo)
	s.Attempt++
	a.Attempt = s.Attempt
	a.State = job.Dispatched
	a.Tries++
	a.At, a.Resent, a.Cause = t.now, 0, t.cause
	a.LookAt = t.nextLook(i, undo)
}

// rest leaves an activity in a state in which no attempt of it is out.
func (t *turn) rest(a *job.Activity, state job.ActivityState) {
	a.State = state
	a.OpenedAt, a.LookAt, a.Closing = time.Time{}, time.Time{}, false
}

// succeeded takes a success of the attempt under way, or of the last one that ended in silence, while the newer one can
// still be closed.
func (t *turn) succeeded(e job.StepSucceeded) Verdict {
	i, undo, verdict := t.replyTo(e.Reply)
	if verdict.Kind == Stale && i >= 0 {
		if late, ok := t.lateSuccess(i, e); ok {
			return late
		}
	}
	if verdict.Kind != Applied {
		return verdict
	}
	noteStart(t.activity(i, undo), e.StartedAt)
	t.done(i, undo, e.Output)
	return verdict
}

func (t *turn) done(i int, undo bool, output job.Payload) {
	a := t.activity(i, undo)
	t.rest(a, job.Done)
	a.FinishedAt = t.now
	a.Output, a.Error = output, nil
	a.Silent, a.Cause = job.Claim{}, ""
}

// noteStart keeps when an activity was first claimed.
func noteStart(a *job.Activity, at time.Time) {
	if a.StartedAt.IsZero() {
		a.StartedAt = makegood.Instant(at)
	}
}

// failed takes a failure of the attempt under way, from who holds its claim. Unlike a success, a failure of an earlier
// attempt says nothing that is not known.
func (t *turn) failed(e job.StepFailed) Verdict {
	i, undo, verdict := t.replyTo(e.Reply)
	if verdict.Kind != Applied {
		return verdict
	}
	failure := e.Error
	failure.Message = makegood.Clip(failure.Message)
	if t.w.Steps[i].Shared {
		// Nobody claimed it, so its task may run more than once: one run cannot speak for the others.
		failure.Applied = makegood.AppliedUnknown
		t.attemptFailed(i, undo, failure)
		return verdict
	}
	if e.LockedBy == "" {
		// Asked for without a name, Close would end what somebody may claim yet.
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("a failure of attempt %d of step %s that names no claim", e.Attempt, e.Step)}
	}
	found, ok := t.ask(Ask{Kind: AskClose, Step: e.Step, Attempt: e.Attempt, Undo: undo, LockedBy: e.LockedBy})
	if !ok {
		return verdict
	}
	switch found.Finding {
	case job.FoundReplied:
		a := t.activity(i, undo)
		noteStart(a, found.Claim.StartedAt)
		t.attemptFailed(i, undo, failure)
		return verdict
	case job.FoundOpen, job.FoundHeld:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is not claimed by %q", e.Attempt, e.Step, e.LockedBy)}
	default:
		// The reply comes too late, but says how the attempt ended.
		return t.learn(i, undo, found)
	}
}

// replyTo is the fence: it says which activity a reply speaks of, and whether it may speak.
func (t *turn) replyTo(r job.Reply) (i int, undo bool, v Verdict) {
	i, ok := t.indexOf(r.Step)
	if !ok {
		return -1, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", r.Step)}
	}
	if OfLaterScheme(r) {
		return -1, undo, Verdict{Kind: Newer, Reason: fmt.Sprintf("a token of a later scheme for attempt %d of step %s", r.Attempt, r.Step)}
	}
	if !Genuine(*t.job, r) {
		return -1, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("a reply without the token of attempt %d of step %s", r.Attempt, r.Step)}
	}
	s := t.job.Steps[i]
	a, undo, ok := dispatched(s)
	switch {
	case ok && a.Attempt == r.Attempt:
		return i, undo, Verdict{Kind: Applied}
	case s.Forward.Silent.Attempt == r.Attempt || s.Undo.Silent.Attempt == r.Attempt:
		return i, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s ended in silence", r.Attempt, r.Step)}
	case s.Forward.Attempt != r.Attempt && s.Undo.Attempt != r.Attempt:
		return i, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", r.Attempt, r.Step)}
	}
	return i, undo, Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has replied", r.Attempt, r.Step)}
}

func (t *turn) indexOf(step string) (int, bool) {
	for i := range t.job.Steps {
		if t.job.Steps[i].Name == step {
			return i, true
		}
	}
	return -1, false
}

// lateSuccess takes the success of an attempt whose silence was already counted as a failure, if its direction is still
// wanted and the attempt after it can be closed. ok is false if it is not for us to say anything.
func (t *turn) lateSuccess(i int, e job.StepSucceeded) (v Verdict, ok bool) {
	if !t.active() {
		return Verdict{}, false
	}
	undo := !t.forwards()
	a := t.activity(i, undo)
	if a.Silent.Attempt != e.Attempt || a.Silent.LockedBy != e.LockedBy {
		return Verdict{}, false
	}
	switch a.State {
	case job.Backoff, job.NotStarted:
	case job.Dispatched:
		if t.w.Steps[i].Shared {
			return Verdict{}, false
		}
		found, known := t.ask(Ask{Kind: AskClose, Step: e.Step, Attempt: a.Attempt, Undo: undo})
		switch {
		case !known:
			return Verdict{Kind: Applied}, true
		case found.Finding == job.FoundHeld:
			return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is under way", a.Attempt, e.Step)}, true
		case found.Finding != job.FoundNobody:
			return t.learn(i, undo, found), true
		}
	default:
		return Verdict{}, false
	}
	t.done(i, undo, e.Output)
	return Verdict{Kind: Applied}, true
}

// dispatchRefused gives a step up whose task can never be sent. It never started: nothing is counted.
func (t *turn) dispatchRefused(e job.DispatchRefused) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	a, undo, ok := dispatched(t.job.Steps[i])
	if !ok || a.Attempt != e.Attempt {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", e.Attempt, e.Step)}
	}
	if !t.w.Steps[i].Shared {
		found, known := t.ask(Ask{Kind: AskClose, Step: e.Step, Attempt: e.Attempt, Undo: undo})
		switch {
		case !known:
			return Verdict{Kind: Applied}
		case found.Finding == job.FoundHeld:
			return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was sent, and claimed", e.Attempt, e.Step)}
		case found.Finding != job.FoundNobody || undo == t.forwards() || !t.active():
			return t.learn(i, undo, found)
		}
	}
	act := t.activity(i, undo)
	t.rest(act, job.NotStarted)
	act.Error = &job.StepError{Message: makegood.Clip("the task cannot be sent: " + e.Reason), Applied: makegood.AppliedNo}
	t.giveUp(i, undo, act.Error.Message)
	return Verdict{Kind: Applied}
}

// attemptFailed counts the failure of an attempt that had started, and tries again or gives up.
func (t *turn) attemptFailed(i int, undo bool, failure job.StepError) {
	a := t.activity(i, undo)
	a.FailureCount++
	t.job.FailureCount++
	a.Error = &failure
	a.Unknown = a.Unknown || failure.Applied != makegood.AppliedNo
	wanted := undo != t.forwards()
	retry := planOf(t.w.Steps[i], undo).retry
	switch {
	case wanted && failure.Retryable && a.Tries < retry.Attempts:
		t.rest(a, job.Backoff)
		a.Cause = t.cause
		a.At = t.now.Add(t.delay(i, a.Tries, a.Attempt, retry, failure.RetryAfter))
		if !a.At.After(t.now) && t.active() && !t.job.Paused() {
			t.openAttempt(i, undo)
		}
	case failure.Retryable && wanted && retry.Attempts > 1:
		t.giveUp(i, undo, fmt.Sprintf("%s (attempt %d of %d)", failure.Message, a.Tries, retry.Attempts))
	default:
		t.giveUp(i, undo, failure.Message)
	}
}

// giveUp ends an activity without success, and says what follows for the job.
func (t *turn) giveUp(i int, undo bool, why string) {
	a := t.activity(i, undo)
	t.rest(a, job.Failed)
	a.FinishedAt = t.now
	if !t.active() || undo == t.forwards() {
		// The job waits for a person already, or is turning back and let a claimed attempt run out.
		return
	}
	name := t.w.Steps[i].Name
	if undo {
		t.stop(fmt.Sprintf("undo of %s failed: %s", name, why))
		return
	}
	reason := fmt.Sprintf("step %s failed: %s", name, why)
	switch t.w.OnFailure.Action {
	case makegood.FailureUndo:
		t.turnRound(makegood.Undone, reason)
	case makegood.FailureStop:
		t.stop(reason)
	case makegood.FailureWait:
		a.State, a.FinishedAt = job.Backoff, time.Time{}
		a.Cause = t.cause
		a.At = t.now.Add(t.w.OnFailure.Wait.Std())
		a.Tries = 0
		// Waiting is no circle: it takes its time.
		t.job.Transitions = 0
	default:
		panic(fmt.Sprintf("machine: onFailure %q", t.w.OnFailure.Action))
	}
}

// delay is exponential backoff with full jitter, or what the remote asked for if that is longer.
func (t *turn) delay(step, tries, attempt int, retry makegood.Retry, after makegood.Duration) time.Duration {
	ms := uint64(doubled(retry.Backoff, tries-1, retry.Max) / makegood.Millisecond)
	jittered := makegood.Duration(mix(t.facts.Random, uint64(step)<<32|uint64(attempt))%(ms+1)) * makegood.Millisecond
	return max(jittered, min(after, retry.Max)).Std()
}

// doubled is a time doubled so many times, but not beyond what is the longest.
func doubled[D makegood.Duration | time.Duration](d D, times int, longest D) D {
	for ; times > 0 && d < longest; times-- {
		d *= 2
	}
	return min(d, longest)
}

// mix draws the n-th number from a random one (the finaliser of splitmix64), so that the steps of one
// decision do not all wait equally long.
func mix(random, n uint64) uint64 {
	z := random + (n+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
