package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// requested does what an operator or submitter asks for, where the table allows it.
func (t *turn) requested(e job.Requested) Verdict {
	if t.granted(e) {
		return Verdict{Kind: Duplicate, Reason: "this request was granted before"}
	}
	rule := ruleOf(e, t.job.ProcessState)
	if rule.Effect == GoesOn || rule.Effect == NewRound || rule.Effect == Redrives {
		if v := t.redefine(rule, e); v.Kind != Applied {
			return v
		}
	}
	t.noteRequest(e)
	verdict := t.grant(rule, e)
	if verdict.Kind == Applied && e.Edit != nil && e.Edit.N > 0 {
		t.takeEdit(*e.Edit)
	}
	if verdict.Kind == Applied {
		t.job.RequestedBy = limits.Clip(e.By)
	}
	if verdict.Kind == Applied && e.Request != "" {
		t.job.Requests = remember(t.job.Requests, job.ShortHash(e.Cause())) // short, whatever name its submitter gave it
	}
	return verdict
}

// noteRequest notes a request before its effects.
func (t *turn) noteRequest(e job.Requested) {
	entry := job.Entry{Kind: makegood.EntryRequest, Verb: e.Verb, By: limits.Clip(e.By), Reason: limits.Clip(e.Reason)}
	if e.Verb == makegood.VerbReschedule {
		entry.StartAt = domain.Instant(later(e.StartAt, t.now))
	}
	if e.Definition != "" {
		entry.Definition = t.job.Definition
	}
	entry.Input = e.Input != nil
	switch {
	case e.Verb == makegood.VerbEdit && e.Edit != nil:
		entry.Step, entry.Concurrency, entry.Tolerate = e.Edit.Step, e.Edit.Concurrency, e.Edit.Tolerate
	case e.Verb == makegood.VerbEdit:
		entry.Timeout = domain.TimeoutText(e.Timeout)
	}
	if e.Verb == makegood.VerbRedrive {
		for i := range t.job.Steps {
			n, _ := t.redriven(i, e)
			entry.Items += n
		}
		entry.Step, entry.Indexes = e.Step, e.Indexes
	}
	t.note(entry)
}

func (t *turn) grant(rule Rule, e job.Requested) Verdict {
	switch rule.Effect {
	case TurnsRound:
		return t.requestUndo(e)
	case EndsOther:
		if t.job.Desired == makegood.JobCancelled {
			return Verdict{Kind: Duplicate, Reason: "it is being cancelled"}
		}
		t.job.Desired = makegood.JobCancelled
		t.endInstead(e)
	case EndsUndone:
		if !t.job.AnotherRound {
			return Verdict{Kind: Duplicate, Reason: "it is " + string(t.job.ProcessState)}
		}
		t.endInstead(e)
	case GoesOn:
		t.goOn()
	case NewRound:
		if c, child := domain.ChildOf(t.job.ID); child {
			return Verdict{Kind: Refused, Reason: fmt.Sprintf("it has ended, and is the work of step %s of job %s: begin that again", c.Step, c.Parent)}
		}
		if left := t.notUndone(); left != "" && e.Verb == makegood.VerbRedo {
			return Verdict{Kind: Refused, Reason: "it is Undone" + left + ": that would be done once more; resubmit starts it again all the same"}
		}
		t.askedRound()
	case TurnsAgain:
		return t.redo(e)
	case EndsAgain:
		return t.endAgain(e)
	case TurnsBack:
		return t.turnForward(e)
	case Redrives:
		return t.redrive(e)
	case Pauses:
		return t.pause()
	case Resumes:
		return t.unpause()
	case MovesStart:
		return t.reschedule(e.StartAt)
	case EditsMap:
		return t.editMap(*e.Edit)
	case MovesEnd, ForLater:
		return t.edit(e.Timeout)
	case Already:
		return Verdict{Kind: Duplicate, Reason: "it is " + string(t.job.ProcessState)}
	case Refuses:
		return Verdict{Kind: Refused, Reason: rule.Reason}
	default:
		panic(fmt.Sprintf("machine: effect %q", rule.Effect))
	}
	return Verdict{Kind: Applied}
}

// reschedule moves the start of a job that has begun no step. Its timeout counts from the new one.
func (t *turn) reschedule(at time.Time) Verdict {
	ahead := at.Sub(t.now)
	switch {
	case t.begun():
		return Verdict{Kind: Refused, Reason: "it has started"}
	case ahead > makegood.MaxStartDelay:
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("its new start is %s ahead, the limit is %s", ahead.Round(time.Second), makegood.MaxStartDelay)}
	case ahead < 0:
		at = t.now // Never zero: a store may have counted on a later start.
	}
	at = domain.Instant(at)
	if at.Equal(t.job.StartAt) {
		return Verdict{Kind: Duplicate, Reason: "it starts then"}
	}
	t.job.StartAt = at
	t.renewDeadline()
	t.expect()
	return Verdict{Kind: Applied}
}

// edit sets how long the job may go forward. It counts from now, or from its start if that is ahead; for a stopped
// job, from when it goes on.
func (t *turn) edit(timeout makegood.Duration) Verdict {
	switch {
	case !t.forwards():
		return Verdict{Kind: Refused, Reason: backUntimed}
	case timeout == 0:
		return Verdict{Kind: Refused, Reason: "the timeout is missing"}
	case timeout < 0 && t.timeout() == 0:
		return Verdict{Kind: Duplicate, Reason: "it has no timeout"}
	case timeout > 0 && (timeout.Std() < limits.MinTimeout || timeout.Std() > limits.MaxJobTimeout):
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("the timeout is %s: want from %s to %s, or none", timeout, limits.MinTimeout, limits.MaxJobTimeout)}
	case timeout < 0:
		timeout = makegood.NoTimeout
	}
	t.job.Timeout = timeout
	if t.active() {
		t.renewDeadline()
	}
	return Verdict{Kind: Applied}
}

