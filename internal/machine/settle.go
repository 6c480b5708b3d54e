package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
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

// notToSettle says why a side cannot be settled now; empty: it can.
func (t *turn) notToSettle(at side, e job.Settled) string {
	a, name := t.activity(at), named(t.name(at), at.undo)
	if why := t.ofAnother(at, e); why != "" {
		return why
	}
	switch {
	case t.job.Settled(*a) != nil:
		return t.wasSettled(at)
	case !at.undo && t.undoStopped(at.step):
		return fmt.Sprintf("%s: the job is %s, and its undo stopped: add --undo (undo: true) to settle that", name, t.stands())
	case a.State == job.Done:
		return name + " is done"
	case a.State == job.Irreversible && !e.Done:
		return name + " cannot be done here, and was not; settle it as done if it was undone elsewhere"
	case a.State == job.Irreversible:
		return ""
	case at.undo == t.forwards() && at.undo:
		return fmt.Sprintf("%s: the job is %s, and not being undone", name, t.stands())
	case at.undo == t.forwards() || t.job.ProcessState.Finished() && !at.undo:
		return fmt.Sprintf("%s: the job is %s, and only its undos can be settled", name, t.stands())
	case a.State == job.Skipped || at.undo && t.nothingToUndo(at.step):
		return t.skippedAlready(at)
	case at.undo && t.job.Steps[at.step].Forward.State == job.Dispatched:
		return fmt.Sprintf("attempt %d of step %s is under way still; its undo can be settled when that has ended", t.job.Steps[at.step].Forward.Attempt, t.name(at))
	case a.Held():
		return name + " was completed" + by(a, job.StepCompleted{}) + ", which counts when its attempt has ended"
	case a.State == job.Dispatched && t.shared(at):
		return fmt.Sprintf("attempt %d of %s may be running, and has no claim to look at; without a reply it ends at %s",
			a.Attempt, name, a.LookAt.UTC().Format(time.RFC3339))
	default:
		return ""
	}
}

// undoStopped reports whether the job is in Error because the undo of this step failed.
func (t *turn) undoStopped(step int) bool {
	return t.job.ProcessState == makegood.JobError && !t.forwards() && t.job.Steps[step].Undo.State == job.Failed
}

// ofAnother says which round or attempt a settlement is of, if that is not the latest.
func (t *turn) ofAnother(at side, e job.Settled) string {
	switch a := t.activity(at); {
	case e.Round != 0 && e.Round != t.job.Round:
		return fmt.Sprintf("it is of round %d, the job is in round %d", e.Round, t.job.Round)
	case e.Attempt != 0 && e.Attempt != a.Attempt:
		return fmt.Sprintf("it is of attempt %d, and the latest of %s is %d", e.Attempt, named(t.name(at), at.undo), a.Attempt)
	default:
		return ""
	}
}

// stands is the state of the job, as a sentence has it.
func (t *turn) stands() string {
	switch t.job.ProcessState {
	case makegood.JobError:
		return "in Error"
	case makegood.JobUndoing:
		return "being undone"
	default:
		return string(t.job.ProcessState)
	}
}

// nothingToUndo reports whether it is known of a step that it was not done.
func (t *turn) nothingToUndo(step int) bool {
	forward := t.job.Steps[step].Forward
	return forward.State != job.Done && forward.State != job.Dispatched && !forward.Unknown
}

func (t *turn) skippedAlready(at side) string {
	if at.undo {
		return fmt.Sprintf("step %s has no effect to undo", t.name(at))
	}
	return named(t.name(at), at.undo) + " is skipped"
}

// wasSettled says how a side was settled.
func (t *turn) wasSettled(at side) string {
	a := t.activity(at)
	was := t.job.Settled(*a)
	by := ""
	if was.By != "" {
		by = " by " + was.By
	}
	return fmt.Sprintf("%s was settled as %s%s at %s", named(t.name(at), at.undo), a.State, by, was.At.UTC().Format(time.RFC3339))
}

// settledOutput is the output of a side that is settled as done. That of an approval is one of its answers.
func (t *turn) settledOutput(at side, e job.Settled) (output job.Payload, refused string) {
	if !e.Done || at.undo && !domain.CanUndo(t.w.Steps[at.step]) {
		return e.Output, ""
	}
	allowed := choices(t.w.Steps[at.step], at.undo)
	if allowed == nil {
		return e.Output, ""
	}
	answer, ok := answerIn(e.Output)
	if !ok || !slices.Contains(allowed, answer) {
		return e.Output, t.takes(at, allowed)
	}
	if do, says := t.w.Steps[at.step].OnAnswer[answer]; says && !at.undo {
		return e.Output, fmt.Sprintf("onAnswer of step %s says %s of %q: answer it while it waits, or settle it with an answer that lets the job go on", t.name(at), do, answer)
	}
	return t.approved(answer, clipBytes(e.By, limits.MaxCompletedByBytes), ""), ""
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

// heldUntil names the holder of a side's attempt, and until when it is held.
func (t *turn) heldUntil(at side, claim job.Claim) string {
	return fmt.Sprintf("attempt %d of %s is held by %s until %s at least",
		t.activity(at).Attempt, named(t.name(at), at.undo), claim.LockedBy, claim.CompleteBy.UTC().Format(time.RFC3339))
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
		a.Output, a.Silent, a.Cause = job.Payload{}, job.Claim{}, ""
	}
	a.Completion = nil
	a.Settled = &job.Settlement{
		Round: t.job.Round, Answer: e.Answer(), At: t.now,
		By: clipBytes(e.By, limits.MaxCompletedByBytes), Reason: limits.Clip(e.Reason),
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

// stillFailed is why a job waits for a person, as it was said when this side was given up.
func (t *turn) stillFailed(at side) string {
	what := "step " + t.name(at)
	if at.undo {
		what = "undo of " + t.name(at)
	}
	failed := what + " failed"
	if a := t.activity(at); a.Error != nil {
		failed += ": " + a.Error.Message
	}
	return limits.Clip(failed)
}
