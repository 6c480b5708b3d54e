package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// A claim under the longest name that an agent may have is none that cannot be true; one byte more, and it is.
func TestAClaimUnderTheLongestNameIsBelieved(t *testing.T) {
	for _, c := range []struct{ bytes, failures int }{
		{limits.MaxLockedByBytes, 0},
		{limits.MaxLockedByBytes + 1, 1},
	} {
		x := newAttacked(t, makegood.Step{})
		x.item = store.ClaimItem{Claim: job.Claim{
			Attempt: 1, LockedBy: strings.Repeat("a", c.bytes), StartedAt: x.now, CompleteBy: x.now.Add(2 * time.Minute),
		}}
		x.due()
		if x.job.FailureCount != c.failures {
			t.Errorf("a claim by %d bytes: got %d failures, want %d", c.bytes, x.job.FailureCount, c.failures)
		}
		for x.job.FailureCount == 0 {
			x.due()
		}
		if got := len(x.job.Steps[0].Forward.Silence().LockedBy); (got == c.bytes) != (c.failures == 0) {
			t.Errorf("silent under %d bytes: the job keeps a name of %d", c.bytes, got)
		}
	}
}

// A job that was parked has no time at which its operator is reminded. Whatever comes to it, it stays in the index.
func TestAParkedJobStaysInTheIndexWhateverComes(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	x.job.ProcessState, x.job.CompleteBy = makegood.JobError, x.now.Add(limits.FarKey)
	reply := job.Reply{Step: "s", Attempt: 1, LockedBy: "a1", StartedAt: x.now, Token: machine.Token(x.job, "s", 1)}
	next, v := machine.Apply(x.w, x.job, job.StepSucceeded{Reply: reply}, x.facts(nil), x.now)
	if v.Kind != machine.Applied || next.CompleteBy.IsZero() {
		t.Errorf("got %s and the key %v, want it applied, and a key", v.Kind, next.CompleteBy)
	}
}

// However often a wait was doubled, the next one is drawn from what is the longest.
func TestAWaitThatWasDoubledOftenIsTheLongest(t *testing.T) {
	waits := map[int]time.Duration{}
	for _, tries := range []int{7, 8, 33, 64, limits.MaxAttempts - 1} {
		x := newAttacked(t, makegood.Step{Retry: makegood.Retry{
			Attempts: limits.MaxAttempts, Backoff: makegood.Second, Max: makegood.Minute,
		}})
		x.job.Steps[0].Forward.Tries = tries
		x.item = store.ClaimItem{Claim: job.Claim{Attempt: 1, LockedBy: "a1", StartedAt: x.now, CompleteBy: x.now.Add(time.Second)}}
		x.due()
		a := x.job.Steps[0].Forward
		waits[tries] = a.At.Sub(x.now)
		if a.State != job.Backoff || waits[tries] <= 0 || waits[tries] > time.Minute || waits[tries] != waits[7] {
			t.Errorf("after %d tries: got %s for %s, want a backoff for %s, as after 7", tries, a.State, waits[tries], waits[7])
		}
	}
}

// A job that has ended and was told of has no place in the index. One that is in it all the same leaves it when it is found.
func TestAJobThatHasEndedLeavesTheIndex(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	x.job.ProcessState, x.job.Steps[0].Forward = makegood.JobProcessed, job.Activity{State: job.Done, Attempt: 1}
	x.due()
	if !x.job.CompleteBy.IsZero() {
		t.Errorf("got the key %s, want none", x.job.CompleteBy)
	}
}

// What nobody could be told of is bounded: of more than MaxUntold announcements the oldest is given up, one that is for the listener
// alone before any of the operator's. What a listener will not hear is counted.
func TestWhatNobodyCouldBeToldOfIsBounded(t *testing.T) {
	const most = job.MaxUntold
	for name, c := range map[string]struct {
		of           func(i int) (operator, listener bool)
		lost, missed int
	}{
		"all are the listener's":  {func(int) (bool, bool) { return false, true }, 1, 1},
		"all are the operator's":  {func(int) (bool, bool) { return true, false }, 1, 0},
		"all are for both":        {func(int) (bool, bool) { return true, true }, 1, 1},
		"the third of one is not": {func(i int) (bool, bool) { return i != 2, true }, 3, 1},
	} {
		x := newAttacked(t, makegood.Step{Retry: makegood.Retry{Attempts: 1}})
		x.w.OnFailure, x.job.ReplyTo, x.job.Seq, x.job.Untold = makegood.OnFailure{Action: makegood.FailureStop}, "shop", most, nil
		want := []int{}
		for i := range most {
			operator, listener := c.of(i)
			x.job.Untold = append(x.job.Untold, job.Announcement{Seq: i + 1, At: x.now, Operator: operator, Listener: listener})
			if i+1 != c.lost {
				want = append(want, i+1)
			}
		}
		want = append(want, most+1)
		x.item = store.ClaimItem{Claim: job.Claim{Attempt: 1, LockedBy: "l", CompleteBy: x.now.Add(time.Second)}}
		x.due()
		var got []int
		for _, a := range x.job.Untold {
			got = append(got, a.Seq)
		}
		if x.job.ProcessState != makegood.JobError || !slices.Equal(got, want) || x.job.Unheard != c.missed {
			t.Errorf("%s: got %s, untold %v, %d unheard, want Error, %v, %d", name, x.job.ProcessState, got, x.job.Unheard, want, c.missed)
		}
	}
}
