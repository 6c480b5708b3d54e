package sim

import (
	"fmt"
	"os"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// The same of jobs with steps that are done by jobs of their own.
func TestWhateverGoesWrongEveryParentAndChildEnds(t *testing.T) {
	n := uint64(1000)
	if testing.Short() {
		n /= 5
	}
	s := newSum()
	for seed := uint64(1); seed <= n; seed++ {
		r := run(t, Options{Seed: seed, Children: true, Seen: &s.seen})
		s.add(seed, r)
		if len(r.Violations) > 0 {
			t.Errorf("seed %d: %s\nAgain: go test ./sim -run TestSimulate -children -seed %[1]d -args -trace", seed, r.Violations[0])
		}
		if len(s.failed) > 5 {
			break
		}
	}
	for _, state := range []makegood.ProcessState{makegood.JobProcessed, makegood.JobUndone, makegood.JobCancelled} {
		if s.ends[state] < int(n)/20 {
			t.Errorf("got %d jobs %s in %d seeds, want many", s.ends[state], state, s.seeds)
		}
	}
	t.Logf("%d seeds, %d events, ends %v", s.seeds, s.events, s.ends)
}

// bugsOfChildren are wrong versions of how jobs are begun, closed and undone that do a step of another.
func bugsOfChildren() []proof.Bug {
	const children = "scheduler/children.go"
	return proof.Bugs([][4]string{
		{"no job is put in the place of a child that must not begin", children, "return job.Found{Finding: finding}, s.neverBegin(ctx, m, j, ask)", "return job.Found{Finding: finding}, nil"},
		{"a child is not begun", "scheduler/outbox.go", "\t\tw.births = append(w.births, b)\n", "\t\t_ = b\n"},
		{"a child is not asked to undo itself", children, "\t\treturn s.undoChild(ctx, m, b.Step)", "\t\treturn \"\", nil"},
		{"all attempts of a step have one child", children, "domain.ChildID(j.ID, j.Birth, step, s.Forward.Attempt)", "domain.ChildID(j.ID, j.Birth, step, min(1, s.Forward.Attempt))"},
	})
}

// Some of the wrong versions; make planted tries them all.
func TestPlantedBugsOfChildrenAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugsOfChildren(), All: os.Getenv("PLANTED") != "", Quick: []int{0}, Found: foundAfter,
		Args: []string{"-run", "^TestUntilTheFirstViolation$", ".", "-until-violation", "-children"},
	}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d wrong versions of children are found.", len(bugsOfChildren())))
}
