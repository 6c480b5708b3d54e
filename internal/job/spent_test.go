package job_test

import (
	"math"
	"testing"

	"github.com/makegood-dev/makegood/internal/job"
)

// A sum that ran over would be negative, and a job with a negative number cannot be read any more.
func TestWhatAJobHasCostNeverRunsOver(t *testing.T) {
	lie := job.Spent{Writes: 1 << 45, GBMicros: math.MaxInt64}
	sum := job.Spent{Writes: 1}
	for range 1 << 17 {
		sum = sum.Plus(lie)
	}
	if sum.Writes != 1<<60 || sum.GBMicros != 1<<60 || sum.Requests != 0 {
		t.Errorf("got %+v, want 2^60 at most", sum)
	}
	if got := (job.Spent{Writes: 5}).Plus(job.Spent{Writes: 2}.Minus(job.Spent{Writes: 3})); got.Writes != 4 {
		t.Errorf("5 and 2-3 are %d, want 4", got.Writes)
	}
}
