package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// Referee watches one job from outside, in a world where anything fails: what agents begin and say, what is asked for,
// and what the job says of itself whenever it is saved. It judges the policy with the slack that faults allow: they may
// delay a thing or keep it from happening, but grant no attempt, shorten no wait, and turn no job round.
type Referee struct {
	// Exact: all clocks are right, so that times can be judged.
	Exact bool
	// Definition returns the workflow that a job has; nil: it is never moved to another.
	Definition func(j job.Job) makegood.Workflow

	workflow makegood.Workflow
	// steps are those that there are, and that there were.
	steps map[string]makegood.Step
	wrong func(format string, args ...any)
	last  job.Job
	seen  bool
	// sides are what was seen of each side of each step since it was granted attempts.
	sides map[sideName]*tally
	// undoes are the attempts of undos.
	undoes map[attemptName]bool
	// begun are the attempts that ran at all: one of a shared step runs again whenever its task is delivered again,
	// however much was granted meanwhile.
	begun map[attemptName]bool
	// company are the attempts that were claimed with others beside them.
	company map[attemptName]bool
	// excused are the attempts that may be put off: their failure does not use one up.
	excused map[attemptName]bool
	// savedAt is when the job was saved last.
	savedAt time.Time
	// asked: somebody asked for a cancel or an undo. lied: an agent claimed what cannot be true.
	asked, lied bool
}

type sideName struct {
	step string
	undo bool
}

type attemptName struct {
	step    string
	attempt int
}

// tally counts the attempts of a side since the last grant: those that an agent ran, and those that were claimed, or
// are of a shared step and went out. Final: one said that no other can succeed. Refused: its task can never be sent.
type tally struct {
	ran, claimed   map[int]bool
	final, refused bool
}

// Watch begins with a job that is not born yet. wrong is told of what breaks a promise.
func Watch(w makegood.Workflow, wrong func(format string, args ...any)) *Referee {
	r := &Referee{steps: map[string]makegood.Step{}, wrong: wrong, sides: map[sideName]*tally{}, undoes: map[attemptName]bool{}, begun: map[attemptName]bool{}, company: map[attemptName]bool{}, excused: map[attemptName]bool{}}
	r.goesBy(w)
	return r
}

func (r *Referee) tally(step string, undo bool) *tally {
	name := sideName{step, undo}
	if r.sides[name] == nil {
		r.sides[name] = &tally{ran: map[int]bool{}, claimed: map[int]bool{}}
	}
	return r.sides[name]
}

// def is how a step is described, or was when there was one.
func (r *Referee) def(step string) makegood.Step { return r.steps[step] }

// goesBy: this is the workflow of the job from now on.
func (r *Referee) goesBy(w makegood.Workflow) {
	r.workflow = w
	for _, s := range w.Steps {
		r.steps[s.Name] = s
	}
}

// timeout is how long a job may go forward; zero: as long as it takes.
func (r *Referee) timeout(j job.Job) time.Duration {
	return max(cmp.Or(j.Timeout, r.workflow.Timeout).Std(), 0)
}

// retryOf is how a side is tried again.
func retryOf(s makegood.Step, undo bool) makegood.Retry {
	if undo && domain.CanUndo(s) {
		return s.Undo.Retry
	}
	return s.Retry
}

// Began: an agent runs an attempt. outcome is what an undo was told of its step.
func (r *Referee) Began(step string, attempt, round int, undo bool, outcome makegood.Outcome) {
	def, t := r.def(step), r.tally(step, undo)
	s, _ := r.last.Step(step)
	// Nobody claims an attempt of a shared step, so a queue may make one run that is long over.
	late := def.Shared && attempt < s.Attempt
	if name := (attemptName{step, attempt}); !late && !r.begun[name] {
		r.begun[name], t.ran[attempt] = true, true
	}
	waits := !undo && r.workflow.OnFailure.Action == makegood.FailureWait
	if n := retryOf(def, undo).Attempts; len(t.ran) > n && !waits {
		r.wrong("attempt %d of %s is the %dth since some were granted, and those were %d", attempt, step, len(t.ran), n)
	}
	if !undo || s.Undo.Attempt != attempt || r.last.Round != round {
		return
	}
	if done := s.Forward.State == job.Done; done != (outcome == makegood.OutcomeDone) {
		r.wrong("the undo of %s is told %q, and the step is %q", step, outcome, s.Forward.State)
	}
}

// Took: an attempt was claimed, with so many others beside it in its process.
func (r *Referee) Took(step string, attempt, beside int) {
	name := attemptName{step, attempt}
	r.tally(step, r.undoes[name]).claimed[attempt] = true
	r.company[name] = beside > 0
}

