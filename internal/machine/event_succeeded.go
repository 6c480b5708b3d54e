package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// succeeded takes a success of the attempt under way, or of the last one that ended in silence, while the newer one can
// still be closed.
func (t *turn) succeeded(e job.StepSucceeded) Verdict {
	at, verdict := t.outcomeOf(e.Reply)
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

// lateSuccess takes the success of an attempt that was already counted as silent, if its direction is still wanted
// and the following attempt can be closed. ok is false if this rule does not apply.
func (t *turn) lateSuccess(i int, e job.StepSucceeded) (v Verdict, ok bool) {
	if !t.active() {
		return Verdict{}, false
	}
	at := t.inDirection(i)
	a := t.activity(at)
	if silent := a.Silence(); silent.Attempt != e.Attempt || silent.LockedBy != e.LockedBy {
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

// succeed ends an activity with a success, unless the step repeats until it is ready: readiness is a fact, found over
// the output of the success. A step that is completed from outside is done, since its completer knows.
func (t *turn) succeed(at side, output job.Payload) {
	repeat := t.w.Steps[at.step].Repeat
	if repeat == nil || at.undo || !t.wanted(at) {
		t.done(at, output)
		return
	}
	a := t.activity(at)
	want := Want{Step: t.name(at), Ready: true}
	ready, known := t.facts.Values[want]
	switch {
	case !known:
		a.Output = output
		t.wants = append(t.wants, want)
	case ready.Err != "":
		t.notReady(at, job.StepError{Message: limits.Clip(ready.Err), Kind: makegood.KindExpression, Applied: makegood.AppliedUnknown})
	case ready.Run:
		t.done(at, output)
	default:
		t.repeat(at, *repeat)
	}
}

// repeat makes another attempt due, which is no failure. The step's work so far has happened, so going back undoes
// it.
func (t *turn) repeat(at side, repeat makegood.Repeat) {
	a := t.activity(at)
	a.Repeats++
	a.RepeatTries++
	next := t.now.Add(repeat.Every.Std())
	if a.RepeatTries >= repeat.Attempts || next.After(a.RepeatSince.Add(repeat.For.Std())) {
		t.notReady(at, job.StepError{
			Message: fmt.Sprintf("not ready after %d attempts in %s", a.RepeatTries, t.now.Sub(a.RepeatSince).Truncate(time.Second)),
			Kind:    makegood.KindNotReady, Applied: makegood.AppliedUnknown,
		})
		return
	}
	t.rest(a, job.Backoff)
	a.At, a.Cause = next, t.cause
	a.Tries, a.FailingSince, a.Unknown, a.Error = 0, time.Time{}, true, nil
	a.Deferred = 0
	a.Alone = false
	a.Silent, a.Output = nil, job.Payload{}
	// It has a limit of its own, and takes its time.
	t.job.Transitions = 0
}

// notReady gives up a step that succeeded but is not ready, without a failed attempt.
func (t *turn) notReady(at side, why job.StepError) {
	a := t.activity(at)
	a.Error, a.Unknown, a.Output, a.Silent = &why, true, job.Payload{}, nil
	t.noteOf(at, job.Entry{Kind: makegood.EntryFailed, Error: a.Error})
	t.giveUp(at, why.Message)
}

// waiting takes an agent's answer that another party will complete the step. It ends the attempt, as a success does;
// such an answer to an ended attempt is stale.
func (t *turn) waiting(e job.StepWaiting) Verdict {
	at, verdict := t.outcomeOf(e.Reply)
	if verdict.Kind != Applied {
		return verdict
	}
	a := t.activity(at)
	noteStart(a, e.StartedAt)
	leaveOut(a, earlier(e.StartedAt, t.now))
	a.Alone = false
	t.beginWait(at, e.Deadline)
	return verdict
}
