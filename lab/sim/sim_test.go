package sim

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/testkit/layers"
)

// inTest is how many seeds every test run plays; make sim plays as many as it is told to.
const inTest = 2500

// run plays a seed in a bubble.
func run(t *testing.T, o Options) (r Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = Run(o) })
	return r
}

// sum is what many seeds came to.
type sum struct {
	mu         sync.Mutex
	seeds      int
	events     int
	hash       uint64
	faults     map[Kind]int
	ends       map[makegood.ProcessState]int
	violations int
	failed     []uint64
	seen       layers.Seen
}

func newSum() *sum { return &sum{faults: map[Kind]int{}, ends: map[makegood.ProcessState]int{}} }

func (s *sum) add(seed uint64, r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.events += r.Events
	// Seeds come in any order, and their sum does not depend on it.
	s.hash += (r.Hash ^ seed) * 0x9e3779b97f4a7c15
	for kind, n := range r.Faults {
		s.faults[kind] += n
	}
	for state, n := range r.Ends {
		s.ends[state] += n
	}
	s.violations += len(r.Violations)
	if len(r.Violations) > 0 {
		s.failed = append(s.failed, seed)
	}
}

// play plays the seeds from first on, as many at a time as there are workers.
func play(t *testing.T, first, seeds uint64, workers int, seen func(*sum)) *sum {
	t.Helper()
	s := newSum()
	var next struct {
		sync.Mutex
		seed uint64
	}
	next.seed = first
	take := func() (uint64, bool) {
		next.Lock()
		defer next.Unlock()
		next.seed++
		return next.seed - 1, next.seed-1 < first+seeds
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for seed, more := take(); more; seed, more = take() {
				s.add(seed, run(t, Options{Seed: seed, Seen: &s.seen}))
				seen(s)
			}
		})
	}
	wg.Wait()
	return s
}

// report shows the first seeds that failed with these options, how to play them again, and how little they need.
func report(t *testing.T, s *sum, o Options) {
	t.Helper()
	slices.Sort(s.failed)
	for _, seed := range s.failed[:min(3, len(s.failed))] {
		o.Seed, o.Trace, o.Seen = seed, nil, nil
		r := run(t, o)
		t.Errorf("seed %d: %s\nAgain: make sim SEED=%d TRACE=1", seed, r.Violations[0], seed)
		o, small := shrink(o, func(o Options) Result { return run(t, o) })
		t.Logf("With %d jobs and %d steps at most (0: all), these faults are enough:\n%q\nAs a story:\n%s", o.jobs, o.steps, small.struck, small.story)
	}
	if n := len(s.failed); n > 3 {
		t.Errorf("%d more seeds failed: %v", n-3, s.failed[3:min(n, 20)])
	}
}

// Whatever goes wrong, every job ends, and what it says of its end is what the services know. The seeds
// together saw every fault and every end, so that none of this is for want of trying.
func TestWhateverGoesWrongEveryJobEnds(t *testing.T) {
	n := uint64(inTest)
	if testing.Short() {
		n = inTest / 5 // One goroutine runs at a time: the detector finds little here, and takes its time.
	}
	s := play(t, 1, n, 2, func(*sum) {})
	report(t, s, Options{})
	for _, kind := range Kinds() {
		if s.faults[kind] == 0 {
			t.Errorf("no fault %s in %d seeds", kind, s.seeds)
		}
	}
	for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
		if s.ends[state] < 50 {
			t.Errorf("got %d jobs %s in %d seeds, want many", s.ends[state], state, s.seeds)
		}
	}
	if !testing.Short() {
		for seed := uint64(1); seed <= 50; seed++ {
			run(t, Options{Seed: seed, Children: true, Maps: seed%2 == 0, Seen: &s.seen})
			run(t, Options{Seed: seed, Limits: true, Seen: &s.seen})
		}
		s.seen.Column(t, "simulation")
	}
	t.Logf("%d seeds, %d events, ends %v, faults %v", s.seeds, s.events, s.ends, slices.Sorted(maps.Keys(s.faults)))
}

func TestASeedIsOneTraceHoweverOftenItIsPlayed(t *testing.T) {
	times := 100
	if testing.Short() {
		times = 10
	}
	for _, o := range []Options{
		{Seed: 11}, {Seed: 73}, {Seed: 351}, {Seed: 1026}, {Seed: 39, Maps: true}, {Seed: 50, Maps: true}, limitsOf(133),
	} {
		want := run(t, o)
		for n := range times {
			if got := run(t, o); got.Hash != want.Hash || got.Events != want.Events {
				t.Fatalf("seed %d, run %d: got hash %x over %d events, want %x over %d", o.Seed, n, got.Hash, got.Events, want.Hash, want.Events)
			}
		}
	}
}

// A fault that is left out leaves all others as they were: shrinking rests on it.
func TestWhatIsLeftOutChangesNothingElse(t *testing.T) {
	whole := run(t, Options{Seed: 3})
	same := run(t, Options{Seed: 3, without: map[string]bool{"no such fault": true}})
	if same.Hash != whole.Hash {
		t.Errorf("got hash %x, want %x", same.Hash, whole.Hash)
	}
	off := map[Kind]bool{}
	for _, kind := range Kinds() {
		off[kind] = true
	}
	calm := run(t, Options{Seed: 3, off: off})
	if len(calm.struck) != 0 {
		t.Errorf("got the faults %v, want none", calm.struck)
	}
}
