package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// A claim under the longest name that an agent may have is none that cannot be true; one byte more, and it is.
func TestAClaimUnderTheLongestNameIsBelieved(t *testing.T) {
	for _, c := range []struct{ bytes, failures int }{
		{makegood.MaxLockedByBytes, 0},
		{makegood.MaxLockedByBytes + 1, 1},
	} {
		x := newAttacked(t, makegood.Step{})
		x.item = store.ClaimItem{Claim: job.Claim{
			Attempt: 1, LockedBy: strings.Repeat("a", c.bytes), StartedAt: x.now, CompleteBy: x.now.Add(2 * time.Minute),
		}}
		x.due()
		if x.job.FailureCount != c.failures {
			t.Errorf("a claim by %d bytes: got %d failures, want %d", c.bytes, x.job.FailureCount, c.failures)
		}
	}
}

// A job that was parked has no time at which its operator is reminded. Whatever comes to it, it stays in the index.
func TestAParkedJobStaysInTheIndexWhateverComes(t *testing.T) {
	x := newAttacked(t, makegood.Step{})
	x.job.ProcessState, x.job.CompleteBy = makegood.Error, x.now.Add(makegood.FarKey)
	reply := job.Reply{Step: "s", Attempt: 1, LockedBy: "a1", StartedAt: x.now, Token: machine.Token(x.job, "s", 1)}
	next, v := machine.Apply(x.w, x.job, job.StepSucceeded{Reply: reply}, x.facts(nil), x.now)
	if v.Kind != machine.Applied || next.CompleteBy.IsZero() {
		t.Errorf("got %s and the key %v, want it applied, and a key", v.Kind, next.CompleteBy)
	}
}
