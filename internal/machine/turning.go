package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// redo undoes a job and then starts it in a new round. A job with a stopped undo continues the undo first.
func (t *turn) redo(e job.Requested) Verdict {
	if t.job.Desired == makegood.JobCancelled {
		return Verdict{Kind: Refused, Reason: itsCancelled}
	}
	verdict := t.requestUndo(e)
	if verdict.Kind == Applied {
		t.roundFollows()
	}
	return verdict
}

// endAgain adds a new round after the undo of a job that is already being undone. It ends a pause.
func (t *turn) endAgain(e job.Requested) Verdict {
	switch {
	case t.job.Desired == makegood.JobCancelled:
		return Verdict{Kind: Refused, Reason: itsCancelled}
	case t.job.RoundAsked:
		return Verdict{Kind: Duplicate, Reason: "it starts again, once it is undone"}
	}
	t.endInstead(e)
	t.roundFollows()
	return Verdict{Kind: Applied}
}

// roundFollows marks that a person asked for a new round, which starts when every undo has ended.
func (t *turn) roundFollows() { t.job.AnotherRound, t.job.RoundAsked = true, true }

// turnForward lets a job that is being undone go forward again in the same round, with the same idempotency keys. It
// requires that no undo had an effect: a remote service refuses a forward call after the undo of its key, or carries
// the call out twice.
func (t *turn) turnForward(e job.Requested) Verdict {
	if t.forwards() {
		return Verdict{Kind: Refused, Reason: goesForward + "; resubmit goes on from what failed"}
	}
	if why := t.undoBegan(); why != "" {
		return Verdict{Kind: Refused, Reason: why}
	}
	t.forgetUndos()
	t.note(job.Entry{Kind: makegood.EntryTurned, State: makegood.JobProcessed, Reason: limits.Clip(e.Reason)})
	t.goOn()
	return Verdict{Kind: Applied}
}

// undoBegan says why a job cannot go forward again: an undo may have had an effect or is under way. Empty: it can.
func (t *turn) undoBegan() string {
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		switch {
		case s.Forward.State == job.Dispatched:
			return "step " + s.Name + " is under way; ask again when that attempt has ended"
		case s.Forward.State != job.Done && s.Forward.Unknown && s.Forward.Former > 0:
			return "step " + s.Name + " may have been done with an input that the job had before, and would be asked with another under the same key"
		case s.Undo.State == job.Dispatched, s.Undo.State == job.Waiting:
			return "the undo of " + s.Name + " is under way"
		case s.Undo.State == job.Done:
			return "the undo of " + s.Name + " is done; redo begins again once all is undone"
		case s.Undo.Completion != nil:
			return "a person has said how the undo of " + s.Name + " went; redo begins again once all is undone"
		case s.Undo.Unknown, t.job.Settled(s.Undo) != nil:
			return "the undo of " + s.Name + " may have had an effect; redo begins again once all is undone"
		}
	}
	return ""
}

// forgetUndos sends a job without finished undos forward. Steps that were taken back may be done again.
func (t *turn) forgetUndos() {
	t.noMoreRounds()
	t.job.Desired = makegood.JobProcessed
	t.job.PausedAt = time.Time{}
	for i := range t.job.Steps {
		s := &t.job.Steps[i]
		s.Undo = job.Activity{FailureCount: s.Undo.FailureCount, Kept: s.Undo.Kept}
		if s.Forward.State == job.Withdrawn {
			s.Forward.State, s.Forward.FinishedAt = job.NotStarted, time.Time{}
			grant(&s.Forward)
		}
	}
}
