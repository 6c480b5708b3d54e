package oracle

import (
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// A queue may deliver the task of a shared step again whenever it likes, and it runs again: that is no attempt more, not
// even after others were granted.
func TestTheSameAttemptAgainIsNoAttemptMore(t *testing.T) {
	w := makegood.Workflow{Name: "w", Steps: []makegood.Step{{
		Name: "s", Agent: "a", Shared: true, Retry: makegood.Retry{Attempts: 1},
	}}}
	var wrongs int
	r := Watch(w, func(string, ...any) { wrongs++ })
	j := job.Job{ID: "j", Round: 1, ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, Steps: []job.StepState{{
		Name: "s", Attempt: 1, Forward: job.Activity{State: job.Dispatched, Attempt: 1},
	}}}
	r.Saved(j, j.CreatedAt)
	r.Began("s", 1, 1, false, makegood.OutcomeDone)
	r.Began("s", 1, 1, false, makegood.OutcomeDone)
	again := j.Clone()
	again.Requests = []string{"r"}
	r.regrant(j, again)
	r.Began("s", 1, 1, false, makegood.OutcomeDone)
	r.Began("s", 2, 1, false, makegood.OutcomeDone)
	if wrongs != 0 {
		t.Errorf("%d promises are said to be broken, and none is", wrongs)
	}
	r.Began("s", 3, 1, false, makegood.OutcomeDone)
	if wrongs != 1 {
		t.Errorf("an attempt more than was granted is found %d times, want once", wrongs)
	}
}

// A chain whose last step is answered that it waits is saved once, as is the step before it. The attempt counts; that
// of a step ahead of its turn does not.
func TestAnAttemptOfAChainThatWaitsCounts(t *testing.T) {
	w := makegood.Workflow{Name: "w", OnFailure: makegood.OnFailure{Action: makegood.FailureStop}, Steps: []makegood.Step{
		{Name: "a", Agent: "x", Shared: true, Inline: true, Retry: makegood.Retry{Attempts: 1}},
		{Name: "b", Agent: "x", Shared: true, Inline: true, Needs: []string{"a"}, Retry: makegood.Retry{Attempts: 1}},
	}}
	out := job.Activity{State: job.Dispatched, Attempt: 1, Tries: 1, Inline: "p:1"}
	for ends, wrong := range map[job.ActivityState]bool{job.Waiting: false, job.NotStarted: true} {
		wrongs := 0
		r := Watch(w, func(string, ...any) { wrongs++ })
		j := job.Job{ID: "j", Round: 1, ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, LockedBy: "p:1", Steps: []job.StepState{
			{Name: "a", Attempt: 1, Forward: out}, {Name: "b", Attempt: 1, Forward: out},
		}}
		r.Saved(j, j.CreatedAt)
		r.Took("a", 1, 1)
		r.Took("b", 1, 1)
		j = j.Clone()
		j.LockedBy, j.Steps[0].Forward.State, j.Steps[1].Forward.State = "p:2", job.Done, ends
		r.Saved(j, j.CreatedAt)
		j = j.Clone()
		j.LockedBy, j.Steps[1].Forward.State, j.Steps[1].Forward.FailureCount = "p:3", job.Failed, 1
		r.Saved(j, j.CreatedAt)
		if got := wrongs > 0; got != wrong {
			t.Errorf("b was out in a chain, then %q and given up: said to be wrong %d times, want %t", ends, wrongs, wrong)
		}
	}
}
