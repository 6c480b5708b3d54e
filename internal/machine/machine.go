// Package machine decides. It alone holds the rules about jobs: how an event changes a job (Apply), how a job is born
// (Submit), and which commands must now be carried out (Pending).
//
// It is pure: no I/O, clock, randomness, goroutine or map order. The time is an argument; random numbers and the
// values of expressions are facts that are handed in. When Apply needs a fact that it was not given, its verdict
// names the fact, the job is unchanged, and the caller asks again with the fact.
//
// # One rule
//
// A job and its steps hold their actual and their wanted states. Wherever the two differ and no work is under way
// that could make them equal, an attempt is made: that is advance, and it runs after every event. Events only report;
// failure, cancel, timeout and resubmit only change the wanted state.
//
// # Facts about claims
//
// The claim of an attempt is stored in its claim item, not in the job. If a decision depends on the claim, looking at
// that item, or closing it, is a fact that Apply asks for; a closed item gives the same answer for ever, so the fact
// is as good after a conflict as before. If an attempt is unwanted, that is saved first, and closing it is a command;
// its answer is an event (AttemptClosed).
package machine

import (
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Apply returns the job that results from event at now, and a verdict. Unless the verdict is Applied, it returns the
// job unchanged, except with Wanting: then it returns the job as far as it is decided, over which the facts are to be
// found (it already has the output that the event brought), and which has no other use; facts about claims are asked
// for first, over the original job. It panics on states that only a bug in this package can cause: a transition that
// is not in the table, a job that no event would ever wake, or a job without a secret.
func Apply(w makegood.Workflow, j job.Job, event job.Event, facts Facts, now time.Time) (job.Job, Verdict) {
	next := j.CloneIn(facts.Room)
	t := newTurn(w, &next, facts, event.Cause(), now)
	// Before any time counts as late, or moves: the times of a job with a held workflow have stood still.
	t.hold()
	t.begin(event)
	verdict := t.apply(event)
	if t.definition != "" {
		return j, Verdict{Kind: Wanting, Definition: t.definition}
	}
	if len(t.asks) > 0 {
		return j, Verdict{Kind: Wanting, Asks: t.asks}
	}
	if verdict.Kind != Applied {
		return j, verdict
	}
	if len(t.wants) == 0 {
		t.advance()
		t.hold()
	}
	if len(t.wants) > 0 {
		return next, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.foresee()
	t.touch()
	t.tell(j.ProcessState)
	t.noteChanges(j)
	t.setKey(j.CompleteBy, t.mayRaise(event))
	mustAllow(j.ProcessState, next.ProcessState)
	verdict.Entries = t.entries
	return next, verdict
}

// touch adds the parts that belong in every save: a job without a secret gets one, and an attempt opened now was not
// opened by an earlier run of the engine.
func (t *turn) touch() {
	if len(t.job.Secret) == 0 {
		if len(t.facts.Secret) != limits.SecretBytes {
			panic(fmt.Sprintf("machine: job %s has no secret: no reply to it would ever count", t.job.ID))
		}
		t.job.Secret = t.facts.Secret
	}
	t.job.Incarnation = max(t.job.Incarnation, t.facts.Incarnation)
	t.job.Needs = max(t.job.Needs, t.needs())
	if !t.job.Paused() {
		t.notHeld()
	}
}

// turn is one decision under way. job is its own copy.
type turn struct {
	w     makegood.Workflow
	job   *job.Job
	facts Facts
	cause string
	now   time.Time
	graph graph

	wants []Want
	asks  []Ask
	// definition names the one that must be known first.
	definition string
	entries    []job.Entry

	// opened are the sides that got an attempt in this turn. holding is the hold to apply to the job.
	opened  []side
	holding *job.Hold
	// idle: the job was not being moved on when the event came.
	idle bool

	// farKey: a wait began that may be long. overdueWait: the deadline of a wait has ended it.
	farKey, overdueWait bool
}

func newTurn(w makegood.Workflow, j *job.Job, facts Facts, cause string, now time.Time) *turn {
	t := &turn{w: w, job: j, facts: facts, cause: cause, now: domain.Instant(now), graph: newGraph(w)}
	t.idle = !t.going()
	return t
}

// apply makes the event's own changes; advance makes the consequences.
func (t *turn) apply(event job.Event) Verdict {
	switch e := event.(type) {
	case job.Submitted:
		return t.submitted()
	case job.StepSucceeded:
		return t.succeeded(e)
	case job.StepFailed:
		return t.failed(e)
	case job.StepWaiting:
		return t.waiting(e)
	case job.StepHeld:
		return t.stepHeld(e)
	case job.StepCompleted:
		return t.completed(e)
	case job.WaitExtended:
		return t.extended(e)
	case job.Settled:
		return t.settled(e)
	case job.Asked:
		return t.asked(e)
	case job.NotAsked:
		return t.notAsked(e)
	case job.AttemptClosed:
		return t.attemptClosed(e)
	case job.DispatchRefused:
		return t.dispatchRefused(e)
	case job.DeadlinePassed:
		return t.deadlinePassed(e)
	case job.Interrupted:
		return t.interrupted(e)
	case job.Told:
		return t.told(e)
	case job.NotHeard:
		return t.notHeard(e)
	case job.Published:
		return t.published(e)
	case job.NotPublished:
		return t.notPublished(e)
	case job.Requested:
		return t.requested(e)
	default:
		panic(fmt.Sprintf("machine: unknown event %T", event))
	}
}

// begin notes that the job is under way: an event other than a request has reached it.
func (t *turn) begin(event job.Event) {
	switch event.(type) {
	case job.Told, job.NotHeard, job.Published, job.NotPublished, job.Asked, job.NotAsked, job.Requested, job.Settled, job.Submitted, job.AttemptClosed, job.StepHeld:
		return
	case job.StepCompleted:
		if t.early() {
			return // It is kept, and starts no work.
		}
	}
	if t.job.ProcessState == makegood.JobPending {
		t.job.ProcessState = makegood.JobProcessing
	}
}

// maxTransitions returns how many attempts a job may make before it is stopped: ten times the number it needs if
// every attempt of every step and undo fails. It ends a loop between engine and agent; Lambda's own guard is switched
// off.
func maxTransitions(w makegood.Workflow) int {
	n := 50
	for _, s := range w.Steps {
		attempts := s.Retry.Attempts
		for _, r := range s.OnError {
			attempts = max(attempts, r.Retry.Attempts)
		}
		n += 10 * attempts
		if domain.CanUndo(s) {
			n += 10 * s.Undo.Retry.Attempts
		}
	}
	return n
}

// active reports whether the job is to be moved on: neither at its end nor waiting for a person.
func (t *turn) active() bool {
	return !t.job.ProcessState.Finished() && t.job.ProcessState != makegood.JobError
}

// forwards reports whether the job is wanted done, rather than undone.
func (t *turn) forwards() bool { return t.job.Desired == makegood.JobProcessed }

// advance makes an attempt wherever actual and wanted state differ and no work is under way.
func (t *turn) advance() {
	if !t.active() {
		return
	}
	if t.forwards() {
		t.goForward()
		return
	}
	t.goBack()
}

// finish ends the job.
func (t *turn) finish(state makegood.ProcessState) {
	t.job.ProcessState = state
	t.job.FinishedAt = t.now
	t.job.PausedAt = time.Time{}
}

// because sets the reason why a job stops or is undone, and keeps the round's first reason beside it. People search
// for the failure that came first; a failed undo or a cancel has another reason.
func (t *turn) because(reason string) {
	was := t.job.Reason
	t.job.Reason = limits.Clip(reason)
	if t.job.FirstReason == "" && was != t.job.Reason {
		t.job.FirstReason = was
	}
}

// noReason clears both reasons when a job goes forward again or starts a new round.
func (t *turn) noReason() { t.job.Reason, t.job.FirstReason = "", "" }

// stop puts the job in front of a person. No new work starts: unclaimed tasks are taken back; claimed ones run on,
// and their replies are kept.
func (t *turn) stop(reason string) {
	t.closeOpen()
	t.job.ProcessState = makegood.JobError
	t.because(reason)
	t.endPause()
	t.job.RemindAt = t.now.Add(limits.FarKey)
	t.announce(true, true)
	t.note(job.Entry{Kind: makegood.EntryStopped, Reason: t.job.Reason})
}
