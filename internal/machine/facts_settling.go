package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

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
	case a.State == job.Dispatched && t.isChild(at):
		return fmt.Sprintf("%s is done by job %s, which is under way: cancel or undo that first", name, t.childOf(at))
	case a.Held():
		return name + " was completed" + by(a, job.StepCompleted{}) + ", which counts when its attempt has ended"
	case a.State == job.Dispatched && t.shared(at) && !a.Queued:
		return fmt.Sprintf("attempt %d of %s may be running, and has no claim to look at; without a reply it ends at %s",
			a.Attempt, name, a.LookAt.UTC().Format(time.RFC3339))
	default:
		return ""
	}
}

// notToTakeBack says why a side cannot be settled as not done now; empty: it can.
func (t *turn) notToTakeBack(at side, e job.Settled) string {
	a, name := t.activity(at), named(t.name(at), at.undo)
	if why := t.ofAnother(at, e); why != "" {
		return why
	}
	switch {
	case at.undo:
		return name + " can be settled as done or as skipped, and not as not done"
	case !t.forwards() || t.job.ProcessState.Finished():
		return fmt.Sprintf("%s: the job is %s, and only its undos can be settled", name, t.stands())
	case a.State == job.Dispatched:
		return fmt.Sprintf("attempt %d of %s is under way still; settle it as not done when that has ended", a.Attempt, name)
	case a.State == job.Done, a.State == job.Waiting:
		return fmt.Sprintf("%s is %s", name, a.State)
	default:
		return ""
	}
}

func nothingStands(step string) string {
	return fmt.Sprintf("it is known of step %s that no effect stands", step)
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
	return t.approved(answer, limits.Cut(limits.Clip(e.By), limits.MaxCompletedByBytes), ""), ""
}

// heldUntil names the holder of a side's attempt, and until when it is held.
func (t *turn) heldUntil(at side, claim job.Claim) string {
	return fmt.Sprintf("attempt %d of %s is held by %s until %s at least",
		t.activity(at).Attempt, named(t.name(at), at.undo), claim.LockedBy, claim.CompleteBy.UTC().Format(time.RFC3339))
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