// endInstead lets a job that is being undone end otherwise than it would, and ends a pause.
func (t *turn) endInstead(e job.Requested) {
	t.noMoreRounds()
	t.because(reasonOf(e))
	if t.job.Paused() {
		t.resume()
	}
}

func reasonOf(e job.Requested) string {
	if e.Reason != "" {
		return e.Reason
	}
	switch e.Verb {
	case makegood.VerbCancel:
		return "cancelled on request"
	case makegood.VerbRedo:
		return "undone on request, to be done again"
	default:
		return "undone on request"
	}
}

// requestUndo turns a job round, from wherever it is.
func (t *turn) requestUndo(e job.Requested) Verdict {
	want := makegood.JobUndone
	if e.Verb == makegood.VerbCancel {
		want = makegood.JobCancelled
	}
	if t.job.ProcessState == makegood.JobProcessed && !domain.HasUndo(t.w) {
		return Verdict{Kind: Refused, Reason: "no step of its workflow has an undo"}
	}
	t.job.PausedAt = time.Time{}
	t.job.FinishedAt = time.Time{}
	if !t.forwards() {
		// It stopped while being undone: the same road, from what failed, perhaps to another end.
		t.job.Desired = want
		t.noMoreRounds()
		t.goOn()
		return Verdict{Kind: Applied}
	}
	t.job.Transitions = 0
	t.turnRound(want, reasonOf(e))
	return Verdict{Kind: Applied}
}

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

// pause grants that a person pauses a job, which may be held already.
func (t *turn) pause() Verdict {
	switch {
	case t.job.Paused() && (t.job.HeldBy == "" || t.job.PausedToo):
		return Verdict{Kind: Duplicate, Reason: "it is paused"}
	case t.job.Paused():
		t.job.PausedToo = true
	default:
		t.closeOpen()
		t.job.PausedAt = t.now
		t.notHeld()
	}
	return Verdict{Kind: Applied}
}

// unpause lets a person take back the pause of a job, unless the job is held by another pause.
func (t *turn) unpause() Verdict {
	_, on := t.heldBy(t.job.HeldBy)
	switch {
	case !t.job.Paused():
		return Verdict{Kind: Refused, Reason: "it is not paused"}
	case on && t.job.PausedToo:
		t.job.PausedToo = false
	case on:
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("%s is paused: makegood resume --whole-%[1]s", t.job.HeldBy)}
	default:
		t.resume()
	}
	return Verdict{Kind: Applied}
}

// redrive has the failed items of a job done again. For a person that is asked of the job which has the map; for that,
// of its parts, with the number of the asking: the same one again changes nothing.
func (t *turn) redrive(e job.Requested) Verdict {
	c, child := domain.ChildOf(t.job.ID)
	switch {
	case child && e.Redrives == 0 && t.w.Part != nil:
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("it does items of step %s of job %s: redrive that", c.Step, c.Parent)}
	case e.Redrives > 0 && e.Redrives <= t.job.Redrives:
		return Verdict{Kind: Duplicate, Reason: "these items were redriven before"}
	}
	switch why, known := t.wrongItems(e); {
	case !known:
		return Verdict{Kind: Applied}
	case why != "":
		return Verdict{Kind: Refused, Reason: why}
	}
	items, busy := 0, ""
	if !e.Never {
		items, busy = t.redriveItems(e)
	}
	if items == 0 && busy != "" {
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("step %s follows and is under way: redrive it when that has ended", busy)}
	}
	t.job.Redrives = max(t.job.Redrives, e.Redrives)
	switch {
	case items == 0 && child && t.w.Part != nil:
		// An earlier redrive, unknown to the parent, has left none, or does them still: its end is the answer.
		return Verdict{Kind: Applied}
	case items == 0 && e.Step != "":
		return Verdict{Kind: Refused, Reason: fmt.Sprintf("step %s has not ended, or none of its items has failed", e.Step)}
	case items == 0:
		return Verdict{Kind: Refused, Reason: "none of its maps that have ended has a failed item"}
	}
	if t.job.ProcessState.Finished() {
		t.job.ProcessState, t.job.FinishedAt = makegood.JobProcessing, time.Time{}
		t.noReason()
		t.renewDeadline()
		t.expect()
	}
	return Verdict{Kind: Applied}
}

// wrongItems says why the step or the items that a redrive names cannot be redriven; empty: they can. The job with the
// map asks before its save. A part passes over named items that have not failed.
func (t *turn) wrongItems(e job.Requested) (why string, known bool) {
	if e.Step == "" {
		return "", true
	}
	i, ok := t.indexOf(e.Step)
	if !ok || t.w.Steps[i].Map == nil {
		return fmt.Sprintf("there is no step %s with a map", e.Step), true
	}
	if e.Indexes == "" || t.failedItems(i) == 0 {
		return "", true
	}
	ask := t.question(AskItems, side{i, false})
	ask.Indexes = e.Indexes
	found, known := t.ask(ask)
	return found.Refused, known
}
