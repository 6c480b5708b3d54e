package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

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
	a.Alone = false
	a.Silent, a.Output = job.Claim{}, job.Payload{}
	// It has a limit of its own, and takes its time.
	t.job.Transitions = 0
}

// notReady gives up a step that succeeded but is not ready, without a failed attempt.
func (t *turn) notReady(at side, why job.StepError) {
	a := t.activity(at)
	a.Error, a.Unknown, a.Output, a.Silent = &why, true, job.Payload{}, job.Claim{}
	t.noteOf(at, job.Entry{Kind: makegood.EntryFailed, Error: a.Error})
	t.giveUp(at, why.Message)
}

// grant gives an activity fresh attempts, and a repeated step its whole time. Keys of its repetitions go on.
func grant(a *job.Activity) {
	a.Tries, a.FailingSince, a.RepeatTries, a.RepeatSince = 0, time.Time{}, 0, time.Time{}
}

// repeats notes when the first attempt of a step was made that is repeated.
func (t *turn) repeats(at side) {
	if a := t.activity(at); !at.undo && t.w.Steps[at.step].Repeat != nil && a.RepeatSince.IsZero() {
		a.RepeatSince = t.now
	}
}
