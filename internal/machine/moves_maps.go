package machine

import (
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// partEnded counts the failed items of a step that has ended.
func (t *turn) partEnded(at side, end job.ChildEnd) {
	if t.w.Steps[at.step].Map != nil {
		t.activity(at).FailureCount = end.Failed
	}
}

// overTolerance gives up a part that has more failed items than it may, and reports whether it did. A share may come to
// count with an item that is done.
func (t *turn) overTolerance() bool {
	if t.w.Part == nil {
		return false
	}
	why := t.intolerable(0)
	switch action := t.w.OnFailure.Action; {
	case why == "":
		return false
	case action == makegood.FailureUndo:
		t.turnRound(makegood.JobUndone, why)
	default:
		t.stop(why)
	}
	return true
}

// keepAnswers keeps the answers for those items of a batch that are done: the next attempt is for the others.
func keepAnswers(a *job.Activity, e job.StepFailed) {
	if b := e.Batch; b != nil {
		a.Output, a.Answered, a.Refused = b.Output, b.Done, b.Refused
	}
}

// forgetAnswers has all items of a batch done anew.
func (t *turn) forgetAnswers(at side) {
	if a := t.activity(at); domain.BatchSize(t.w, at.step) > 0 {
		a.Output, a.Answered, a.Refused = job.Payload{}, 0, 0
	}
}

// followed returns a step that follows another and has work under way; empty: none has. Its attempts read the output of
// that other, and all of one key read the same.
func (t *turn) followed(i int) string {
	behind := t.graph.behind(i)
	for _, n := range t.graph.order {
		switch t.job.Steps[n].Forward.State {
		case job.Dispatched, job.Backoff, job.Waiting:
			if behind[n] {
				return t.job.Steps[n].Name
			}
		}
	}
	return ""
}

// redriveItems lets the failed items that a request is for have fresh attempts under their keys, and notes the parts
// that are to do the same, each when its turn has come. It returns the number of these items, and the step whose work
// forbids it, if there is one.
func (t *turn) redriveItems(e job.Requested) (items int, busy string) {
	for i := range t.job.Steps {
		n, named := t.redriven(i, e)
		if n == 0 {
			continue
		}
		if follower := t.followed(i); follower != "" {
			busy = follower
			continue
		}
		items += n
		at := side{i, false}
		a := t.activity(at)
		a.FinishedAt = time.Time{}
		if t.w.Steps[i].Map != nil {
			a.RepeatTries, a.Redriven = 1, named
			t.redecide(i)
			continue
		}
		a.State, a.Interruptions = job.NotStarted, 0
		grant(a)
		t.passOver(i, named)
	}
	if items > 0 {
		t.job.Transitions = 0
	}
	return items, busy
}

// passOver leaves the items of a batch that a redrive does not name out of its next attempts.
func (t *turn) passOver(i int, named job.Indexes) {
	size := domain.BatchSize(t.w, i)
	if size == 0 || named == "" {
		return
	}
	a := &t.job.Steps[i].Forward
	a.Refused = 1<<size - 1
	for _, item := range named.List() {
		a.Refused &^= 1 << item
	}
}

// redecide lets the steps wait again to which a step may go that may fail yet.
func (t *turn) redecide(i int) {
	for _, n := range t.graph.followers[i] {
		if a := &t.job.Steps[n].Forward; t.w.Steps[n].Only == makegood.OnlyOnError && a.State == job.Skipped && t.job.Settled(*a) == nil {
			a.State, a.FinishedAt = job.NotStarted, time.Time{}
		}
	}
}

// redrivePart has the child of a step redriven that is to be, if the job has room for one more that is under way. It
// reports whether it is left for later.
func (t *turn) redrivePart(i int) (left bool) {
	at := side{i, false}
	a := t.activity(at)
	if a.RepeatTries == 0 || t.w.Steps[i].Map == nil || a.State != job.Done {
		return false
	}
	if t.job.Paused() || t.full() || t.holds(at, t.now) {
		return true
	}
	a.RepeatTries = 0
	a.Repeats++
	t.dispatch(at)
	return false
}

// notRedriven ends a redrive that the child of a step has refused: the step stays as it was done.
func (t *turn) notRedriven(at side, why string) {
	a := t.activity(at)
	t.noteOf(at, job.Entry{Kind: makegood.EntryRefused, Error: &job.StepError{Message: limits.Clip(why), Kind: makegood.KindDispatch, Applied: makegood.AppliedNo}})
	t.rest(a, job.Done)
	a.FinishedAt = t.now
}
