package sim

import (
	"os"
	"strconv"
	"testing"

	"github.com/makegood-dev/makegood"
)

// The same of jobs with steps that are done for each item of a list. MAPS=5000 plays so many seeds.
func TestWhateverGoesWrongEveryMapEnds(t *testing.T) {
	n := uint64(300)
	if testing.Short() {
		n /= 5
	}
	if more, err := strconv.ParseUint(os.Getenv("MAPS"), 10, 64); err == nil {
		n = more
	}
	s := newSum()
	var sums Result
	for seed := uint64(1); seed <= n; seed++ {
		r := run(t, Options{Seed: seed, Maps: true, Seen: &s.seen})
		s.add(seed, r)
		sums.Redriven, sums.Tried, sums.Refused = sums.Redriven+r.Redriven, sums.Tried+r.Tried, sums.Refused+r.Refused
		sums.Items = max(sums.Items, r.Items)
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\nAgain: go test ./sim -run TestSimulate -maps -seed %[1]d -trace", seed, r.Violations[0])
		}
		if len(s.failed) > 40 {
			break
		}
	}
	for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
		if s.ends[state] < int(n)/20 {
			t.Errorf("got %d jobs %s in %d seeds, want many", s.ends[state], state, s.seeds)
		}
	}
	if sums.Redriven < int(n)/10 || sums.Tried < sums.Redriven/2 || sums.Items < 100 {
		t.Errorf("got %d redrives, %d items tried again, and %d items of the largest map, want more", sums.Redriven, sums.Tried, sums.Items)
	}
	t.Logf("%d seeds, %d events, ends %v, %d redrives, %d items tried again, %d not, %d items in the largest map",
		s.seeds, s.events, s.ends, sums.Redriven, sums.Tried, sums.Refused, sums.Items)
}
