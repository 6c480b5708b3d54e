package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
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

func (t *turn) activity(i int, undo bool) *makegood.Activity {
	if undo {
		return &t.job.Steps[i].Undo
	}
	return &t.job.Steps[i].Forward
}

// dispatched gives the activity of a step that is with its agent. A step and its undo never are at
// once: an undo starts when no attempt of its step is left.
func dispatched(s makegood.StepState) (a makegood.Activity, undo, ok bool) {
	switch {
	case s.Undo.State == makegood.Dispatched:
		return s.Undo, true, true
	case s.Forward.State == makegood.Dispatched:
		return s.Forward, false, true
	default:
		return makegood.Activity{}, false, false
	}
}

// claimOf gives the claim on the attempt that an activity is at, if it is claimed.
func claimOf(job makegood.Job, step string, a makegood.Activity) (makegood.Claim, bool) {
	c, ok := job.Claims.Slots[step]
	return c, ok && c.Attempt == a.Attempt
}

// openAttempt makes the next attempt: its number has never been used, and never will be again.
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
	a.State = makegood.Dispatched
	a.Tries++
	a.At, a.Resent, a.Cause = t.now, 0, t.cause
}

// endAttempt notes that the latest attempt is over, so that its claim slot goes.
func (t *turn) endAttempt(i int, a makegood.Activity) {
	name := t.job.Steps[i].Name
	if _, claimed := claimOf(*t.job, name, a); !claimed {
		return
	}
	delete(t.job.Claims.Slots, name)
	t.ended = append(t.ended, name)
}

// withdrawUnclaimed takes back every attempt that nobody claimed, leaving its activity in state. It
// never started, so it uses up none of the attempts granted. Shared attempts are nobody's to claim
// and may be running: they are left alone.
func (t *turn) withdrawUnclaimed(state makegood.ActivityState) {
	for i, s := range t.job.Steps {
		a, undo, ok := dispatched(s)
		if !ok || t.w.Steps[i].Shared {
			continue
		}
		if _, claimed := claimOf(*t.job, s.Name, a); claimed {
			continue
		}
		t.onClaims = true
		withdrawn := t.activity(i, undo)
		withdrawn.State = state
		withdrawn.Tries--
	}
}

// succeeded takes a success of the attempt under way, or of the one before it that ended in silence,
// while nobody has claimed the newer one.
func (t *turn) succeeded(e makegood.StepSucceeded) Verdict {
	i, undo, verdict := t.replyTo(e.Step, e.Attempt, e.LockedBy)
	if verdict.Kind == Stale && t.lateSuccess(i, e) {
		return Verdict{Kind: Applied}
	}
	if verdict.Kind != Applied {
		return verdict
	}
	t.done(i, undo, e.Output)
	return verdict
}

func (t *turn) done(i int, undo bool, output makegood.Payload) {
	a := t.activity(i, undo)
	t.noteStart(i, a)
	t.endAttempt(i, *a)
	a.State, a.FinishedAt = makegood.Done, t.now
	a.Output, a.Error = output, nil
	a.Silent, a.Cause = makegood.Claim{}, ""
}

// noteStart keeps when an activity was first claimed.
func (t *turn) noteStart(i int, a *makegood.Activity) {
	if c, ok := claimOf(*t.job, t.job.Steps[i].Name, *a); ok && a.StartedAt.IsZero() {
		a.StartedAt = c.StartedAt
	}
}

// failed takes a failure of the attempt under way. Unlike a success, a failure of an earlier attempt
// says nothing that is not known.
func (t *turn) failed(e makegood.StepFailed) Verdict {
	i, undo, verdict := t.replyTo(e.Step, e.Attempt, e.LockedBy)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(i, undo)
	t.noteStart(i, a)
	t.endAttempt(i, *a)
	failure := e.Error
	failure.Message = makegood.Clip(failure.Message)
	if t.w.Steps[i].Shared {
		// Nobody claimed it, so its task may run more than once: one run cannot speak for the others.
		failure.Applied = makegood.AppliedUnknown
	}
	t.attemptFailed(i, undo, failure)
	return verdict
}

