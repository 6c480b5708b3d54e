package sim

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// The same of jobs with steps that are done for each item of a list. MAPS=5000 plays so many seeds.
func TestWhateverGoesWrongEveryMapEnds(t *testing.T) {
	n := uint64(120)
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
		sums.Left += r.Left
		sums.Edits.born, sums.Edits.taken = sums.Edits.born+r.Edits.born, sums.Edits.taken+r.Edits.taken
		sums.Items = max(sums.Items, r.Items)
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\nAgain: go test ./sim -run TestSimulate -maps -seed %[1]d -args -trace", seed, r.Violations[0])
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
	if sums.Edits.born == 0 || sums.Edits.taken < int(n)/10 {
		t.Errorf("got %d parts born with an edit, and %d edits taken by others, want many", sums.Edits.born, sums.Edits.taken)
	}
	if sums.Redriven < int(n)/10 || sums.Tried < sums.Redriven/2 || sums.Left < int(n)/20 || sums.Items < 100 {
		t.Errorf("got %d redrives, %d items tried again, %d left out, and %d items of the largest map, want more", sums.Redriven, sums.Tried, sums.Left, sums.Items)
	}
	t.Logf("%d seeds, %d events, ends %v, %d redrives, %d items tried again, %d not, %d not named, %d items in the largest map, %d parts born with an edit, %d edits taken",
		s.seeds, s.events, s.ends, sums.Redriven, sums.Tried, sums.Refused, sums.Left, sums.Items, sums.Edits.born, sums.Edits.taken)
}

// bugsOfMaps are wrong versions of the rules of maps. docs/proof.md names three more, which other layers find.
func bugsOfMaps() []proof.Bug {
	const facts, moves = "machine/facts_maps.go", "machine/moves_maps.go"
	return proof.Bugs([][4]string{
		{"one item too many is under way", facts, "underWay(&t.job) >= stepsAtOnce(t.w, &t.job)", "underWay(&t.job) > stepsAtOnce(t.w, &t.job)"},
		{"one item too many may fail", facts, "may.Items > 0 && failed > may.Items", "may.Items > 0 && failed > may.Items+1"},
		{"a share is judged only by failures", moves, "\twhy := t.intolerable(0)\n", "\twhy := \"\"\n"},
		{"items are redriven while what follows is under way", moves, "follower != \"\" {", "follower == \"none\" {"},
		{"every part has the items of the first", "scheduler/maps.go", "input.key(input.From))\n\tif errors.Is", "input.key(0))\n\tif errors.Is"},
		{"a part does the items that are not named", "scheduler/maps.go", "of.Forward.Repeats, of.Forward.Redriven,", "of.Forward.Repeats, \"\","},
		{"a part is born without the edit of its map", "scheduler/children.go", "child: true, edit: editFor(m, j, b.Step),", "child: true,"},
		{"a part has another input", "machine/facts_redefining.go", "if t.w.Part != nil {", "if t.w.Part != nil && t.w.Part.Items < 0 {"},
	})
}

// Some of the wrong versions; make planted tries them all.
func TestPlantedBugsOfMapsAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugsOfMaps(), All: os.Getenv("PLANTED") != "", Quick: []int{0}, Found: foundAfter,
		Args: []string{"-run", "^TestUntilTheFirstViolation$", ".", "-until-violation", "-maps"},
	}.Run(t)
}

// largeSeed has a world of functions in which processes die, messages are lost and doubled, and agents fail.
const largeSeed = 550

// One large map under faults; MAPITEMS says of how many items.
func TestALargeMapEnds(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("MAPITEMS"))
	if err != nil {
		t.Skip("MAPITEMS=10000 plays a map of so many items")
	}
	began := time.Now()
	o := Options{Seed: cmp.Or(*seed, largeSeed), Maps: true, jobs: 1, steps: 1, items: n}
	o.off = map[Kind]bool{ClockSkewed: true, ClockJumped: true} // An hour that is lost so is one for a thousand items.
	if *trace {
		o.Trace = os.Stdout
	}
	r := run(t, o)
	for _, v := range r.Violations {
		t.Error(v)
	}
	crashed := r.Faults[CrashBefore] + r.Faults[CrashAfter]
	t.Logf("%d items, %s: %d events, %d deaths, %d messages lost and %d doubled, %d redrives with %d items tried again and %d not, ends %v, faults %v",
		r.Items, time.Since(began).Round(time.Second), r.Events, crashed, r.Faults[Lost], r.Faults[Doubled], r.Redriven, r.Tried, r.Refused, r.Ends, r.Faults)
	if r.Items != n || crashed == 0 || r.Faults[Lost] == 0 || r.Faults[Doubled] == 0 || r.Redriven == 0 || r.Tried == 0 {
		t.Errorf("%d of %d items were done, want all, with deaths, lost and doubled messages, and a redrive", r.Items, n)
	}
}
