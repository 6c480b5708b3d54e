package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// openWait begins a step that waits by itself: its attempt has no agent.
func (t *turn) openWait(at side, until time.Time) {
	if !t.number(at) {
		return
	}
	a := t.activity(at)
	noteStart(a, t.now)
	kept := a.Completion != nil && a.Completion.Early
	if agentOf(t.w.Steps[at.step], at.undo) == makegood.AgentWait && passed(until, t.now) && !kept {
		t.done(at, job.Payload{})
		return
	}
	t.beginWait(at, until)
}

// beginWait leaves an activity waiting until a deadline, unless an answer is there already or the activity is
// unwanted: then its outcome is unknown.
func (t *turn) beginWait(at side, deadline time.Time) {
	a := t.activity(at)
	if t.conclude(at) {
		return
	}
	if !t.wanted(at) {
		t.leaveWait(at)
		return
	}
	if c := a.Completion; c != nil && c.Early {
		t.take(at, *c)
		return
	}
	t.rest(a, job.Waiting)
	a.At, a.Cause, a.Resent = t.now, t.cause, 0
	until := t.waitUntil(deadline)
	a.Wait = &job.Wait{Deadline: until, For: makegood.Duration(max(0, until.Sub(t.now))), Asked: t.momentsPast(at)}
	a.LookAt = t.nextMoment(at)
	t.farKey = true
}

// dueWait acts on the due times of a waiting activity: its deadline, or a moment to ask.
func (t *turn) dueWait(at side) {
	a := t.activity(at)
	if !t.going() || !t.wanted(at) || !passed(a.LookAt, t.now) {
		return
	}
	if passed(a.Wait.Deadline, t.now) {
		t.waitOver(at)
		return
	}
	wait := *a.Wait
	if past := t.momentsPast(at); past > wait.Asked {
		wait.Asked, wait.Tries, wait.AskAt = past, 0, time.Time{}
	}
	if wait.Heard < wait.Asked && !t.now.Before(wait.AskAt) {
		a.Cause = t.cause
	}
	a.Wait = &wait
	a.LookAt = t.nextMoment(at)
}

// waitOver ends a wait that was not completed in time.
func (t *turn) waitOver(at side) {
	a := t.activity(at)
	t.overdueWait = true
	rules := t.plan(at).waiting
	switch {
	case agentOf(t.w.Steps[at.step], at.undo) == makegood.AgentWait:
		t.done(at, job.Payload{})
	case rules != nil && rules.OnTimeout != nil:
		output := rules.OnTimeout.Output
		if len(output) == 0 || string(output) == "null" {
			t.done(at, job.Payload{})
			return
		}
		t.answeredWith(at, job.Payload{Inline: output, Bytes: len(output)}, nil)
	default:
		failure := job.StepError{
			Message:   "it was not completed by " + a.Wait.Deadline.UTC().Format(time.RFC3339),
			Retryable: true, Kind: makegood.KindTimeout, Applied: makegood.AppliedUnknown,
		}
		if t.waitsByItself(at) {
			failure.Applied = makegood.AppliedNo
		}
		t.attemptFailed(at, job.Entry{Kind: makegood.EntryFailed, Error: &failure})
	}
}
