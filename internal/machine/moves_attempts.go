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
	t.dispatch(at)
	t.openChain(at, limits.MaxChain-1)
}

// dispatch lets an activity have the attempt that it was given a number for.
func (t *turn) dispatch(at side) {
	a := t.activity(at)
	leaveOut(a, t.now)
	a.State = job.Dispatched
	a.At, a.Resent, a.Cause = t.now, 0, t.cause
	if a.Queued = t.mustQueue(at); a.Queued {
		a.QueuedOver = t.job.Rev
	}
	a.Inline = t.lane(at)
	a.LookAt = t.nextLook(at)
	t.opened = append(t.opened, at)
}

// openChain opens up to n attempts as well that the process of an inline one may run behind it. The reply of that one
// is saved with theirs, so it is not over before they are.
func (t *turn) openChain(at side, n int) {
	if t.activity(at).Inline == "" || n == 0 {
		return
	}
	next, ok := t.chained(at)
	if !ok || !t.number(next) {
		return
	}
	t.dispatch(next)
	t.openChain(next, n-1)
	t.activity(at).LookAt = later(t.activity(at).LookAt, t.activity(next).LookAt)
}

// transition counts an attempt, or the second sending of one. The job stops after too many, and it returns false.
func (t *turn) transition() bool {
	if limit := maxTransitions(t.w); t.job.Transitions >= limit {
		t.stop(fmt.Sprintf("%d attempts and no end: the job goes in circles", limit))
		return false
	}
	t.job.Transitions++
	return true
}

// number gives an activity the number of its next attempt. It reports whether it may have one.
func (t *turn) number(at side) bool {
	if !t.transition() {
		return false
	}
	s, a := &t.job.Steps[at.step], t.activity(at)
	s.Attempt++
	a.Attempt = s.Attempt
	a.Tries++
	if t.isChild(at) {
		a.Repeats = 0 // It is another child, which no redrive was asked of.
	}
	return true
}

// conclude ends an activity after its attempt, if an answer was given before, and reports whether one was.
func (t *turn) conclude(at side) bool {
	a := t.activity(at)
	if !a.Held() {
		return false
	}
	t.take(at, *a.Completion)
	return true
}

// take ends an activity without an open attempt, with an answer from outside.
func (t *turn) take(at side, c job.Completion) {
	a := t.activity(at)
	a.Completion = c.Taken()
	if c.Error != nil {
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, By: c.By, Error: c.Error})
		return
	}
	t.answeredWith(at, c.Output, a.Completion)
}

// answeredWith ends a waiting step with an output from outside. The onAnswer of an approval decides how the job goes
// on, for the answer of a person (c) and of a deadline (nil) alike. After any other output the job goes on.
func (t *turn) answeredWith(at side, output job.Payload, c *job.Completion) {
	a := t.activity(at)
	answer, _ := answerIn(output)
	do := t.w.Steps[at.step].OnAnswer[answer]
	if at.undo || !t.forwards() {
		do = makegood.AnswerDo{}
	}
	switch do.Action {
	case "":
		t.done(at, output)
	case makegood.AnswerUndo:
		t.done(at, output)
		t.turnRound(makegood.JobUndone, fmt.Sprintf("step %s was %s", t.name(at), answerOf(answer, c)))
	case makegood.AnswerGoto:
		t.done(at, output)
		a.State, a.WentTo = job.Skipped, do.Step
		t.leaveOut(at.step)
	case makegood.AnswerStop, makegood.AnswerFail:
		t.refusedBy(at, do.Action, answerOf(answer, c))
	default:
		panic(fmt.Sprintf("machine: onAnswer %q", do.Action))
	}
}

// refusedBy ends an approval with an answer that is a failure. Its step had no effect and is not tried again by
// itself: the person has answered.
func (t *turn) refusedBy(at side, action makegood.AnswerAction, reason string) {
	a := t.activity(at)
	failure := &job.StepError{Message: limits.Clip(reason), Kind: makegood.KindAnswer, Applied: makegood.AppliedNo}
	ended := job.Entry{Kind: makegood.EntryFailed, Error: failure}
	if action == makegood.AnswerFail {
		t.attemptFailed(at, ended)
		return
	}
	t.countFailure(at, ended)
	t.rest(a, job.Failed)
	a.FinishedAt = t.now
	if t.active() {
		t.stop(fmt.Sprintf("step %s was %s", t.name(at), reason))
	}
}

