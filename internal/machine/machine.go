// Package machine decides. It holds every rule about jobs, and nothing else does: what an event does
// to a job (Apply), how a job is born (Submit), and what must now be done (Pending).
//
// It is pure: no I/O, clock, randomness, goroutine or map order. The time is an argument; random
// numbers and the values of expressions are facts that are handed in. When Apply needs a fact that it
// was not given, its verdict names it, nothing has changed, and the caller asks again with the fact.
//
// # One rule
//
// A job and its steps hold what is and what is wanted. Wherever the two differ and nothing is under
// way that could make them equal, an attempt is made: that is advance, and it runs after every event.
// Events only say what happened; failure, cancel, timeout and resubmit only change what is wanted.
//
// # What deciding rests on
//
// An attempt that is unclaimed may be claimed at any moment, also between load and save. A decision
// that rests on an attempt being unclaimed, or on its claim having expired, or that raises CompleteBy,
// says so (Verdict.OnClaims), and its save holds only if no claim was made meanwhile.
package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
)

// Kind is what became of an event.
type Kind string

// The kinds of verdict. Whichever it is, the commands that Pending derives must be carried out: an
// event that changes nothing may be the second delivery of one whose commands were lost.
const (
	Applied   Kind = "applied"   // the job changed, and must be saved
	Duplicate Kind = "duplicate" // it was applied before, or asks for what is already so
	Stale     Kind = "stale"     // it speaks of what is over, or of a claim that is not the one held
	Refused   Kind = "refused"   // the request cannot be granted; Reason says why
	Wanting   Kind = "wanting"   // facts are missing: Wants names them
)

// Verdict says what Apply made of an event.
type Verdict struct {
	Kind   Kind
	Reason string
	// Wants are the facts that Apply must have, if Kind is Wanting.
	Wants []Want
	// Ended names the steps whose claim slots the save removes, because their attempts are over.
	Ended []string
	// OnClaims: the save holds only if Claims.Rev is still the one that was loaded.
	OnClaims bool
}

// Want names a fact: what the expressions of a step, or of its undo, give.
type Want struct {
	Step string
	Undo bool
}

// Fact is what the expressions of a step gave.
type Fact struct {
	// Run is the value of when; true where there is none, and for an undo.
	Run bool
	// Err says why when or with could not be evaluated; empty if they could.
	Err string
}

// Facts are what deciding needs and cannot know.
type Facts struct {
	// Random is a random number; jitter is drawn from it.
	Random uint64
	// Values are the facts about expressions that were asked for.
	Values map[Want]Fact
}

