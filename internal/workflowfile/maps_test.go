package workflowfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

// The work of these agents is in the text of their with, and an item gets its with as a value.
func TestAgentsThatReadTheirWithAsTextMakeNoItems(t *testing.T) {
	for agent, with := range map[string]string{
		"http": `{url: "https://a.example"}`, "wait": "{for: 1s}", "approval": `{choices: ["yes"], question: "${ .item }?"}`,
	} {
		_, err := Parse("a.yaml", []byte("name: a\nsteps:\n  - {name: a, map: {over: \"${ .input }\"}, agent: "+agent+", with: "+with+", undo: none}\n"))
		if err == nil || !strings.Contains(err.Error(), "a.yaml:3: the agent "+agent+" does no items of a map") {
			t.Errorf("%s: got %v", agent, err)
		}
	}
}

// Of each map that is accepted, parts of any size can be made, with a long item a hundred times and a step of any name.
// The file of the map is written so that it makes the same again. A part that cannot be compiled would be begun for ever.
func TestPartsOfAMapThatIsAcceptedCanBeMade(t *testing.T) {
	long := "${ .output == \\\"" + strings.Repeat("u", 5000) + "\\\" }"
	for _, step := range []string{
		"one, agent: shop", "one, agent: shop, undo: none", "one, agent: shop, undo: {action: put_back}",
		"one, agent: shop, undo: {action: put_back, agent: back, timeout: 5s, retry: {attempts: 3}}",
		`one, agent: shop, with: {sku: "${ .item.sku }", n: "${ .index }"}, retry: {for: 1h}`, "part_1, agent: shop, inline: true, timeout: 2s, undo: {action: u}",
		"one, agent: shop, inline: true, exclusive: false, timeout: 2s", "one, agent: shop, heartbeat: 10s, timeout: 1h, startBy: 5m", "none, agent: workflow, action: line",
		"one, agent: workflow, action: line, undo: none", `one, agent: workflow, action: line, with: "${ .item }"`, "one, agent: shop, onError: [{kind: gone, do: skip}]",
		`one, agent: shop, when: "${ .input.all }"`, "one, agent: shop, action: pick", strings.Repeat("a", 63) + ", agent: shop, exclusive: false, undo: none",
		"item_0, agent: shop, heartbeat: 10s, waiting: {ask: [me]}, undo: {action: u, agent: y}", `one, agent: shop, repeat: {until: "` + long + `"}, undo: none`,
	} {
		for _, whole := range []string{"", "onFailure: undo\n", "onFailure: restart 3\n", "timeout: 1h\nonFailure: undo\n"} {
			file := "name: a\n" + whole + "steps:\n  - {name: two, agent: shop, undo: {action: put_back}}\n" +
				"  - {map: {over: \"${ .input.l }\", concurrency: 1000, tolerate: {share: 0.001, after: 9}}, name: " + step + "}\n"
			c, err := Parse("a.yaml", []byte(file))
			if err != nil {
				t.Errorf("%s%v", file, err)
				continue
			}
			for _, n := range []int{0, 1, 100, 101, 10_001, makegood.MaxItems} {
				reference := fmt.Sprintf("%s~%s~%d", c.Hash, c.Workflow.Steps[1].Name, n)
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

// The fields of a map that follow from the others are filled in, and not for people: a step that says it has five
// items, and gets a list, would look for them in the input of its job.
func TestAMapBuiltInGoHasNoFieldsThatFollow(t *testing.T) {
	whole, err := Parse("f", []byte(`{name: w, steps: [{name: a, map: {over: "${ .input }"}, agent: x, undo: {action: u}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := FromWorkflow(whole.Workflow); err != nil || again.Hash != whole.Hash {
		t.Errorf("completed again: %v, want the same definition", err)
	}
	for want, change := range map[string]func(w *makegood.Workflow, s *makegood.Step){
		"steps[0].map.count: count follows":  func(_ *makegood.Workflow, s *makegood.Step) { s.Map.Count = 5 },
		"steps[0].map.count: count follows ": func(_ *makegood.Workflow, s *makegood.Step) { s.Map.Count = -5 },
		"steps[0].map.item: item follows":    func(_ *makegood.Workflow, s *makegood.Step) { s.Agent = "x" },
		"steps[0].map.item: item follows ":   func(_ *makegood.Workflow, s *makegood.Step) { s.Map.Item.Map = &makegood.Map{Over: "${ .input }"} },
		"steps[0].map.item: item follows f":  func(_ *makegood.Workflow, s *makegood.Step) { s.Map.Item.When = "${ true }" },
		"part: part follows from a map: leave": func(w *makegood.Workflow, _ *makegood.Step) {
			w.Part = &makegood.Part{Of: "a", Items: 1, Concurrency: 1}
		},
	} {
		w, s := whole.Workflow, whole.Workflow.Steps[0]
		m, item := *s.Map, *s.Map.Item
		s.Map, m.Item = &m, &item
		w.Steps = []makegood.Step{s}
		change(&w, &w.Steps[0])
		if _, err := FromWorkflow(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want that %s", err, want)
		}
	}
}

func TestTheItemsOfAMapHaveOneBudget(t *testing.T) {
	for with, want := range map[string]string{
		`{a: "${ .item }", b: "${ [range(20000)] | length }"}`:               "item 12.b: ${ [range(20000)] | length }: takes more than 1000000 steps, together",
		`{a: "${ [range(200) as $i | .input + ($i | tostring)] | length }"}`: "item 13.a: ",
	} {
		c, err := Parse("f", []byte(`{name: w, steps: [{name: a, map: {over: "${ [range(1000)] }"}, agent: x, with: `+with+`, undo: none}]}`))
		if err != nil {
			t.Fatal(err)
		}
		p := c.plans["a"]
		_, err = p.items(t.Context(), p.forward, Data{Input: []byte(`"` + strings.Repeat("x", 50_000) + `"`)}, jq.BudgetOf(1))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ", together with the evaluations before it") {
			t.Errorf("%s: %v, want %s", with, err, want)
		}
	}
}
