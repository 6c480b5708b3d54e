package workflowfile

import (
	"strings"
	"testing"
)

// The work of these agents is in the text of their with, and an item gets its with as a value.
func TestAgentsThatReadTheirWithAsTextMakeNoItems(t *testing.T) {
	for agent, with := range map[string]string{
		"http": `{url: "https://a.example"}`, "wait": "{for: 1s}", "approval": `{choices: ["yes"], question: "${ .item }?"}`,
	} {
		_, err := Parse("a.yaml", []byte("name: a\nsteps:\n  - {name: a, map: {over: \"${ .input }\"}, agent: "+agent+", with: "+with+", undo: none}\n"))
		if err == nil || !strings.Contains(err.Error(), "a.yaml:3: the agent "+agent+" makes no items of a map") {
			t.Errorf("%s: got %v", agent, err)
		}
	}
}
