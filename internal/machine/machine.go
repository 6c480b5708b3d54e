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
// # Three layers
//
// The name of a file says its layer. facts_*.go read the job, its workflow and the facts that were handed in.
// moves_*.go write an activity, or the job around it. event_*.go take an event each, or a few of one kind, and call
// moves. machine.go and offers.go take any event, and stand above. A file uses its own layer and those below it, and
// no files use each other in a circle: lab/tidy holds that.
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
	"github.com/makegood-dev/makegood/internal/job"
)

// Apply returns the job that results from event at now, and a verdict. Unless the verdict is Applied, it returns the
// job unchanged, except with Wanting: then it returns the job as far as it is decided, over which the facts are to be
// found (it already has the output that the event brought), and which has no other use; facts about claims are asked
// for first, over the original job. It panics on states that only a bug in this package can cause: a transition that
// is not in the table, a job that no event would ever wake, or a job without a secret.
func Apply(w makegood.Workflow, j job.Job, event job.Event, facts Facts, now time.Time) (job.Job, Verdict) {
	t := newTurn(w, j.CloneIn(facts.Room), facts, event.Cause(), now)
	idle := !t.going()
	// Before any time counts as late, or moves: the times of a job with a held workflow have stood still.
	t.hold(idle)
	t.begin(event)
	verdict := t.apply(event)
	if len(t.asks) > 0 {
		return j, Verdict{Kind: Wanting, Asks: t.asks}
	}
	if verdict.Kind != Applied {
		return j, verdict
	}
	if len(t.wants) == 0 {
		t.advance()
		t.hold(idle)
	}
	if len(t.asks) > 0 {
		return j, Verdict{Kind: Wanting, Asks: t.asks}
	}
	if len(t.wants) > 0 {
		return t.job, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.foresee()
	t.touch()
	t.tell(j.ProcessState)
	t.noteChanges(j)
	t.setKey(j.CompleteBy, t.mayRaise(event))
	mustAllow(j.ProcessState, t.job.ProcessState)
	verdict.Entries = t.entries
	return t.job, verdict
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
	case job.ChildEnded:
		return t.childEnds(e)
	case job.Admitted:
		return t.admitted(e)
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

// mayRaise reports whether an event may move CompleteBy up. Leaving it early costs one look of the
// Supervisor; moving it costs two index writes, so only those that are about the key do. Of a job that goes on, being
// told is not: the next attempt would only lower the key again.
func (t *turn) mayRaise(event job.Event) bool {
	switch e := event.(type) {
	case job.DeadlinePassed:
		// The step after a wait has often ended before the next sweep; then its key need never be set.
		return !t.overdueWait || t.facts.Period == 0
	case job.AttemptClosed, job.Asked, job.NotAsked:
		return true
	case job.Told, job.NotHeard, job.Published:
		return !t.active() || t.job.Paused()
	case job.Requested:
		return t.farKey || e.Verb == makegood.VerbReschedule || e.Verb == makegood.VerbEdit
	default:
		return t.farKey
	}
}
