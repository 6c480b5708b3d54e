package workflowfile

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// undoing is a workflow whose step b, after a and the skippable s, is undone with what with says.
func undoing(with string) string {
	return "name: x\nsteps:\n" +
		"  - {name: a, agent: y, undo: none}\n" +
		"  - {name: s, agent: y, when: '${ .input.s }', undo: none}\n" +
		"  - name: b\n    agent: y\n    undo:\n      action: c\n      with: " + with + "\n"
}

// Where nobody knows whether b was done its undo sees a null output, and so it is tried with one before there is a job.
func TestAnUndoThatCannotDoWithoutAnOutputIsRefused(t *testing.T) {
	const refused = "f:9: the undo of step \"b\" must work with a null output"
	for with, wrong := range map[string]bool{
		`{id: "${ .steps.b.output.id }"}`:                           false,
		`{id: "${ .steps.b.output.id | ltrimstr(\"ch_\") }"}`:       true,
		`{id: "${ .steps.b.output.id | tonumber }"}`:                true,
		`{id: "refund ${ .steps.b.output.items[] }"}`:               true,
		`{ids: ["${ .steps.b.output.items | map(.id) }"]}`:          true,
		`{ids: ["${ .steps.b.output.items // [] | map(.id) }"]}`:    false,
		`{n: "${ .steps.s.output.n | tonumber }"}`:                  true,  // s may have been skipped
		`{n: "${ .steps.a.output.n | tonumber }"}`:                  false, // a was done, or b would not have begun
		`{n: "${ .input.n - .steps.b.output.n }"}`:                  false, // it depends on the input: no one can say
		`{n: "${ if .job.id == \"x\" then 0 else 1 | error end }"}`: false,
		`{n: "${ error(\"never\") }"}`:                              true,
	} {
		_, err := Parse("f", []byte(undoing(with)), WithAgents(anAgent("y")))
		if got := strings.HasPrefix(text(err), refused); got != wrong || !wrong && err != nil {
			t.Errorf("%s: got %v, want refused: %t", with, err, wrong)
		}
	}
}

func TestAnHTTPUndoWhoseRequestNeedsAnOutputIsRefused(t *testing.T) {
	for url, wrong := range map[string]bool{
		"${ .steps.b.output.url }":                   true,
		"https://x.example/${ .steps.b.output.id }":  false,
		"https://x.example/${ .input.id }":           false,
		"${ .input.base }/${ .steps.b.output.id }":   false,
		"${ .steps.b.output.url // \"https://x.y\"}": false,
	} {
		_, err := FromWorkflow(makegood.Workflow{Name: "x", Steps: []makegood.Step{{
			Name: "b", Agent: "http", With: []byte(`{"url":"https://x.example"}`),
			Undo: &makegood.Undo{With: []byte(`{"url":` + quoted(url) + `}`)},
		}}})
		if got := strings.Contains(text(err), "a url must be a string"); got != wrong || !wrong && err != nil {
			t.Errorf("%s: got %v, want refused: %t", url, err, wrong)
		}
	}
}

// What a stack has taken once, jobs run by: a later release reads it all the same.
func TestADefinitionThatIsStoredIsReadThoughItsUndoWouldBeRefused(t *testing.T) {
	c, err := Parse("f", []byte(undoing(`{id: "${ .steps.b.output.id }"}`)))
	if err != nil {
		t.Fatal(err)
	}
	stored := strings.Replace(string(c.Definition), ".steps.b.output.id", ".steps.b.output.id | tonumber", 1)
	if _, err := Load([]byte(stored)); err != nil {
		t.Errorf("got %v, want it read", err)
	}
}
