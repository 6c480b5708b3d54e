package machine

import (
	"cmp"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// completed takes an answer from outside. The first wins, the same again is a duplicate, and a later one is told the
// first. After a failure the step may be tried again, so the failure is remembered beside the requests: the holder of
// a token pushes out none of those. An earlier release kept both as one.
func (t *turn) completed(e job.StepCompleted) Verdict {
	name := job.ShortHash(e.Cause())
	isFailure := e.Request != "" && (e.Error != nil || t.failsBy(e))
	known := slices.Contains(t.job.Answers, name) || slices.Contains(t.job.Requests, name)
	if isFailure && known && (e.Token == "" || GenuineCompletion(t.job, e.Place)) {
		return Verdict{Kind: Duplicate, Reason: "this answer was given before"}
	}
	verdict := t.answered(e)
	if isFailure && verdict.Kind == Applied {
		t.job.Answers = remember(t.job.Answers, name)
	}
	return verdict
}

func (t *turn) answered(e job.StepCompleted) Verdict {
	at, verdict := t.place(e.Place)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	c, wrong := t.completionOf(at, e)
	if isSame(a, c) {
		return Verdict{Kind: Duplicate, Reason: "this answer was given before"}
	}
	if why := cmp.Or(t.closedTo(at, e), wrong); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	t.noteOf(at, job.Entry{Kind: makegood.EntryCompleted, By: c.By, Reason: c.Why, Error: c.Error})
	if e.Token == "" && a.State != job.Waiting {
		c.Early = true
		a.Completion = &c
		return Verdict{Kind: Applied}
	}
	switch a.State {
	case job.Dispatched:
		return t.completeOpen(at, c)
	case job.Backoff:
		return t.completeBackoff(at, c)
	default:
		t.take(at, c)
		return Verdict{Kind: Applied}
	}
}

// completeOpen takes an answer while an attempt is out: at once if the attempt can be closed, else when it has ended.
// The attempt is then unwanted, and its holder is told so.
func (t *turn) completeOpen(at side, c job.Completion) Verdict {
	a := t.activity(at)
	if t.shared(at) {
		// It cannot be closed, since it has no claim. It ends by a reply, or when its time has passed.
		c.Held = true
		a.Completion = &c
		return Verdict{Kind: Applied}
	}
	found, known := t.ask(t.question(AskClose, at))
	if !known {
		return Verdict{Kind: Applied}
	}
	c.Held = true
	a.Completion = &c
	if found.Finding == job.FoundHeld && !t.lie(at, found) {
		if a.Inline == "" {
			a.Closing, a.Cause = true, t.cause
			a.LookAt = t.now.Add(limits.CloseAgain)
		}
		return Verdict{Kind: Applied}
	}
	return t.learn(at, found)
}

// completeBackoff takes an answer between two attempts. A failure that may be tried again, by itself or by the route
// of its kind, adds no information: the step will be tried again.
func (t *turn) completeBackoff(at side, c job.Completion) Verdict {
	if c.Error == nil {
		t.take(at, c)
		return Verdict{Kind: Applied}
	}
	if _, retryable := t.again(at, *c.Error); retryable {
		return Verdict{Kind: Duplicate, Reason: "it has failed, and will be tried again"}
	}
	a := t.activity(at)
	a.Completion = c.Taken()
	a.Error = c.Error
	a.Unknown = a.Unknown || c.Error.Applied != makegood.AppliedNo
	t.giveUp(at, c.Error.Message)
	return Verdict{Kind: Applied}
}

// extended moves the deadline of a wait. It is never moved back.
func (t *turn) extended(e job.WaitExtended) Verdict {
	at, verdict := t.place(e.Place)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	if why := t.notWaiting(at); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	until := e.Until
	if until.IsZero() {
		until = t.now.Add(a.Wait.For.Std())
	}
	until = t.waitUntil(until)
	if t.job.Paused() {
		// The end of the pause moves the deadline by its whole length, and this deadline already includes the pause so far.
		until = until.Add(-t.stood(a, t.job.PausedAt))
	}
	if !until.After(a.Wait.Deadline) {
		if t.holding != nil {
			return verdict // It is that long because of the pause that begins with this, which must be saved.
		}
		return Verdict{Kind: Duplicate, Reason: "it waits that long already"}
	}
	wait := *a.Wait
	wait.Deadline = until
	a.Wait = &wait
	a.LookAt = t.nextMoment(at)
	return Verdict{Kind: Applied}
}
