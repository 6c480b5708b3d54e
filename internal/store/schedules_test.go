package store_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// A key at which something begins is distinguished from one at which silence has lasted too long.
func TestWhatBeginsAtAKey(t *testing.T) {
	key := time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)
	step := func(a job.Activity) []job.StepState { return []job.StepState{{Name: "a"}, {Name: "b", Undo: a}} }
	for what, c := range map[string]struct {
		job    job.Job
		begins bool
	}{
		"a start":                      {job.Job{StartAt: key}, true},
		"a start that has been":        {job.Job{StartAt: key.Add(-1)}, false},
		"a round":                      {job.Job{NextRoundAt: key}, true},
		"an attempt after a backoff":   {job.Job{Steps: step(job.Activity{State: job.Backoff, At: key})}, true},
		"a wait":                       {job.Job{Steps: step(job.Activity{State: job.Waiting, LookAt: key})}, true},
		"the look after an attempt":    {job.Job{Steps: step(job.Activity{State: job.Dispatched, At: key, LookAt: key})}, false},
		"a start of a paused job":      {job.Job{StartAt: key, PausedAt: key}, false},
		"an end that is to be told of": {job.Job{StartAt: key, ProcessState: makegood.JobProcessed}, false},
	} {
		c.job.CompleteBy = key
		if got := store.Begins(c.job); got != c.begins {
			t.Errorf("%s: got %v, want %v", what, got, c.begins)
		}
	}
	if store.Begins(job.Job{}) {
		t.Error("a job without a key: got true")
	}
}
