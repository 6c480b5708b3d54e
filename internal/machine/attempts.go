package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// openAttempt makes the next attempt of a resting activity. Its number was never used before and never will be again.
func (t *turn) openAttempt(at side) {
	a := t.activity(at)
	if t.holds(at, t.waitedFrom(at)) {
		return
	}
	if t.waitsByItself(at) {
		// The wait's deadline is a fact; the turn asks for it as for a step that begins.
		t.rest(a, job.NotStarted)
		return
	}
	if !t.number(at) {
		return
	}
	t.repeats(at)
	leaveOut(a, t.now)
	a.State = job.Dispatched
	a.At, a.Resent, a.Cause = t.now, 0, t.cause
	a.Inline = t.lane(at)
	a.LookAt = t.nextLook(at)
	t.opened = append(t.opened, at)
}

// waitedFrom is since when the next attempt of an activity is due.
func (t *turn) waitedFrom(at side) time.Time {
	if a := t.activity(at); a.State == job.Backoff {
		return earlier(a.At, t.now)
	}
	return t.now
}

// number gives an activity the number of its next attempt. It reports whether it may have one.
func (t *turn) number(at side) bool {
	if limit := maxTransitions(t.w); t.job.Transitions >= limit {
		t.stop(fmt.Sprintf("%d attempts and no end: the job goes in circles", limit))
		return false
	}
	t.job.Transitions++
	s, a := &t.job.Steps[at.step], t.activity(at)
	s.Attempt++
	a.Attempt = s.Attempt
	a.Tries++
	return true
}

// rest leaves an activity in a state without an open attempt.
func (t *turn) rest(a *job.Activity, state job.ActivityState) {
	a.State = state
	a.OpenedAt, a.LookAt, a.Closing, a.Inline, a.Wait = time.Time{}, time.Time{}, false, "", nil
}

// succeeded takes a success of the attempt under way, or of the last one that ended in silence, while the newer one can
// still be closed.
func (t *turn) succeeded(e job.StepSucceeded) Verdict {
	at, verdict := t.replyTo(e.Reply)
	if verdict.Kind == Stale && at.step >= 0 {
		if late, ok := t.lateSuccess(at.step, e); ok {
			return late
		}
	}
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	noteStart(a, e.StartedAt)
	// The first report of the failure did not know of this.
	a.Unknown = a.Unknown || a.Held() && a.Completion.Error != nil
	if !t.conclude(at) {
		t.succeed(at, e.Output)
	}
	return verdict
}

func (t *turn) done(at side, output job.Payload) {
	a := t.activity(at)
	t.rest(a, job.Done)
	a.FinishedAt = t.now
	a.Output, a.Error, a.FailingSince = output, nil, time.Time{}
	a.Silent, a.Cause = job.Claim{}, ""
	a.Alone = false
	if a.Completion != nil && a.Completion.Early {
		// It never waited: the completion kept for the wait did not end it.
		a.Completion = nil
	}
}

// noteStart keeps when an activity was first claimed, and last.
func noteStart(a *job.Activity, at time.Time) {
	at = domain.Instant(at)
	switch {
	case a.StartedAt.IsZero():
		a.StartedAt = at
	case !a.StartedAt.Equal(at):
		a.LastStartedAt = at
	}
}

// failed takes a failure of the attempt under way, from the holder of its claim. Unlike a success, a failure of an
// earlier attempt adds no information.
func (t *turn) failed(e job.StepFailed) Verdict {
	at, verdict := t.replyTo(e.Reply)
	if verdict.Kind != Applied {
		return verdict
	}
	failure := e.Error
	failure.Message = limits.Clip(failure.Message)
	if t.shared(at) {
		// Its task was not claimed, so it may run more than once: one run cannot speak for the others.
		failure.Applied = makegood.AppliedUnknown
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, LockedBy: e.LockedBy, StartedAt: e.StartedAt, Error: &failure})
		return verdict
	}
	if e.LockedBy == "" {
		// Asked for without a name, Close would end an attempt that an agent may yet claim.
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("a failure of attempt %d of step %s that names no claim", e.Attempt, e.Step)}
	}
	found, ok := t.ask(Ask{Kind: AskClose, Step: e.Step, Attempt: e.Attempt, Undo: at.undo, LockedBy: e.LockedBy})
	if !ok {
		return verdict
	}
	switch found.Finding {
	case job.FoundReplied:
		a := t.activity(at)
		noteStart(a, found.Claim.StartedAt)
		a.Alone = false
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, LockedBy: e.LockedBy, StartedAt: found.Claim.StartedAt, Error: &failure})
		return verdict
	case job.FoundOpen, job.FoundHeld:
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is not claimed by %q", e.Attempt, e.Step, e.LockedBy)}
	default:
		// The reply comes too late, but says how the attempt ended.
		return t.learn(at, found)
	}
}

