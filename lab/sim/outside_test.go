package sim

import (
	"os"
	"strconv"
	"testing"
)

// waitsInTest is how many seeds every test run plays with steps that wait; WAITS=6000 says another number.
const waitsInTest = 300

// What holds of steps whose agents answer holds of those that wait, and are completed from outside.
func TestStepsThatWait(t *testing.T) {
	seeds := uint64(waitsInTest)
	if n, err := strconv.ParseUint(os.Getenv("WAITS"), 10, 64); err == nil {
		seeds = n
	}
	waits, words, approvals := 0, 0, 0
	for seed := range seeds {
		r := run(t, Options{Seed: seed, Waits: true})
		for _, violation := range r.Violations {
			t.Errorf("seed %d: %s", seed, violation)
		}
		waits, words, approvals = waits+r.Waits, words+r.Words, approvals+r.Approvals
	}
	t.Logf("%d seeds: %d attempts handed their step to those outside, who gave %d answers; people gave %d by address to approvals", seeds, waits, words, approvals)
	if waits == 0 || words == 0 || approvals == 0 {
		t.Errorf("%d steps waited, %d answers were given, %d to approvals", waits, words, approvals)
	}
}
