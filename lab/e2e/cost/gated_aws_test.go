//go:build aws

package main

import "testing"

// A step of an agent with a limit takes a permit and gives it back: two write units. One that has to wait writes its ticket
// and takes it off, and is saved once more: so it takes four more in all, or less, since the permit goes from hand to hand.
func TestAGatedStepCostsAtMostFourUnitsMore(t *testing.T) {
	plain := measured(t, load{name: "5 steps, unbatched", steps: 5, output: inlineOutput}).perStep()
	for name, c := range map[string]struct {
		limit int
		most  float64
	}{
		"a permit is free": {100, 2.3},
		"nine of ten wait": {1, 4},
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