// replyTo is the fence: it says which activity a reply speaks of, and whether it may speak.
func (t *turn) replyTo(step string, attempt int, lockedBy string) (i int, undo bool, v Verdict) {
	i, ok := t.indexOf(step)
	if !ok {
		return -1, false, Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", step)}
	}
	s := t.job.Steps[i]
	a, undo, ok := dispatched(s)
	switch {
	case s.Forward.Attempt != attempt && s.Undo.Attempt != attempt:
		return i, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", attempt, step)}
	case !ok || a.Attempt != attempt:
		if s.Forward.Silent.Attempt == attempt || s.Undo.Silent.Attempt == attempt {
			return i, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s ended in silence", attempt, step)}
		}
		return i, undo, Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has replied", attempt, step)}
	case t.w.Steps[i].Shared:
		return i, undo, Verdict{Kind: Applied}
	}
	claim, claimed := claimOf(*t.job, step, a)
	if !claimed || claim.LockedBy != lockedBy {
		return i, undo, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is not claimed by %q", attempt, step, lockedBy)}
	}
	return i, undo, Verdict{Kind: Applied}
}

func (t *turn) indexOf(step string) (int, bool) {
	for i := range t.job.Steps {
		if t.job.Steps[i].Name == step {
			return i, true
		}
	}
	return -1, false
}

// lateSuccess takes the success of an attempt whose silence was already counted as a failure, if its
// direction is still wanted and the attempt after it is not yet claimed.
func (t *turn) lateSuccess(i int, e makegood.StepSucceeded) bool {
	if i < 0 || !t.active() {
		return false
	}
	undo := !t.forwards()
	a := t.activity(i, undo)
	if a.Silent.Attempt == 0 || a.Silent.Attempt != e.Attempt || a.Silent.LockedBy != e.LockedBy {
		return false
	}
	switch a.State {
	case makegood.Backoff:
	case makegood.Dispatched:
		_, claimed := claimOf(*t.job, e.Step, *a)
		if claimed || t.w.Steps[i].Shared {
			return false
		}
		t.onClaims = true
	default:
		return false
	}
	if a.StartedAt.IsZero() {
		a.StartedAt = a.Silent.StartedAt
	}
	t.done(i, undo, e.Output)
	return true
}

// dispatchRefused gives a step up whose task can never be sent. It never started: nothing is counted.
func (t *turn) dispatchRefused(e makegood.DispatchRefused) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	a, undo, ok := dispatched(t.job.Steps[i])
	if !ok || a.Attempt != e.Attempt {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", e.Attempt, e.Step)}
	}
	if _, claimed := claimOf(*t.job, e.Step, a); claimed {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was sent, and claimed", e.Attempt, e.Step)}
	}
	t.onClaims = true
	act := t.activity(i, undo)
	act.Error = &makegood.StepError{Message: makegood.Clip("the task cannot be sent: " + e.Reason), Applied: makegood.AppliedNo}
	t.giveUp(i, undo, act.Error.Message)
	return Verdict{Kind: Applied}
}

// attemptFailed counts the failure of an attempt that had started, and tries again or gives up.
func (t *turn) attemptFailed(i int, undo bool, failure makegood.StepError) {
	a := t.activity(i, undo)
	a.FailureCount++
	t.job.FailureCount++
	a.Error = &failure
	a.Unknown = a.Unknown || failure.Applied != makegood.AppliedNo
	wanted := undo != t.forwards()
	retry := planOf(t.w.Steps[i], undo).retry
	switch {
	case wanted && failure.Retryable && a.Tries < retry.Attempts:
		a.State = makegood.Backoff
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
	a.State, a.FinishedAt = makegood.Failed, t.now
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
		a.State, a.FinishedAt = makegood.Backoff, time.Time{}
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
	longest := retry.Max
	if tries-1 < 32 && retry.Backoff<<(tries-1) < longest && retry.Backoff<<(tries-1) > 0 {
		longest = retry.Backoff << (tries - 1)
	}
	ms := uint64(longest / makegood.Millisecond)
	jittered := makegood.Duration(mix(t.facts.Random, uint64(step)<<32|uint64(attempt))%(ms+1)) * makegood.Millisecond
	return max(jittered, min(after, retry.Max)).Std()
}

// mix draws the n-th number from a random one (the finaliser of splitmix64), so that the steps of one
// decision do not all wait equally long.
func mix(random, n uint64) uint64 {
	z := random + (n+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