// replyTo is the fence: it returns the side of the step that a reply names, and whether the reply counts. The step is
// negative if it does not exist or must not be disclosed.
func (t *turn) replyTo(r job.Reply) (at side, v Verdict) {
	i, ok := t.indexOf(r.Step)
	if !ok {
		return side{step: -1}, Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", r.Step)}
	}
	if OfLaterScheme(r) {
		return side{step: -1}, Verdict{Kind: Newer, Reason: fmt.Sprintf("a token of a later scheme for attempt %d of step %s", r.Attempt, r.Step)}
	}
	if !Genuine(*t.job, r) {
		return side{step: -1}, Verdict{Kind: Stale, Reason: fmt.Sprintf("a reply without the token of attempt %d of step %s", r.Attempt, r.Step)}
	}
	s := &t.job.Steps[i]
	a, undo, ok := dispatched(*s)
	at = side{i, undo}
	switch {
	case ok && a.Attempt == r.Attempt:
		return at, Verdict{Kind: Applied}
	case s.Forward.Silent.Attempt == r.Attempt || s.Undo.Silent.Attempt == r.Attempt:
		return at, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s ended in silence", r.Attempt, r.Step)}
	case s.Forward.Attempt != r.Attempt && s.Undo.Attempt != r.Attempt:
		return at, Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", r.Attempt, r.Step)}
	}
	return at, Verdict{Kind: Duplicate, Reason: fmt.Sprintf("attempt %d of step %s has replied", r.Attempt, r.Step)}
}

func (t *turn) indexOf(step string) (int, bool) {
	for i := range t.job.Steps {
		if t.job.Steps[i].Name == step {
			return i, true
		}
	}
	return -1, false
}

// lateSuccess takes the success of an attempt that was already counted as silent, if its direction is still wanted
// and the following attempt can be closed. ok is false if this rule does not apply.
func (t *turn) lateSuccess(i int, e job.StepSucceeded) (v Verdict, ok bool) {
	if !t.active() {
		return Verdict{}, false
	}
	at := t.inDirection(i)
	a := t.activity(at)
	if a.Silent.Attempt != e.Attempt || a.Silent.LockedBy != e.LockedBy {
		return Verdict{}, false
	}
	switch a.State {
	case job.Backoff, job.NotStarted, job.Waiting:
	case job.Dispatched:
		if t.shared(at) {
			return Verdict{}, false
		}
		found, known := t.ask(t.question(AskClose, at))
		switch {
		case !known:
			return Verdict{Kind: Applied}, true
		case found.Finding == job.FoundHeld:
			return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is under way", a.Attempt, e.Step)}, true
		case found.Finding != job.FoundNobody:
			return t.learn(at, found), true
		}
	default:
		return Verdict{}, false
	}
	t.succeed(at, e.Output)
	return Verdict{Kind: Applied}, true
}

// dispatchRefused gives up a step if its task can never be sent. The step never started, so no failure is counted.
func (t *turn) dispatchRefused(e job.DispatchRefused) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at, ok := t.out(i)
	if !ok || t.activity(at).Attempt != e.Attempt {
		return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s is over", e.Attempt, e.Step)}
	}
	if !t.shared(at) && t.activity(at).Inline == "" {
		found, known := t.ask(t.question(AskClose, at))
		switch {
		case !known:
			return Verdict{Kind: Applied}
		case found.Finding == job.FoundHeld:
			return Verdict{Kind: Stale, Reason: fmt.Sprintf("attempt %d of step %s was sent, and claimed", e.Attempt, e.Step)}
		case found.Finding != job.FoundNobody || !t.wanted(at) || !t.active():
			return t.learn(at, found)
		}
	}
	why := &job.StepError{Message: limits.Clip("the task cannot be sent: " + e.Reason), Kind: makegood.KindDispatch, Applied: makegood.AppliedNo}
	t.noteOf(at, job.Entry{Kind: makegood.EntryRefused, Error: why})
	if t.conclude(at) {
		return Verdict{Kind: Applied}
	}
	a := t.activity(at)
	t.rest(a, job.NotStarted)
	a.Error = why
	t.giveUp(at, a.Error.Message)
	return Verdict{Kind: Applied}
}

