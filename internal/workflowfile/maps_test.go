package workflowfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

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

// A map that the door lets in has parts: of any size, with a long item a hundred times, and of any name.
func TestTheDefinitionsOfPartsCanBeRead(t *testing.T) {
	long := strings.Repeat("a", 63)
	until := "${ .output == \\\"" + strings.Repeat("u", 5000) + "\\\" }"
	for _, step := range []string{
		`{name: ` + long + `, agent: x, exclusive: false, undo: none}`,
		`{name: part_1, agent: x, inline: true, undo: {action: u}}`,
		`{name: item_0, agent: x, heartbeat: 10s, waiting: {ask: [me]}, undo: {action: u, agent: y}}`,
		`{name: none, agent: workflow, action: w}`,
		`{name: a, agent: x, repeat: {until: "` + until + `"}, undo: none}`,
		`{name: a, agent: x, onError: [{kind: timeout, do: skip}], undo: none}`,
	} {
		source := "name: w\nsteps:\n  - " + strings.Replace(step, ", agent", `, map: {over: "${ .input }", tolerate: {share: 0.001, after: 7}}, agent`, 1) + "\n"
		whole, err := Parse("f", []byte(source))
		if err != nil {
			t.Errorf("%s: %v", step, err)
			continue
		}
		if text, err := whole.Source(); err != nil {
			t.Error(err)
		} else if again, err := Parse("f", text); err != nil || again.Hash != whole.Hash {
			t.Errorf("%s: %v, want the same hash of its source", step, err)
		}
		load := func(string) ([]byte, error) { return whole.Definition, nil }
		for _, n := range []int{0, 1, 100, 101, 10_001, makegood.MaxItems} {
			definition, err := DefinitionBy(fmt.Sprintf("%s~%s~%d", whole.Hash, whole.Workflow.Steps[0].Name, n), load)
			if err == nil {
				_, err = Load(definition)
			}
			if err != nil {
				t.Errorf("%d items of %s: %v", n, step[:30], err)
			}
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
