package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// changesInTest is how many seeds every test run plays in which somebody hears of every change; CHANGES=6000 says another number.
const changesInTest = 300

// Whatever goes wrong, whoever hears of every change has them all, in order, and none that was not made.
func TestWhoHearsOfEveryChangeHasThemAll(t *testing.T) {
	seeds := uint64(changesInTest)
	if n, err := strconv.ParseUint(os.Getenv("CHANGES"), 10, 64); err == nil {
		seeds = n
	}
	heard, events := 0, 0
	for seed := range seeds {
		r := run(t, hearingOf(seed))
		for _, violation := range r.Violations {
			t.Errorf("seed %d: %s", seed, violation)
		}
		heard, events = heard+r.Heard, events+r.Events
	}
	for seed := range seeds / 5 {
		if r := run(t, Options{Seed: seed, Changes: true, Limits: true}); len(r.Violations) > 0 {
			t.Errorf("seed %d, with limits: %q", seed, r.Violations)
		}
	}
	// The referee took a chain that began and was over in one save for two steps out of order.
	if r := run(t, Options{Seed: 826, Changes: true}); len(r.Violations) > 0 {
		t.Errorf("seed 826: %q", r.Violations)
	}
	t.Logf("%d seeds, %d events: %d times somebody heard of a change", seeds, events, heard)
	if heard < 20*int(seeds) {
		t.Errorf("of %d changes was heard in %d seeds, want many", heard, seeds)
	}
}

// hearingOf is a run in which somebody hears of every change, and in some, steps wait for those outside.
func hearingOf(seed uint64) Options { return Options{Seed: seed, Changes: true, Waits: seed%3 == 0} }

// bugsOfChanges are wrong versions of how changes are noted, kept and published. None of them loses or doubles any work.
func bugsOfChanges() []proof.Bug {
	const (
		movesChanges = "machine/moves_changes.go"
		publishing   = "scheduler/changes.go"
		keeping      = "job/change.go"
	)
	return proof.Bugs([][4]string{
		{"changes are published before the save", "scheduler/move.go", "\tif applied || s.awaits(change.Job, events) {\n\t\tif err := s.save", "\tif applied {\n\t\tif s.config.Changes != nil {\n\t\t\ts.publishLast(ctx, change.Job)\n\t\t}\n\t\tif err := s.save"},
		{"a save drops what was pending", movesChanges, "\tc.Forget(t.facts.Published)\n", "\tc.Forget(c.Seq)\n"},
		{"of a save's events one leaves its changes", movesChanges, "\tc.Forget(t.facts.Published)\n", "\tc.Forget(t.facts.Published)\n\tif c.Rev == before.Rev+1 {\n\t\tc.Pending, c.Seq = nil, c.First()-1\n\t}\n"},
		{"what could not be published counts as published", publishing, "\t\tif errs[i] == nil {\n\t\t\ts.ledger.note", "\t\tif errs[i] != nil || err == nil {\n\t\t\ts.ledger.note"},
		{"of what could not be published the last is published again", publishing, "changes.Run{Changes: w.moved.job.After(s.ledger.upTo(w.moved.job)), Confirm", "changes.Run{Changes: w.moved.job.After(w.moved.job.Changes.Seq - 1), Confirm"},
		{"what is taken in counts as published", publishing, "\t\tif errs[i] == nil {\n", "\t\tif errs[i] == nil || errors.Is(errs[i], changes.ErrLater) {\n"},
		{"a relay says what it has not handed over", "changes/relay.go", "\t\tif err == nil {\n", "\t\tif err == nil || run.UpTo() > 0 {\n"},
		{"the end of a job is confirmed before it is published", publishing, "\tcase err != nil:\n\t\ts.stats", "\tcase err != nil && c.Confirm:\n\t\treturn job.Published{Seq: c.Seq}\n\tcase err != nil:\n\t\ts.stats"},
		{"whatever is pending is confirmed with the run before it", "machine/event_told.go", "t.job.Changes.Forget(e.Seq)", "t.job.Changes.Forget(t.job.Changes.Seq)"},
		{"a job that has ended keeps no key for what was not published", "machine/facts_deadlines.go", "\tcase t.job.ProcessState.Finished():\n\t\t// Where", "\tcase t.job.ProcessState.Finished() && t.job.Rev < 0:\n\t\t// Where"},
		{"a change of an undo is told of its step", keeping, "\tif undo {\n\t\treturn ChangePlace(2*step + 2)", "\tif undo && step < 0 {\n\t\treturn ChangePlace(2*step + 2)"},
		{"a pause is no change", movesChanges, " || before.Paused() != after.Paused() {", " {"},
		{"an attempt after another is no change", movesChanges, "one.From == one.To && from.Attempt == to.Attempt", "one.From == one.To"},
		{"what follows begins before what it follows has ended", movesChanges, "slices.Concat(ended, begun)", "slices.Concat(begun, ended)"},
		{"a run begins with what comes behind the first that is pending", keeping, "\tn := j.Changes.First() - 1\n\tfor _, c := range j.Changes.Pending {\n\t\tif n += c.numbers(); n > number {", "\tn := j.Changes.First() - 1\n\tfor _, c := range j.Changes.Pending {\n\t\tif n += c.numbers(); n > number+1 {"},
		{"numbers begin again when all was published", keeping, "\tif len(c.Pending) == 0 {\n\t\tc.Pending = nil\n", "\tif len(c.Pending) == 0 {\n\t\tc.Pending, c.Seq = nil, 0\n"},
	})
}

// One of the wrong versions; make planted tries them all.
func TestPlantedBugsOfChangesAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugsOfChanges(), All: os.Getenv("PLANTED") != "", Quick: []int{1}, Found: foundAfter,
		Args: []string{"-run", "^TestUntilTheFirstViolation$", ".", "-until-violation", "-changes"},
	}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d wrong versions of changes are found; ", len(bugsOfChanges())))
}
