package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// goForward opens every step that is ready, and finishes the job when all are done.
func (t *turn) goForward() {
	done := true
	for _, i := range t.graph.order {
		s := &t.job.Steps[i]
		for s.Forward.State == job.NotStarted && !t.job.Paused() && !t.early() {
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
		done = done && through(s.Forward.State)
	}
	if done {
		t.finish(makegood.JobProcessed)
	}
}

func through(s job.ActivityState) bool { return s == job.Done || s == job.Skipped }

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

// untilOf is the deadline of a step that waits by itself.
func (t *turn) untilOf(fact Fact) time.Time {
	if fact.Until.IsZero() {
		return t.now.Add(fact.For.Std())
	}
	return fact.Until
}

// tooFar says why a step cannot wait by itself until a time; empty: it can. Ended sooner, it would be taken for over.
func (t *turn) tooFar(until time.Time) string {
	if until.Sub(t.now) <= makegood.MaxWait {
		return ""
	}
	return fmt.Sprintf("it would wait until %s, which is more than %d days ahead: that is the limit", until.UTC().Format(time.RFC3339), int(makegood.MaxWait.Hours()/24))
}

// turnRound makes the job want to be undone, and to end in state want.
func (t *turn) turnRound(want makegood.ProcessState, reason string) {
	t.closeOpen()
	t.job.Desired = want
	t.job.ProcessState = makegood.JobUndoing
	t.because(reason)
	t.note(job.Entry{Kind: makegood.EntryTurned, State: want, Reason: t.job.Reason})
	t.noMoreRounds()
	for i := range t.job.Steps {
		switch a := &t.job.Steps[i].Forward; a.State {
		case job.Backoff:
			a.State = job.Withdrawn
		case job.Waiting:
			t.leaveWait(side{i, false})
		}
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
		return false
	}
	switch s.Undo.State {
	case job.Done, job.Skipped, job.Irreversible:
		return true
	case job.NotStarted:
	default:
		return false
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
	case !t.job.Paused():
		t.start(side{i, true})
		// One that waits may be over at once: its time has passed, or its answer was kept.
		return through(s.Undo.State)
	}
	return false
}

// notUndone names the steps that were done, or may have been, and cannot be undone.
func (t *turn) notUndone() string {
	var names []string
	for _, s := range t.job.Steps {
		if s.Undo.State == job.Irreversible || s.Undo.State == job.Skipped && t.job.Settled(s.Undo) != nil {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; not undone: " + strings.Join(names, ", ")
}