// SaidFinal: an attempt failed, and no other can succeed.
func (r *Referee) SaidFinal(step string, undo bool) { r.tally(step, undo).final = true }

// NotTaken: the queue will never take the task of an attempt.
func (r *Referee) NotTaken(step string, undo bool) { r.tally(step, undo).refused = true }

// LetGo: an agent says that it has not begun an attempt, because it is paused. One of a shared step may have run all
// the same, and counts for nothing.
func (r *Referee) LetGo(step string, attempt int) {
	for _, undo := range []bool{false, true} {
		if t := r.tally(step, undo); r.def(step).Shared {
			delete(t.ran, attempt)
		}
	}
}

// AskedForPause: an attempt was answered that its service wants no calls for a while.
func (r *Referee) AskedForPause(step string, attempt int) {
	r.excused[attemptName{step, attempt}] = true
}

// MeetsBreaker: the process that saves the job next knows that the breaker has paused the agent of an attempt.
func (r *Referee) MeetsBreaker(step string, attempt int) {
	r.excused[attemptName{step, attempt}] = true
}

// Lied: an agent wrote a claim that cannot be true, which may end an attempt that never ran.
func (r *Referee) Lied() { r.lied = true }

// Died: the engine died. What ran in it was cut off, and counts for nothing.
func (r *Referee) Died() {
	for _, s := range r.last.Steps {
		for _, undo := range []bool{false, true} {
			if a := activity(s, undo); a.State == job.Dispatched {
				delete(r.tally(s.Name, undo).ran, a.Attempt)
			}
		}
	}
}

// Asks: somebody asks for something, and may ask again until there is an answer.
func (r *Referee) Asks(verb makegood.Verb) {
	r.asked = r.asked || verb == makegood.VerbCancel || verb == makegood.VerbUndo || verb == makegood.VerbRedo
}

// Sends: a process sends a task, and this is the job as it knows it.
func (r *Referee) Sends(step string, attempt int, knows job.Job) {
	if knows.ProcessState == makegood.JobError || knows.ProcessState.Finished() || knows.Paused() {
		r.wrong("the task of attempt %d of %s is sent by who knows that the job is %s (paused: %v)", attempt, step, knows.ProcessState, knows.Paused())
	}
}

// Saved: this is what the job says of itself from now on.
func (r *Referee) Saved(j job.Job, now time.Time) {
	before := r.last
	r.last = j
	defer func() { r.savedAt = now }()
	if r.Definition != nil && before.Definition != j.Definition {
		r.goesBy(r.Definition(j))
	}
	if !r.seen {
		r.seen = true
		r.born(j)
		return
	}
	if !slices.Equal(before.Requests, j.Requests) || before.Round != j.Round || settledMore(before, j) {
		r.regrant(before, j)
	}
	r.round(before, j, now)
	r.granted(before, j, now)
	r.opened(j)
	r.turned(before, j, now)
	r.stopped(before, j, now)
	r.times(before, j)
	for _, s := range j.Steps {
		was, _ := before.Step(s.Name)
		for _, undo := range []bool{false, true} {
			r.moved(before, j, move{step: s.Name, undo: undo, was: activity(was, undo), is: activity(s, undo)}, now)
		}
	}
}

// settledMore reports whether somebody has settled a step between two saves: what stopped for it may go on.
func settledMore(before, j job.Job) bool {
	return slices.ContainsFunc(j.Steps, func(s job.StepState) bool {
		was, _ := before.Step(s.Name)
		return s.Forward.Settled != was.Forward.Settled || s.Undo.Settled != was.Undo.Settled
	})
}

// regrant: whatever was granted may have granted attempts, so more may run than before. What was given up has all of
// them before it; what was not may be given up by those that it made.
func (r *Referee) regrant(before, j job.Job) {
	for _, s := range before.Steps {
		for _, undo := range []bool{false, true} {
			t := r.tally(s.Name, undo)
			t.ran = map[int]bool{}
			if j.Round != before.Round || activity(s, undo).State == job.Failed {
				*t = tally{ran: map[int]bool{}, claimed: map[int]bool{}}
			}
		}
	}
}

func (r *Referee) born(j job.Job) {
	r.opened(j)
	want := time.Time{}
	if timeout := r.workflow.Timeout.Std(); timeout > 0 {
		want = later(j.CreatedAt, j.StartAt).Add(timeout)
	}
	if !j.Deadline.Equal(want) {
		r.wrong("it is born with until %v, want %v", j.Deadline, want)
	}
}
