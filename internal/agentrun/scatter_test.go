package agentrun

import (
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood/internal/store"
)

// What the configuration leaves out is filled in.
func TestARunnerHasAClockANonceAndALog(t *testing.T) {
	if c := needed().complete(); c.Now == nil || c.Nonce == nil || c.Logger == nil {
		t.Errorf("got %+v, want a clock, a nonce and a log", c)
	}
}

// needed is a configuration of what must be set, and no more.
func needed() Config {
	var claims struct{ store.Claims }
	return Config{Claims: claims, Queue: &all{}}
}

// What failed is tried again soon at first, then ever later, and then every second: an attempt has no time for more.
func TestWhatFailedIsTriedAgainSoonAndThenEverySecond(t *testing.T) {
	soon := (&attempt{Runner: New(needed()), lease: lease{}}).soon().(*scattered).BackOff.(*backoff.ExponentialBackOff)
	want := backoff.ExponentialBackOff{InitialInterval: 30 * time.Millisecond, Multiplier: 4, MaxInterval: time.Second}
	if *soon != want {
		t.Errorf("got %+v, want %+v", *soon, want)
	}
	soon.Reset()
	for _, want := range []time.Duration{30 * time.Millisecond, 120 * time.Millisecond, 480 * time.Millisecond, time.Second, time.Second} {
		if got := soon.NextBackOff(); got != want {
			t.Errorf("got a wait of %s, want %s", got, want)
		}
	}
}

// Those who failed together come back apart: each waits for something between a third and all of its backoff.
func TestAWaitIsAThirdToAllOfItsBackoff(t *testing.T) {
	shortest, longest := time.Hour, time.Duration(0)
	for i := range 1000 {
		s := &scattered{of: fmt.Sprint("agent/", i), BackOff: backoff.NewConstantBackOff(3 * time.Second)}
		first, second := s.NextBackOff(), s.NextBackOff()
		if first == second {
			t.Errorf("agent %d waits for %s twice", i, first)
		}
		shortest, longest = min(shortest, first, second), max(longest, first, second)
	}
	if shortest < time.Second || shortest > 1100*time.Millisecond || longest > 3*time.Second || longest < 2900*time.Millisecond {
		t.Errorf("got waits of %s to %s, want of about 1s to 3s", shortest, longest)
	}
	if got := (&scattered{BackOff: &backoff.StopBackOff{}}).NextBackOff(); got != backoff.Stop {
		t.Errorf("got a wait of %s behind the last try, want none", got)
	}
}

// Two claims never share a name, and so those who failed together wait for different times.
func TestClaimsThatFailTogetherWaitApart(t *testing.T) {
	wait := func(lockedBy string) time.Duration {
		soon := (&attempt{Runner: New(needed()), lease: lease{claim: job.Claim{LockedBy: lockedBy}}}).soon()
		soon.Reset()
		return soon.NextBackOff()
	}
	if one, other := wait("i-1:1"), wait("i-1:2"); one == other {
		t.Errorf("both wait for %s", one)
	}
}
