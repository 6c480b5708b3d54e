//go:build aws

package main

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// A step of an agent with a limit takes a permit and gives it back: two write units. One that has to wait writes its ticket
// and takes it off, and is saved once more: so it takes four more in all, or less, since the permit goes from hand to hand.
// A token is taken and not given back: one unit. With a key it is the same, at the gate of each value; here each job has a
// value of its own, or all have none. By a limit of one a step waits for the one before it in its job: that gives its
// permit back when the save is made that opens the next.
func TestAGatedStepCostsAtMostFourUnitsMore(t *testing.T) {
	plain := measured(t, load{name: "5 steps, unbatched", steps: 5, output: inlineOutput}).perStep()
	for name, c := range map[string]struct {
		limit job.Limit
		most  float64
	}{
		"a permit is free":             {job.Limit{Most: 100}, 2.3},
		"a token is free":              {job.Limit{Rate: 1000, Per: time.Second, Burst: 100}, 1.3},
		"both are free":                {job.Limit{Most: 100, Rate: 1000, Per: time.Second, Burst: 100}, 3.3},
		"some wait for tokens":         {job.Limit{Rate: 100, Per: time.Second, Burst: 1}, 4},
		"nine of ten wait":             {job.Limit{Most: 1}, 4},
		"a permit of each key is free": {job.Limit{Most: 2, Key: "${ .input.text }"}, 2.3},
		"one step of each key at once": {job.Limit{Most: 1, Key: "${ .input.text }"}, 4},
		"nine of ten of a key wait":    {job.Limit{Most: 1, Key: "${ .input.none }"}, 4},
	} {
		f := measured(t, load{name: "5 steps, " + name, steps: 5, output: inlineOutput, limit: c.limit})
		got := f.perStep()
		t.Logf("%s: %.2f write units, %.2f read units, %.2f requests and %.2f invocations a step more than %+v", name,
			got.WriteUnits-plain.WriteUnits, got.ReadUnits-plain.ReadUnits, got.SQSRequests-plain.SQSRequests, got.Invocations-plain.Invocations, plain)
		if more := got.WriteUnits - plain.WriteUnits; more > c.most || more < 1 {
			t.Errorf("%s: a step takes %.2f write units more, want at most %v", name, more, c.most)
		}
	}
}
