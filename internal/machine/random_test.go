package machine_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
	"pgregory.net/rapid"
)

// A replay of a failure: go test ./internal/machine -run TestRandomEvents -rapid.seed=SEED (the
// failure prints the seed and shrinks by itself).

// Whatever happens in whatever order, with claims made between load and save: no illegal transition
// (Apply panics), nothing is applied twice, fenced events change nothing, the key is never later than
// something due, claims and withdrawals never cross, every possible effect is undone in an undone job,
// and every job ends.
func TestRandomEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.noteShared()
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			x.now = x.now.Add(time.Duration(rapid.IntRange(0, 15000).Draw(t, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "claim first") {
				x.claim()
			}
			e, ok := x.drawEvent()
			if !ok {
				continue
			}
			loaded := x.job.Clone()
			if rapid.IntRange(0, 2).Draw(t, "claim between") == 0 {
				x.claim()
			}
			if rapid.IntRange(0, 2).Draw(t, "beat between") == 0 {
				// The agent beat in time, before the Supervisor's clock came to the old CompleteBy.
				now := x.now
				x.now = now.Add(-time.Duration(rapid.IntRange(0, 15000).Draw(t, "earlier")) * time.Millisecond)
				x.beat()
				x.now = now
			}
			x.deliver(loaded, e)
			x.events = append(x.events, e)
		}
		x.drain()
	})
}

// A reply that names another attempt, or another claim than the one held, changes nothing.
func TestAFencedReplyChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.claim()
		for name, c := range x.job.Claims.Slots {
			for _, e := range []makegood.Event{
				makegood.StepSucceeded{Step: name, Attempt: c.Attempt, LockedBy: c.LockedBy + "x"},
				makegood.StepSucceeded{Step: name, Attempt: c.Attempt + 1, LockedBy: c.LockedBy},
				makegood.StepSucceeded{Step: name, Attempt: c.Attempt, LockedBy: ""},
				makegood.StepFailed{Step: name, Attempt: c.Attempt, LockedBy: "zombie"},
			} {
				if kind := x.apply(x.job.Clone(), e); kind != machine.Stale {
					t.Fatalf("%#v was %s, want stale", e, kind)
				}
			}
		}
	})
}
