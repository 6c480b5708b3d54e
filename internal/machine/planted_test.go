package machine_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/makegood-dev/makegood/internal/testkit/proof"
)

// bugs are wrong versions of what lies where two features meet: a step that is redefined, asked with another input,
// repeated, not exclusive, outside, or settled, and its undo.
func bugs() []proof.Bug {
	const (
		factsChildren   = "machine/facts_children.go"
		factsCommands   = "machine/facts_commands.go"
		factsMaps       = "machine/facts_maps.go"
		factsRedefining = "machine/facts_redefining.go"
		movesDirections = "machine/moves_directions.go"
	)
	return proof.Bugs([][4]string{
		{"a redefinition ignores that an outcome is unknown", factsRedefining, "\tif !s.Forward.Unknown || s.Forward.State == job.Done", "\tif s.Forward.Unknown || s.Forward.State == job.Done"},
		{"a redefinition removes a step that may have had an effect", factsRedefining, "\tcase s.Forward.Unknown:\n\t\treturn \"which may have had an effect\"\n", ""},
		{"an undo is made of the input that the job has now", "job/job.go", "undo && s.Forward.Former > 0 {", "undo && s.Forward.Former > 99 {"},
		{"a step of unknown outcome is asked again with another input", factsRedefining, "if s.Forward.Unknown && t.asksWithInput(i, reads) {", "if s.Forward.Unknown && !t.asksWithInput(i, reads) {"},
		{"the input that a step saw is kept of those that are done alone", factsRedefining, "(f.State == job.Done || f.Unknown)", "f.State == job.Done"},
		{"a restart takes an attempt outside for dead", "machine/event_interrupted.go", "found.Claim.Outside() {\n", "found.Claim.Outside() && !t.shared(at) {\n"},
		{"an undo is told of one repetition", factsCommands, "Repeats: j.Steps[i].Forward.Repeats,", ""},
		{"a fence undoes the first effect alone", "fenced/fenced.go", "keys: task.Undo.Keys()", "keys: []string{task.Undo.ForwardKey}"},
		{"a repetition has the key of the first", factsCommands, "Key: forward + repetition(*a),", "Key: forward,"},
		{"a token of before completes what took its place", "machine/moves_redefining.go", "\ta.Generation = attempt\n", "\t_ = attempt\n"},
		{"what was settled as not done may be done late", "machine/event_settled.go", "a.Unknown, a.Silent, a.Former = false, nil, 0", "a.Unknown, a.Former = false, 0"},
		{"an item between two attempts is not under way", factsChildren, "case job.Dispatched, job.Backoff, job.Waiting:", "case job.Dispatched, job.Waiting:"},
		{"so many items begin as there are", movesDirections, "&& !t.early() && !t.full() {", "&& !t.early() {"},
		{"so many items are undone at once as there are", movesDirections, "case !t.job.Paused() && !t.full():", "case !t.job.Paused():"},
		{"a share counts with the items that fail alone", "machine/moves_maps.go", "\twhy := t.intolerable(0)\n", "\twhy := \"\"\n"},
		{"an item that a person has settled is redriven", factsMaps, " && a.Error != nil && t.job.Settled(*a) == nil", " && a.Error != nil"},
		{"what a tolerated item may have done is not undone", "machine/moves_attempts.go", "\ta.State, a.Silent, a.Cause = job.Skipped, nil, \"\"\n\treturn true", "\ta.State, a.Silent, a.Cause, a.Unknown = job.Skipped, nil, \"\", false\n\treturn true"},
		{"a redrive leaves the second item as it was", "machine/moves_maps.go", "\t\titems += n\n", "\t\tif items += n; items > 1 {\n\t\t\tcontinue\n\t\t}\n"},
		{"a redrive does the items that it does not name", factsMaps, "\tcase e.Indexes == \"\":\n", "\tcase true:\n"},
		{"a redrive of some items of a batch does the others", "machine/moves_maps.go", "\ta.Refused = 1<<size - 1\n", "\ta.Refused = 0\n"},
		{"fresh attempts forget which items of a batch are done", "machine/moves_activity.go", "a.RepeatSince, a.Refused = 0, time.Time{}, 0, time.Time{}, 0", "a.RepeatSince, a.Refused, a.Answered = 0, time.Time{}, 0, time.Time{}, 0, 0"},
		{"a batch that fails is one failed item", factsMaps, "\t\treturn t.itemsIn(i) - a.Answered\n", "\t\treturn 1\n"},
		{"an older edit of a map takes the place of a later one", "machine/moves_editing.go", "if e.N <= t.job.EditOf(e.Step).N {", "if e.N == t.job.EditOf(e.Step).N {"},
		{"an edit of the tolerance comes to nothing", factsMaps, "may := t.job.EditOf(\"\").Tolerate; may != nil {", "may := t.job.EditOf(\"none\").Tolerate; may != nil && false {"},
		{"an edit of the concurrency comes to nothing", factsChildren, "n := j.EditOf(\"\").Concurrency; n > 0 {", "n := j.EditOf(\"\").Concurrency; n < 0 {"},
		{"what cannot be undone is not named", "machine/facts_standing.go", "s.Undo.State == job.Irreversible || s.Undo.State == job.Skipped &&", "s.Undo.State == job.Skipped &&"},
	})
}

var foundAfter = regexp.MustCompile(`(?:failed|panic) after (\d+) tests: ([^\n]+)`)

// That each has its place; make planted tries them all.
func TestPlantedBugsAreFound(t *testing.T) {
	proof.Hunt{
		Bugs: bugs(), All: os.Getenv("PLANTED") != "", Found: foundAfter,
		Args: []string{"-run", "^TestRandomEvents$", ".", "-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile", "-rapid.checks=40000"},
	}.Run(t)
	proof.Says(t, fmt.Sprintf("%d of %[1]d wrong versions of the core are found", len(bugs())))
}
