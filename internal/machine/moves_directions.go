package machine

import (
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

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

// goForward opens every step that is ready, and finishes the job when all are done.
func (t *turn) goForward() {
	if t.overTolerance() {
		t.advance()
		return
	}
	done := true
	for _, i := range t.graph.order {
		s := &t.job.Steps[i]
		for s.Forward.State == job.NotStarted && !t.job.Paused() && !t.early() && !t.full() {
			attempt := s.Forward.Attempt
			if t.begins(i); s.Forward.Attempt == attempt {
				break
			}
			// A wait that already had an answer, a failure, begins again at once if its backoff is over at once.
		}
		if !t.forwards() || !t.active() {
			// Starting it failed, and that turned or stopped the job.
			t.advance()
			return
		}
		left := t.redrivePart(i)
		done = done && through(s.Forward.State) && !left
	}
	switch {
	case !done:
	case t.overTolerance(): // The last of them has ended as it began.
		t.advance()
	default:
		t.finish(makegood.JobProcessed)
	}
}

// start opens the first attempt of a step or undo, if its expressions allow it.
func (t *turn) start(at side) {
	if t.holds(at, t.now) {
		return
	}
	want := Want{Step: t.name(at), Undo: at.undo}
	fact, ok := t.facts.Values[want]
	if fact.Run && fact.Err == "" && t.waitsByItself(at) {
		fact.Err = t.tooFar(t.untilOf(fact))
	}
	switch {
	case !ok:
		t.wants = append(t.wants, want)
	case fact.Err != "":
		a := t.activity(at)
		a.Error = &job.StepError{Message: limits.Clip(fact.Err), Kind: makegood.KindExpression, Applied: makegood.AppliedNo}
		t.note(job.Entry{Kind: makegood.EntryFailed, Step: want.Step, Undo: want.Undo, Error: a.Error})
		t.giveUp(at, a.Error.Message)
	case !fact.Run:
		t.skip(at.step)
	case t.waitsByItself(at):
		t.openWait(at, t.untilOf(fact))
	default:
		t.openAttempt(at)
	}
}

// begins starts a step that is next, and skips one that can no longer begin.
func (t *turn) begins(i int) {
	s := t.w.Steps[i]
	switch {
	case s.Only == makegood.OnlyOnError:
		t.beginsOnError(i)
	case s.Any:
		t.beginsByAny(i)
	case t.allThrough(i):
		t.start(side{i, false})
	}
}

// beginsOnError starts a step that another went to. It waits until all steps that may go to it have ended, so that it
// reads the same of their outcomes when it is sent again.
func (t *turn) beginsOnError(i int) {
	switch {
	case !t.allThrough(i):
	case slices.ContainsFunc(t.graph.needs[i], func(n int) bool { return t.job.Steps[n].Forward.WentTo == t.job.Steps[i].Name }):
		t.start(side{i, false})
	default:
		t.skip(i)
	}
}

// beginsByAny starts a step when the first of those that it needs is done. Which one that was is kept: of two that are
// done later both would be there when its task is sent again.
func (t *turn) beginsByAny(i int) {
	a := &t.job.Steps[i].Forward
	for _, n := range t.graph.needs[i] {
		if need := t.job.Steps[n]; a.By == "" && need.Forward.State == job.Done {
			a.By = need.Name
		}
	}
	switch {
	case a.By != "":
		t.start(side{i, false})
	case t.allThrough(i):
		t.skip(i)
	}
}

// goBack opens every undo that may begin, in reverse order of dependency, for every step that was done or has an
// unknown outcome, and finishes the job when no undo is left.
func (t *turn) goBack() {
	over := make([]bool, len(t.job.Steps))
	all := true
	for _, i := range t.graph.backwards() {
		behind := true
		for _, f := range t.graph.followers[i] {
			behind = behind && over[f]
		}
		if behind {
			over[i] = t.backOver(i)
		}
		if !t.active() {
			return
		}
		all = all && over[i]
	}
	if all {
		t.undone()
	}
}

// backOver takes one step on the way back, after all its followers, and reports whether it has no work left.
func (t *turn) backOver(i int) bool {
	s := &t.job.Steps[i]
	if s.Forward.State == job.Dispatched {
		// Its end comes before its undo: by a reply, or by being closed.
		t.closeBehind(i)
		return false
	}
	if s.Undo.State != job.NotStarted {
		return t.undoOver(i)
	}
	switch {
	case s.Forward.State != job.Done && !s.Forward.Unknown:
		s.Undo.State = job.Skipped
		return true
	case !domain.CanUndo(t.w.Steps[i]) && t.waitsByItself(side{i, false}):
		s.Undo.State = job.Skipped
		return true
	case !domain.CanUndo(t.w.Steps[i]):
		s.Undo.State = job.Irreversible
		return true
	case !t.job.Paused() && !t.full():
		t.start(side{i, true})
		// One that waits may be over at once: its time has passed, or its answer was kept.
		return through(s.Undo.State)
	}
	return false
}