// attemptEnded takes a failure, or the silence, of an attempt that its agent has begun.
func (t *turn) attemptEnded(at side, ended job.Entry) {
	if why, shut := t.deferral(at, *ended.Error); why != "" {
		t.putOff(at, ended, why)
		if shut.Name != "" && t.going() {
			shut.Since = t.now
			t.holding = &shut
		}
		return
	}
	t.attemptFailed(at, ended)
}

// deferral says why an attempt that has failed is not one of those granted: no attempt is burned for an outage. Empty:
// it is one. shut is the hold of the breaker that the job stands still for, a probe too.
func (t *turn) deferral(at side, failure job.StepError) (why string, shut job.Hold) {
	a, s := t.activity(at), t.w.Steps[at.step]
	agent := agentOf(s, at.undo)
	shut, on := t.facts.Held.On(job.HoldName(makegood.HoldAgent, agent))
	switch {
	case !failure.Retryable || !t.wanted(at) || a.Deferred >= limits.MaxDeferrals:
		return "", job.Hold{}
	case on && shut.Tripped && domain.IsSick(s, at.undo, failure.Kind):
		return "agent " + agent + " was paused by the breaker", shut
	case failure.SlowDown && failure.RetryAfter > 0:
		return "its service asked for a pause of " + failure.RetryAfter.String(), job.Hold{}
	}
	return "", job.Hold{}
}

// putOff ends an attempt that is not one of those granted. The next is due when its service wants to be asked again.
func (t *turn) putOff(at side, ended job.Entry, why string) {
	a := t.activity(at)
	a.Unknown = a.Unknown || ended.Error.Applied != makegood.AppliedNo
	if ended.Reason == "" { // Else it was left uncounted before: spare.
		a.Tries--
	}
	ended.Reason = "not one of those granted: " + why
	a.Deferred++
	t.job.Transitions = max(0, t.job.Transitions-1)
	t.noteOf(at, ended)
	a.Error = ended.Error
	leaveOut(a, earlier(ended.StartedAt, t.now))
	t.rest(a, job.Backoff)
	a.Cause = t.cause
	a.At = t.now.Add(min(ended.Error.RetryAfter.Std(), limits.MaxSlowDown))
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
	if t.passBy(at) || t.tolerates(at) {
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

// passBy passes a step by that is given up, where its onError says so, and reports whether it did. What the step did is
// as unknown as it was: going back, it is undone.
func (t *turn) passBy(at side) bool {
	a := t.activity(at)
	if at.undo || a.Error == nil {
		return false
	}
	_, route := domain.Routes(t.w.Steps[at.step], a.Error.Kind)
	if route == nil || route.Do.Action != makegood.RouteSkip && route.Do.Action != makegood.RouteGoto {
		return false
	}
	t.rest(a, job.Skipped)
	a.Silent, a.Cause = nil, ""
	if output := route.Output; len(output) > 0 && string(output) != "null" {
		a.Output = job.Payload{Inline: output, Bytes: len(output)}
	}
	if route.Do.Action == makegood.RouteGoto {
		a.WentTo = route.Do.Step
		t.leaveOut(at.step)
	}
	return true
}

// tolerates passes an item by that is given up, where its part has room for one more failure, and reports whether it
// did. What the item did is as unknown as it was: going back, it is undone.
func (t *turn) tolerates(at side) bool {
	if t.w.Part == nil || at.undo || t.w.Steps[at.step].Map != nil {
		return false
	}
	a := t.activity(at)
	if t.intolerable(t.itemsIn(at.step)-a.Answered) != "" {
		return false
	}
	a.State, a.Silent, a.Cause = job.Skipped, nil, ""
	return true
}

// leaveOut skips the followers of a step that went elsewhere, except its target and the target's followers. Steps
// that begin by any of several, or when another goes to them, may still begin by another.
func (t *turn) leaveOut(from int) {
	to, _ := t.indexOf(t.job.Steps[from].Forward.WentTo)
	behind := t.graph.behind(to)
	left := map[int]bool{from: true}
	for _, i := range t.graph.order {
		s := t.w.Steps[i]
		state := t.job.Steps[i].Forward.State
		if behind[i] || s.Any || s.Only != "" || state != job.NotStarted && state != job.Skipped {
			continue
		}
		if t.job.Settled(t.job.Steps[i].Forward) != nil {
			// A person who skipped it wants its followers.
			continue
		}
		for _, n := range t.graph.needs[i] {
			if !left[n] {
				continue
			}
			// A skipped step that needs a left-out one was left out itself.
			if left[i] = true; state == job.NotStarted {
				t.skip(i)
			}
			break
		}
	}
}