// Apply says what event makes of job at now, and how. Unless the verdict is Applied, the job that it
// gives is the one that it got; but when it is Wanting, it gives the job as far as it is decided, over
// which the facts are to be found (it already has the output that the event brought), and which is
// good for nothing else. It panics on what only a bug of ours can bring about: a transition
// that is not in the table, or a job that nothing would ever wake.
func Apply(w makegood.Workflow, job makegood.Job, event makegood.Event, facts Facts, now time.Time) (makegood.Job, Verdict) {
	next := job.Clone()
	t := newTurn(w, &next, facts, event.Cause(), now)
	t.begin(event)
	verdict := t.take(event)
	if verdict.Kind != Applied {
		return job, verdict
	}
	t.advance()
	if len(t.wants) > 0 {
		return next, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.tell(job.ProcessState)
	t.open()
	t.setKey(job.CompleteBy, t.mayRaise(event))
	mustAllow(job.ProcessState, next.ProcessState)
	return next, Verdict{Kind: Applied, Ended: t.ended, OnClaims: t.onClaims}
}

// Submission is what a job is born from.
type Submission struct {
	ID          string
	Definition  string
	Input       makegood.Payload
	InputHash   string
	Incarnation int
	// StartAt is when the job may start; zero: at once. ReplyTo is who is told of its changes.
	StartAt time.Time
	ReplyTo string
	// Later: the job is to be stored without its first attempts, because whoever stores it does not
	// send their tasks. Submitted, or the Supervisor, makes them.
	Later bool
}

// Submit gives the job as it is to be stored: Pending, with its first attempts open. It may want
// facts, as Apply does, and then gives the job as far as it is decided.
func Submit(w makegood.Workflow, s Submission, facts Facts, now time.Time) (makegood.Job, Verdict) {
	job := makegood.Job{
		ID: s.ID, Workflow: w.Name, Definition: s.Definition, Round: 1,
		ProcessState: makegood.Pending, Desired: makegood.Processed,
		CreatedAt: now, StartAt: s.StartAt, ReplyTo: s.ReplyTo,
		Input: s.Input, InputHash: s.InputHash, Incarnation: s.Incarnation,
		Steps: make([]makegood.StepState, len(w.Steps)),
	}
	for i, s := range w.Steps {
		job.Steps[i].Name = s.Name
	}
	t := newTurn(w, &job, facts, makegood.Submitted{}.Cause(), now)
	t.renewDeadline()
	if job.ReplyTo != "" {
		t.announce()
	}
	if s.Later {
		job.CompleteBy = t.now
		return job, Verdict{Kind: Applied}
	}
	t.advance()
	if len(t.wants) > 0 {
		return job, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.tell(makegood.Pending)
	t.open()
	t.setKey(time.Time{}, false)
	mustAllow(makegood.Pending, job.ProcessState)
	return job, Verdict{Kind: Applied}
}

// turn is one decision under way. job is its own copy.
type turn struct {
	w     makegood.Workflow
	job   *makegood.Job
	facts Facts
	cause string
	now   time.Time
	graph graph

	wants    []Want
	ended    []string
	onClaims bool
}

func newTurn(w makegood.Workflow, job *makegood.Job, facts Facts, cause string, now time.Time) *turn {
	return &turn{w: w, job: job, facts: facts, cause: cause, now: makegood.Instant(now), graph: newGraph(w)}
}

// take says what the event itself changes; what follows from it is advance's.
func (t *turn) take(event makegood.Event) Verdict {
	switch e := event.(type) {
	case makegood.Submitted:
		return t.submitted()
	case makegood.StepSucceeded:
		return t.succeeded(e)
	case makegood.StepFailed:
		return t.failed(e)
	case makegood.DispatchRefused:
		return t.dispatchRefused(e)
	case makegood.DeadlinePassed:
		return t.deadlinePassed(e)
	case makegood.Interrupted:
		return t.interrupted(e)
	case makegood.Told:
		return t.told(e)
	case makegood.Requested:
		return t.requested(e)
	default:
		panic(fmt.Sprintf("machine: unknown event %T", event))
	}
}

// begin notes that the job is under way: something other than a request has happened to it.
func (t *turn) begin(event makegood.Event) {
	switch event.(type) {
	case makegood.Told, makegood.Requested, makegood.Submitted:
		return
	}
	if t.job.ProcessState == makegood.Pending {
		t.job.ProcessState = makegood.Processing
	}
}

// maxTransitions is how many attempts a job may make before it is stopped: ten times what it needs if
// every attempt of every step and undo fails. It ends a loop between us and an agent; Lambda's own
// guard is switched off.
func maxTransitions(w makegood.Workflow) int {
	n := 50
	for _, s := range w.Steps {
		n += 10 * s.Retry.Attempts
		if s.CanUndo() {
			n += 10 * s.Undo.Retry.Attempts
		}
	}
	return n
}

// active reports whether the job is to be moved on: neither at its end nor waiting for a person.
func (t *turn) active() bool {
	return !t.job.ProcessState.Finished() && t.job.ProcessState != makegood.Error
}

// forwards reports whether the job is wanted done, rather than undone.
func (t *turn) forwards() bool { return t.job.Desired == makegood.Processed }

// advance makes an attempt wherever what is differs from what is wanted and nothing is under way.
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
	if state == makegood.Processed {
		t.job.Reason = ""
	}
}

// stop puts the job in front of a person. Nothing new starts; what was claimed runs on, and its
// replies are kept.
func (t *turn) stop(reason string) {
	t.withdrawUnclaimed(makegood.NotStarted)
	t.job.ProcessState = makegood.Error
	t.job.Reason = makegood.Clip(reason)
	t.job.PausedAt = time.Time{}
	t.announce()
}

// announce notes that somebody must be told of the state that the job is in now.
func (t *turn) announce() {
	t.job.Seq++
	t.job.Untold = append(t.job.Untold, makegood.Announcement{
		Seq: t.job.Seq, ProcessState: t.job.ProcessState, Reason: t.job.Reason, At: t.now,
	})
}

// tell notes that whoever listens must be told, if the state is not what it was. Of an Error stop has
// noted it.
func (t *turn) tell(was makegood.ProcessState) {
	is := t.job.ProcessState
	if is != was && is != makegood.Error && t.job.ReplyTo != "" {
		t.announce()
	}
}

// submitted makes the first attempts of a job that was stored without them.
func (t *turn) submitted() Verdict {
	for _, s := range t.job.Steps {
		if s.Attempt > 0 || s.Forward.State != makegood.NotStarted {
			return Verdict{Kind: Duplicate, Reason: "the job was stored with its first attempts"}
		}
	}
	if t.job.ProcessState != makegood.Pending || t.job.Paused() || t.early() {
		return Verdict{Kind: Duplicate, Reason: "nothing is to be started"}
	}
	return Verdict{Kind: Applied}
}

// early reports whether the time at which the job may start has not come.
func (t *turn) early() bool { return t.now.Before(t.job.StartAt) }

// told takes the announcements off that were delivered.
func (t *turn) told(e makegood.Told) Verdict {
	before := len(t.job.Untold)
	t.job.Untold = slices.DeleteFunc(t.job.Untold, func(a makegood.Announcement) bool { return a.Seq <= e.Seq })
	if len(t.job.Untold) == before {
		return Verdict{Kind: Duplicate, Reason: "told already"}
	}
	return Verdict{Kind: Applied}
}
