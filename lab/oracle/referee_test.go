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
