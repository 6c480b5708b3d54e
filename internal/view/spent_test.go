package view_test

import (
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/view"
)

// Where nothing was counted it is not known what a job has cost: that is not zero.
func TestWhatWasNotCountedIsNotKnown(t *testing.T) {
	if got := view.Of(job.Job{}, nil).Spent; got != nil {
		t.Errorf("got %+v, want it unknown", got)
	}
	got := view.Of(job.Job{Spent: job.Spent{Writes: 13, HalfReads: 11, Requests: job.SpentParts / 2, Invocations: job.SpentParts / 3, GBMicros: 12_500}}, nil).Spent
	if want := (makegood.Spent{WriteUnits: 13, ReadUnits: 5.5, Requests: 0.5, Invocations: 0.333333, GBSeconds: 0.0125}); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
