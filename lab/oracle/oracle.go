// Package oracle is a second, naive reading of what a workflow file promises: which attempts are made, when, how many,
// in which order, what state the job ends in, what counts, and who is told. It is written from docs/workflow-file.md,
// docs/states.md and docs/architecture.md, for the tests that hold internal/machine to them, and shares no code with it.
//
// It decides nothing that ships. It knows no revisions, messages, claims or tokens: what they come to is handed in as
// facts, one at a time, in the order in which they happened.
package oracle

import (
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
)

// Phase is what a reader knows of a step going forward, or of its undo.
type Phase string

// The phases.
const (
	Idle         Phase = "idle"         // it has not begun, or was taken back and will begin again
	Out          Phase = "out"          // an attempt is with its agent
	Resting      Phase = "resting"      // the next attempt is made at a time that is known
	Waits        Phase = "waits"        // nobody works on it; somebody outside completes it, or its time ends it
	Done         Phase = "done"         // it succeeded
	Skipped      Phase = "skipped"      // its when is false; of an undo: there was nothing to undo
	GivenUp      Phase = "given up"     // a final failure, or no attempt is left
	TakenBack    Phase = "taken back"   // it did not succeed before the job was turned round
	Irreversible Phase = "irreversible" // an undo that does not exist, and is missed
)

// Side is a step going forward, or its undo.
type Side struct {
	Phase Phase
	// Attempt is the number of the attempt that is out, or was last. Tries are the granted ones that were made.
	Attempt, Tries int
	// Failures are the started attempts that failed or fell silent. Interrupted are those that a restart cut off, without
	// those blameless. InCompany: the one that is out has begun with others beside it.
	Failures, Interrupted int
	InCompany             bool
	// Unknown: an attempt may have had its effect, and nobody knows. Claimed: the one that is out has begun.
	Unknown, Claimed bool
	// Inline: the process that decided runs the one that is out itself.
	Inline bool
	// opened numbers the decision by which it was made, and begins is how long after that its timeout
	// begins at the latest, as far as its silence goes.
	opened int
	begins time.Duration
	// Alone: its attempts are to run with nothing beside them, since one fell silent in company, or a few were cut off.
	Alone bool
	// Silent is the last attempt that began and fell silent: its success is still good, if it comes.
	Silent int
	// SentAt is when the task last went out, Resent how often again.
	SentAt time.Time
	Resent int
	// Earliest and Latest bound when the next attempt is made. At is when it is, once that was said.
	Earliest, Latest, At  time.Time
	StartedAt, FinishedAt time.Time
	// BeganAt is when the attempt that is out was begun.
	BeganAt time.Time
	// WentTo is the step that its onError or its onAnswer went to.
	WentTo string
	// Repeats are the successes after which it was not ready, Repetitions those since all was granted; Since is when the
	// first attempt since then was made.
	Repeats, Repetitions int
	Since                time.Time

	// Failing is when the first of the attempts granted failed; what stood still since moves it on.
	Failing time.Time
	// Until is when it stops waiting, WaitsSince since when it waits, but for pauses. Questions is how often somebody was
	// to be asked, Heard how often they were.
	Until, WaitsSince time.Time
	Questions, Heard  int
	// Output is what it gave.
	Output string

	def  makegood.Step
	undo bool
	// word is the last that was said from outside in this round, settled what a person who has dealt with it says.
	word *heard
	// rejected: its latest failure is an answer of which onAnswer says fail.
	rejected bool
	settled  *settled
	waitFor  time.Duration
}

// Step is both sides of a step. Numbers is the highest number an attempt of it ever had.
type Step struct {
	Forward, Undo Side
	Numbers       int
	def           makegood.Step
}

// Notice is an announcement: a change of ProcessState, and who has yet to hear of it.
type Notice struct {
	Seq                int
	State              makegood.ProcessState
	Operator, Listener bool
}

// Job is what the docs let a reader expect of a job.
type Job struct {
	State, Wanted makegood.ProcessState
	Paused        bool
	Round         int
	Failures      int
	// Another: a round follows when all is undone. NextRoundAt is when, once it is. Again counts the rounds that began so
	// since somebody asked for one, or since the birth.
	Another bool
	// AskedFor: that round was asked for, and has a time of its own.
	AskedFor    bool
	NextRoundAt time.Time
	Again       int
	Steps       []*Step
	// Deadline is when the job's timeout passes, FinishedAt its end, RemindAt when a person hears again of an Error.
	Deadline, FinishedAt, RemindAt time.Time
	// Seq numbers the announcements; Untold are those that somebody has yet to hear of.
	Seq    int
	Untold []Notice

	// Sent are the tasks that what happened last made due.
	Sent []Sent

	// here: the process that decides now runs inline attempts itself, if they end by until; zero: whenever they end.
	// decision numbers the decisions.
	here     bool
	until    time.Time
	decision int

	workflow makegood.Workflow
	// embedded: it is in an engine whose end interrupts.
	embedded bool
	// timeout is that of the workflow, or what somebody has edited it to; 0: none.
	timeout  time.Duration
	order    Order
	pausedAt time.Time
	needs    int
	// settlements are the named requests by which steps were settled.
	settlements []string
}

