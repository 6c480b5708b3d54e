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
// Whether an attempt was claimed stands in its claim item, not in the job. Where deciding rests on it, looking at that
// item, or closing it, is a fact that Apply asks for; a closed item gives the same answer for ever, so the fact is as
// good after a conflict as before. Where an attempt is not wanted any more, that is saved first, and closing it is a
// command; its answer is an event (AttemptClosed).
package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Kind is what became of an event.
type Kind string

// The kinds of verdict. Whichever it is, the commands that Pending derives must be carried out: an
// event that changes nothing may be the second delivery of one whose commands were lost.
const (
	Applied   Kind = "applied"   // the job changed, and must be saved
	Duplicate Kind = "duplicate" // it was applied before, or asks for what is already so
	Stale     Kind = "stale"     // it speaks of what is over, or not with the right token or for the claim that is held
	Newer     Kind = "newer"     // its token is of a later scheme: the reply is a newer release's to judge, and is left
	Refused   Kind = "refused"   // the request cannot be granted; Reason says why
	Wanting   Kind = "wanting"   // facts are missing: Wants names them
)

// Verdict says what Apply made of an event.
type Verdict struct {
	Kind   Kind
	Reason string
	// Wants and Asks are the facts that Apply must have, if Kind is Wanting.
	Wants []Want
	Asks  []Ask
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
	// Values are the facts about expressions that were asked for, Found those about claims.
	Values map[Want]Fact
	Found  map[Ask]job.Found
	// Secret is makegood.SecretBytes random bytes, for a job that has none.
	Secret []byte
	// Period is how often the Supervisor looks at what is overdue: looking at an attempt more often finds nothing.
	Period time.Duration
	// Incarnation is the run of the embedded engine; 0 on AWS. A job of an earlier run is brought Interrupted before
	// anything else: what it has out would be taken for this run's.
	Incarnation int
}