// attemptFailed counts the failure of a started attempt, and tries again or gives up. ended is its history entry.
func (t *turn) attemptFailed(at side, ended job.Entry) {
	a, failure := t.activity(at), *ended.Error
	a.Unknown = a.Unknown || failure.Applied != makegood.AppliedNo
	if a.Held() {
		t.noteOf(at, ended)
	}
	if t.conclude(at) {
		// How the step ended is in its completion already, but not its possible effect.
		return
	}
	t.countFailure(at, ended)
	leaveOut(a, earlier(ended.StartedAt, t.now))
	wanted := t.wanted(at)
	retry, retryable := t.again(at, failure)
	switch {
	case wanted && retryable && t.mayTryAgain(a, retry):
		t.rest(a, job.Backoff)
		a.Cause = t.cause
		a.At = t.nextTry(at, retry, failure.RetryAfter)
		if !a.At.After(t.now) && t.active() && !t.job.Paused() {
			t.openAttempt(at)
		}
	case retryable && wanted && retry.Attempts > 1:
		t.giveUp(at, fmt.Sprintf("%s (%s)", failure.Message, t.tried(a, retry)))
	default:
		t.giveUp(at, failure.Message)
	}
}

// countFailure counts the failure of a started attempt. ended is its history entry.
func (t *turn) countFailure(at side, ended job.Entry) {
	a := t.activity(at)
	a.FailureCount++
	t.job.FailureCount++
	ended.Failure = t.job.FailureCount
	t.noteOf(at, ended)
	a.Error = ended.Error
}

// giveUp ends an activity without success and decides how the job goes on.
func (t *turn) giveUp(at side, why string) {
	a := t.activity(at)
	t.rest(a, job.Failed)
	a.FinishedAt = t.now
	if !t.active() || !t.wanted(at) {
		// The job waits for a person already, or is turning back and let a claimed attempt run out.
		return
	}
	if at.undo {
		t.stop(fmt.Sprintf("undo of %s failed: %s", t.name(at), why))
		return
	}
	if t.passBy(at) {
		return
	}
	reason := fmt.Sprintf("step %s failed: %s", t.name(at), why)
	if t.stopsFor(at) {
		t.stop(reason)
		return
	}
	switch t.w.OnFailure.Action {
	case makegood.FailureUndo:
		t.turnRound(makegood.JobUndone, reason)
	case makegood.FailureRestart:
		t.tryAgain(t.name(at), why)
	case makegood.FailureStop:
		t.stop(reason)
	case makegood.FailureWait:
		a.State, a.FinishedAt = job.Backoff, time.Time{}
		a.Cause = t.cause
		a.At = t.now.Add(t.w.OnFailure.Wait.Std())
		grant(a)
		// Waiting is no circle: it takes its time.
		t.job.Transitions = 0
	default:
		panic(fmt.Sprintf("machine: onFailure %q", t.w.OnFailure.Action))
	}
}

// mayTryAgain reports whether an activity has another attempt after a failure: one is left of those granted, and its
// time is not over. A failure that is not counted (spare) does not begin that time.
func (t *turn) mayTryAgain(a *job.Activity, retry makegood.Retry) bool {
	if retry.For > 0 && a.FailingSince.IsZero() && a.Tries > 0 {
		a.FailingSince = t.now
	}
	return a.Tries < retry.Attempts && (a.FailingSince.IsZero() || retry.For == 0 || t.now.Before(a.FailingSince.Add(retry.For.Std())))
}

// nextTry returns when the next attempt is due: after exponential backoff with full jitter, or after the delay that
// the remote asked for if that is longer. If time bounds the attempts, the last one comes at its end: it outlives an
// outage.
func (t *turn) nextTry(at side, retry makegood.Retry, after makegood.Duration) time.Time {
	a := t.activity(at)
	ms := uint64(doubled(retry.Backoff, a.Tries-1, retry.Max) / makegood.Millisecond)
	jittered := makegood.Duration(mix(t.facts.Random, uint64(at.step)<<32|uint64(a.Attempt))%(ms+1)) * makegood.Millisecond
	next := t.now.Add(jittered.Std())
	if retry.For > 0 && !a.FailingSince.IsZero() {
		next = earlier(next, a.FailingSince.Add(retry.For.Std()))
	}
	return later(next, t.now.Add(min(after, retry.Max).Std()))
}

// tried says how far an activity got that is given up.
func (t *turn) tried(a *job.Activity, retry makegood.Retry) string {
	if a.Tries >= retry.Attempts {
		return fmt.Sprintf("attempt %d of %d", a.Tries, retry.Attempts)
	}
	return fmt.Sprintf("attempt %d, tried again for %s", a.Tries, retry.For)
}

// leaveOut excludes the time since the latest attempt was due, or sent, from the time for which the step is tried
// again: no attempt ran until then.
func leaveOut(a *job.Activity, until time.Time) {
	if !a.FailingSince.IsZero() && passed(a.At, until) {
		a.FailingSince = a.FailingSince.Add(until.Sub(a.At))
	}
}

// doubled returns d doubled the given number of times, at most longest.
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