// Sent is a task that goes out.
type Sent struct {
	Step    string
	Attempt int
	Undo    bool
	// Outcome is what an undo is told of its step; empty for a step.
	Outcome makegood.Outcome
	// Alone: nothing is to run beside it.
	Alone bool
	// Inline: no task goes out, it is run where it was decided on.
	Inline bool
}

// Order is what was submitted, and what the expressions of its steps give: a property of the input.
type Order struct {
	StartAt time.Time
	Listens bool
	// Skips are the steps whose when is false, Broken and BrokenUndo those whose expressions fail.
	Skips, Broken, BrokenUndo map[string]bool
	// ReadyAfter says with which success a step that is repeated is ready.
	ReadyAfter map[string]int
	// Waits are how long steps and undos wait that wait by themselves.
	Waits map[string]Lasting
}

// Decides: the next decision is made by a process that runs inline attempts itself, if here says so and they end by
// until; zero: whenever they end.
func (j *Job) Decides(here bool, until time.Time) {
	j.here, j.until = here, until
	j.decision++
}

// Submitted: the job is stored. Its first attempts are out, unless it starts later; here and until are as in Decides.
func Submitted(w makegood.Workflow, o Order, here bool, until, now time.Time) *Job {
	j := &Job{here: here, until: until, State: makegood.JobPending, Wanted: makegood.JobProcessed, Round: 1, workflow: w, timeout: w.Timeout.Std(), order: o}
	for _, def := range w.Steps {
		s := &Step{def: def}
		s.Forward, s.Undo = Side{Phase: Idle, def: def}, Side{Phase: Idle, def: def, undo: true}
		j.Steps = append(j.Steps, s)
	}
	j.grantTime(now)
	j.announce(Notice{State: makegood.JobPending, Listener: o.Listens})
	j.tell(func() { j.settle(now) })
	return j
}

// noOther: the job ends when it is undone.
func (j *Job) noOther() { j.Another, j.AskedFor, j.NextRoundAt = false, false, time.Time{} }

// grantTime: the job's timeout counts from its start, from a resubmit, from a new round, and from when it was edited.
// While the job is paused no time of it runs.
func (j *Job) grantTime(now time.Time) {
	from := now
	if j.Paused {
		from = j.pausedAt
	}
	j.Deadline = time.Time{}
	if j.timeout > 0 {
		j.Deadline = later(from, j.order.StartAt).Add(j.timeout)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tell carries something out, and notes that whoever listens is to be told of a change of state. An Error was announced
// when the job stopped.
func (j *Job) tell(happen func()) {
	before := j.State
	happen()
	if j.State != before && j.State != makegood.JobError {
		j.announce(Notice{State: j.State, Listener: j.order.Listens})
	}
}

// remindEvery is how often a person hears of an Error that lasts.
const remindEvery = 24 * time.Hour

func (j *Job) announce(n Notice) {
	if !n.Operator && !n.Listener {
		return
	}
	j.Seq++
	n.Seq = j.Seq
	j.Untold = append(j.Untold, n)
}

// Heard: they heard of all announcements up to this one.
func (j *Job) Heard(seq int, operator, listener bool) {
	for i := range j.Untold {
		if n := &j.Untold[i]; n.Seq <= seq {
			n.Operator, n.Listener = n.Operator && !operator, n.Listener && !listener
		}
	}
	j.Untold = slices.DeleteFunc(j.Untold, func(n Notice) bool { return !n.Operator && !n.Listener })
}

// live: something may begin.
func (j *Job) live() bool {
	return !j.Paused && j.State != makegood.JobError && !j.State.Finished()
}

func (j *Job) forwards() bool { return j.Wanted == makegood.JobProcessed }

// MaySend reports whether the task of an attempt may be on its way to its agent now: it is out, nothing stands still,
// and it is wanted.
func (j *Job) MaySend(step string, attempt int) bool {
	side := j.step(step).side(attempt)
	return side != nil && side.Phase == Out && j.live() && j.wants(side)
}

// wants: the side is of the direction in which the job goes.
func (j *Job) wants(side *Side) bool { return side.undo != j.forwards() }

func (j *Job) step(name string) *Step {
	i := slices.IndexFunc(j.Steps, func(s *Step) bool { return s.def.Name == name })
	return j.Steps[i]
}

// side is the side of a step that an attempt belongs to; nil: to none, any more.
func (s *Step) side(attempt int) *Side {
	for _, side := range []*Side{&s.Forward, &s.Undo} {
		if side.Attempt == attempt {
			return side
		}
	}
	return nil
}

// retry is how a side is tried again.
func (s *Side) retry() makegood.Retry {
	if s.undo {
		return s.def.Undo.Retry
	}
	return s.def.Retry
}

func (s *Side) startBy() time.Duration {
	if s.undo {
		return s.def.Undo.StartBy.Std()
	}
	return s.def.StartBy.Std()
}

func (s *Side) timeout() time.Duration {
	if s.undo {
		return s.def.Undo.Timeout.Std()
	}
	return s.def.Timeout.Std()
}