// Apply says what event makes of job at now, and how. Unless the verdict is Applied, the job that it
// gives is the one that it got; but when it is Wanting, it gives the job as far as it is decided, over
// which the facts are to be found (it already has the output that the event brought), and which is
// good for nothing else; facts about claims are asked for first, over the job as it came. It panics on
// what only a bug of ours can bring about: a transition that is not in the table, a job that nothing
// would ever wake, or one that has no secret.
func Apply(w makegood.Workflow, j job.Job, event job.Event, facts Facts, now time.Time) (job.Job, Verdict) {
	next := j.Clone()
	t := newTurn(w, &next, facts, event.Cause(), now)
	t.begin(event)
	verdict := t.take(event)
	if len(t.asks) > 0 {
		return j, Verdict{Kind: Wanting, Asks: t.asks}
	}
	if verdict.Kind != Applied {
		return j, verdict
	}
	t.advance()
	if len(t.wants) > 0 {
		return next, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.touch()
	t.tell(j.ProcessState)
	t.setKey(j.CompleteBy, t.mayRaise(event))
	mustAllow(j.ProcessState, next.ProcessState)
	return next, Verdict{Kind: Applied}
}

// touch notes what every save brings along: a job that has no secret gets one, and nothing that was opened now was
// opened by an earlier run of the engine.
func (t *turn) touch() {
	if len(t.job.Secret) == 0 {
		if len(t.facts.Secret) != makegood.SecretBytes {
			panic(fmt.Sprintf("machine: job %s has no secret: no reply to it would ever count", t.job.ID))
		}
		t.job.Secret = t.facts.Secret
	}
	t.job.Incarnation = max(t.job.Incarnation, t.facts.Incarnation)
}

// Submission is what a job is born from.
type Submission struct {
	ID         string
	Definition string
	Input      job.Payload
	InputHash  string
	// Birth is a nonce: see job.Job.
	Birth string
	// StartAt is when the job may start; zero: at once. ReplyTo is who is told of its changes.
	StartAt time.Time
	ReplyTo string
	// Later: the job is to be stored without its first attempts, because whoever stores it does not
	// send their tasks. Submitted, or the Supervisor, makes them.
	Later bool
}

// Submit gives the job as it is to be stored: Pending, with its first attempts open. It may want
// facts, as Apply does, and then gives the job as far as it is decided.
func Submit(w makegood.Workflow, s Submission, facts Facts, now time.Time) (job.Job, Verdict) {
	j := job.Job{
		ID: s.ID, Workflow: w.Name, Definition: s.Definition, Round: 1,
		ProcessState: makegood.Pending, Desired: makegood.Processed,
		CreatedAt: now, StartAt: s.StartAt, ReplyTo: s.ReplyTo,
		Input: s.Input, InputHash: s.InputHash, Birth: s.Birth,
		Steps: make([]job.StepState, len(w.Steps)),
	}
	for i, s := range w.Steps {
		j.Steps[i].Name = s.Name
	}
	t := newTurn(w, &j, facts, job.Submitted{}.Cause(), now)
	t.renewDeadline()
	if j.ReplyTo != "" {
		t.announce(false, true)
	}
	if s.Later {
		j.CompleteBy = t.now
		return j, Verdict{Kind: Applied}
	}
	t.advance()
	if len(t.wants) > 0 {
		return j, Verdict{Kind: Wanting, Wants: t.wants}
	}
	t.touch()
	t.tell(makegood.Pending)
	t.setKey(time.Time{}, false)
	mustAllow(makegood.Pending, j.ProcessState)
	return j, Verdict{Kind: Applied}
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
}

func newTurn(w makegood.Workflow, j *job.Job, facts Facts, cause string, now time.Time) *turn {
	return &turn{w: w, job: j, facts: facts, cause: cause, now: makegood.Instant(now), graph: newGraph(w)}
}

// take says what the event itself changes; what follows from it is advance's.
func (t *turn) take(event job.Event) Verdict {
	switch e := event.(type) {
	case job.Submitted:
		return t.submitted()
	case job.StepSucceeded:
		return t.succeeded(e)
	case job.StepFailed:
		return t.failed(e)
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
	case job.Requested:
		return t.requested(e)
	default:
		panic(fmt.Sprintf("machine: unknown event %T", event))
	}
}

// begin notes that the job is under way: something other than a request has happened to it.
func (t *turn) begin(event job.Event) {
	switch event.(type) {
	case job.Told, job.NotHeard, job.Requested, job.Submitted, job.AttemptClosed:
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
}

// stop puts the job in front of a person. Nothing new starts: what nobody has claimed is taken back; what was claimed
// runs on, and its replies are kept.
func (t *turn) stop(reason string) {
	t.closeOpen()
	t.job.ProcessState = makegood.Error
	t.job.Reason = makegood.Clip(reason)
	t.job.PausedAt = time.Time{}
	t.job.RemindAt = t.now.Add(makegood.FarKey)
	t.announce(true, true)
}

// announce notes that somebody must be told of the state that the job is in now.
func (t *turn) announce(operator, listener bool) {
	t.job.Seq++
	t.job.Untold = append(t.job.Untold, job.Announcement{
		Seq: t.job.Seq, ProcessState: t.job.ProcessState, Reason: t.job.Reason, At: t.now,
		Operator: operator, Listener: listener,
	})
}

// tell notes that whoever listens must be told, if the state is not what it was. Of an Error stop has
// noted it.
func (t *turn) tell(was makegood.ProcessState) {
	is := t.job.ProcessState
	if is != was && is != makegood.Error && t.job.ReplyTo != "" {
		t.announce(false, true)
	}
}

// submitted makes the first attempts of a job that was stored without them.
func (t *turn) submitted() Verdict {
	for _, s := range t.job.Steps {
		if s.Attempt > 0 || s.Forward.State != job.NotStarted {
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

// told takes the announcements off that were delivered to all whom they are for.
func (t *turn) told(e job.Told) Verdict {
	news := false
	for i := range t.job.Untold {
		a := &t.job.Untold[i]
		if a.Seq > e.Seq {
			continue
		}
		news = news || e.Operator && a.Operator || e.Listener && a.Listener
		a.Operator, a.Listener = a.Operator && !e.Operator, a.Listener && !e.Listener
	}
	if !news {
		return Verdict{Kind: Duplicate, Reason: "told already"}
	}
	if e.Listener {
		t.job.TellTries, t.job.TellAt = 0, time.Time{}
	}
	t.forgetTold()
	return Verdict{Kind: Applied}
}

// notHeard waits longer each time a listener cannot be told, and gives up what is too old to tell.
func (t *turn) notHeard(e job.NotHeard) Verdict {
	waiting := slices.ContainsFunc(t.job.Untold, func(a job.Announcement) bool { return a.Listener && a.Seq == e.Seq })
	if !waiting || t.now.Before(t.job.TellAt) {
		return Verdict{Kind: Duplicate, Reason: "it is known that the listener did not hear it"}
	}
	for i := range t.job.Untold {
		if a := &t.job.Untold[i]; a.Listener && !t.now.Before(a.At.Add(makegood.MaxTell)) {
			a.Listener = false
			t.job.Unheard++
		}
	}
	t.job.TellAt = t.now.Add(doubled[time.Duration](makegood.TellAgain, t.job.TellTries, makegood.MaxTellAgain))
	t.job.TellTries++
	t.forgetTold()
	return Verdict{Kind: Applied}
}

func (t *turn) forgetTold() {
	t.job.Untold = slices.DeleteFunc(t.job.Untold, func(a job.Announcement) bool { return !a.Operator && !a.Listener })
}
