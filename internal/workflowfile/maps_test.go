package workflowfile

import (
	"fmt"
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

// Of each map that is accepted, parts of any size can be made, and its file is written so that it makes the same again:
// a part that cannot be compiled would be begun for ever.
func TestPartsOfAMapThatIsAcceptedCanBeMade(t *testing.T) {
	for _, fields := range []string{
		"agent: shop", "agent: shop, undo: none", "agent: shop, undo: {action: put_back}", "agent: shop, undo: {action: put_back, agent: back, timeout: 5s, retry: {attempts: 3}}",
		`agent: shop, with: {sku: "${ .item.sku }", n: "${ .index }"}, retry: {for: 1h}`, "agent: shop, inline: true, timeout: 2s",
		"agent: shop, inline: true, exclusive: false, timeout: 2s", "agent: shop, heartbeat: 10s, timeout: 1h, startBy: 5m", "agent: workflow, action: line",
		"agent: workflow, action: line, undo: none", `agent: workflow, action: line, with: "${ .item }"`, "agent: shop, onError: [{kind: gone, do: skip}]",
		`agent: shop, when: "${ .input.all }"`, "agent: shop, action: pick",
	} {
		for _, whole := range []string{"", "onFailure: undo\n", "onFailure: restart 3\n", "timeout: 1h\nonFailure: undo\n"} {
			file := "name: a\n" + whole + "steps:\n  - {name: two, agent: shop, undo: {action: put_back}}\n  - {name: one, map: {over: \"${ .input.l }\", concurrency: 1000, tolerate: {share: 0.1, after: 9}}, " + fields + "}\n"
			c, err := Parse("a.yaml", []byte(file))
			if err != nil {
				t.Errorf("%s%v", file, err)
				continue
			}
			for _, n := range []int{0, 100, 101, 100_000} {
				reference := fmt.Sprintf("%s~one~%d", c.Hash, n)
				part, err := LoadBy(reference, func(string) ([]byte, error) { return c.Definition, nil }, Load)
				if err != nil || part.Hash != reference || part.Workflow.Part.Items != n {
					t.Errorf("%s%d items: %v", file, n, err)
				}
			}
			source, err := c.Source()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Parse("again.yaml", source); err != nil || again.Hash != c.Hash {
				t.Errorf("%sthe source is another definition: %v\n%s", file, err, source)
			}
		}
	}
}
