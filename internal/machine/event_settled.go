package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// settled takes a person's word that they have dealt with a step or its undo. The side then counts as done, or as
// skipped, and the job goes on accordingly. An open attempt is closed first, and while it is claimed the side is not
// settled.
func (t *turn) settled(e job.Settled) Verdict {
	name := job.ShortHash(e.Cause())
	if e.Request != "" && slices.Contains(t.job.Requests, name) {
		return Verdict{Kind: Duplicate, Reason: "this request was granted before"}
	}
	verdict := t.settleAs(e)
	if verdict.Kind == Applied && e.Request != "" {
		t.job.Requests = remember(t.job.Requests, name)
	}
	return verdict
}

func (t *turn) settleAs(e job.Settled) Verdict {
	i, ok := t.indexOf(e.Step)
	if !ok {
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("there is no step %s", e.Step)}
	}
	at := side{i, e.Undo}
	if e.NotDone {
		return t.settleNotDone(at, e)
	}
	if was := t.job.Settled(*t.activity(at)); was != nil && was.Answer == e.Answer() {
		return Verdict{Kind: Duplicate, Reason: t.wasSettled(at)}
	}
	if why := t.notToSettle(at, e); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	output, why := t.settledOutput(at, e)
	switch {
	case why != "":
		return Verdict{Kind: Refused, Reason: why}
	case t.activity(at).State == job.Dispatched:
		return t.settleOpen(at, e, output)
	}
	t.settle(at, e, output)
	return Verdict{Kind: Applied}
}

// settleOpen settles a side with an open attempt, if that can be closed.
func (t *turn) settleOpen(at side, e job.Settled, output job.Payload) Verdict {
	a := t.activity(at)
	found, known := t.ask(t.question(AskClose, at))
	if !known {
		return Verdict{Kind: Applied}
	}
	why := noReply
	if t.lie(at, found) {
		if why, known = t.overruled(at, found); !known {
			return Verdict{Kind: Applied}
		}
		found = job.Found{Finding: job.FoundSilent}
	}
	switch found.Finding {
	case job.FoundHeld:
		return Verdict{Kind: Refused, Reason: t.heldUntil(at, found.Claim)}
	case job.FoundNobody:
		t.noteOf(at, job.Entry{Kind: makegood.EntryWithdrawn})
		a.Tries--
	case job.FoundSilent:
		a.Unknown = true
		t.countFailure(at, t.fellSilent(at, found.Claim, why))
	default:
		panic(fmt.Sprintf("machine: closing an attempt found %q", found.Finding))
	}
	t.settle(at, e, output)
	return Verdict{Kind: Applied}
}

// settle ends a side without an open attempt.
func (t *turn) settle(at side, e job.Settled, output job.Payload) {
	a := t.activity(at)
	was, notUndone := a.State, t.notUndone()
	if e.Done {
		t.done(at, output)
	} else {
		// A waiting step was handed to another party, and may have had its effect.
		a.Unknown = a.Unknown || was == job.Waiting && !t.waitsByItself(at)
		t.rest(a, job.Skipped)
		a.FinishedAt = t.now
		t.forgetAnswers(at)
		a.Output, a.Silent, a.Cause = job.Payload{}, nil, ""
	}
	a.Completion = nil
	a.Settled = &job.Settlement{
		Round: t.job.Round, Answer: e.Answer(), At: t.now,
		By: limits.Cut(limits.Clip(e.By), limits.MaxCompletedByBytes), Reason: limits.Clip(e.Reason),
	}
	t.noteOf(at, job.Entry{Kind: makegood.EntrySettled, As: makegood.StepState(a.State), By: a.Settled.By, Reason: a.Settled.Reason})
	t.job.RequestedBy = limits.Clip(e.By)
	switch {
	case t.job.ProcessState.Finished():
		t.tellNotUndone(notUndone)
	case was == job.Failed && t.job.ProcessState == makegood.JobError:
		t.goOnWithout(at, e.Reason)
	}
}

// tellNotUndone tells the listener again which steps of an ended job were not undone, after an earlier announcement.
func (t *turn) tellNotUndone(before string) {
	t.job.Reason = limits.Clip(strings.TrimSuffix(t.job.Reason, before) + t.notUndone())
	if t.job.ReplyTo != "" {
		t.announce(false, true)
	}
}

// goOnWithout resumes the stopped direction when its last failed side is settled. Until then the job still names the
// sides that it waits for.
func (t *turn) goOnWithout(at side, why string) {
	for i := range t.job.Steps {
		left := t.inDirection(i)
		if t.activity(left).State == job.Failed {
			t.job.Reason = t.stillFailed(left)
			return
		}
	}
	t.goOn()
	if at.undo {
		t.job.Reason = limits.Clip(t.job.Reason + "; settled by hand")
		if why != "" {
			t.job.Reason = limits.Clip(t.job.Reason + ": " + why)
		}
	}
}

// settleNotDone takes a person's word that a step with an unknown outcome left no effect: its attempts had none, or
// the effect was undone by hand. The step is then not undone, and may be tried again, even as another. The job does
// not go on by that, and the step stays in its place.
func (t *turn) settleNotDone(at side, e job.Settled) Verdict {
	if why := t.notToTakeBack(at, e); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	a := t.activity(at)
	if !a.Unknown {
		return Verdict{Kind: Duplicate, Reason: nothingStands(t.name(at))}
	}
	a.Unknown, a.Silent, a.Former = false, nil, 0
	t.forgetAnswers(at)
	if a.Error != nil && a.State != job.Skipped { // The steps after a skipped one may have been asked with its error.
		known := *a.Error
		known.Applied = makegood.AppliedNo
		a.Error = &known
	}
	by := limits.Cut(limits.Clip(e.By), limits.MaxCompletedByBytes)
	t.noteOf(at, job.Entry{Kind: makegood.EntrySettled, As: makegood.StepNotDone, By: by, Reason: limits.Clip(e.Reason)})
	t.job.RequestedBy = limits.Clip(e.By)
	return Verdict{Kind: Applied}
}
