package workflowfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

// What an expression gives must not depend on what was left out because it does not read it.
func TestWhatIsNotReadIsNotMissed(t *testing.T) {
	outputs := []string{
		`{"id": 7, "x": {"y": {"z": [1, {"w": 2}]}, "n": null, "big": [1, 2, 3]}, "k\u0065y": {"a b": 1}, "items": [{"id": 1}, {"id": 2}], "id": 8}`,
		`{"x": {"y": 5}}`, `{"x": [1]}`, `{"x": "text"}`, `[1, 2]`, `"text"`, `7`, `null`, `true`, `{}`, ` { "x" : { } } `,
		`{"x": {"y": {"x": {"y": {"x": 1, "other": 2}}}}, "y": {"x": 3}, "\ud83d\ude00": {"x": "\"}]{"}}`,
	}
	const a = `.steps.a.output`
	for _, expression := range []string{
		a, a + `.id`, a + `.x`, a + `.x.y`, a + `.x.y.z[1].w`, a + `.x.big[]?`, a + `["x"]["y"]`, a + `.key."a b"`, a + `."😀".x`, `[` + a + `.items[]?.id]`,
		a + `.x.y.x.y.x`, a + ` | .x | .y`, a + ` as $o | $o.x.n`, a + ` as {x: {y: $y}} | $y`, a + ` as {x: $x, id: $i} | [$x, $i]`, a + ` as {$x} | $x`,
		a + ` as [$f] ?// {x: $f} | $f`, `.steps.a | .output.x`, `.steps | .a.output.x.y`, `.steps.a as $s | $s.output.id`, `.steps as {a: {output: {x: $x}}} | $x`,
		a + ` | keys`, a + ` | length`, a + ` | has("x")`, a + ` | type`, a + `.x | type`, a + ` | select(.x) | .id`, a + ` | values | .id`, a + ` | objects | .x.y`,
		a + ` | if .id then .x else .y end`, a + ` | .x // .id`, `first(` + a + `.x, 1)`, `add(` + a + `.x.y, ` + a + `.x.y)`, `add(` + a + `) | .id`, `[limit(1; ` + a + `)] | .[0].x`,
		a + ` | def f: .x.y; f`, a + ` | def f(g): g; f(.x)`, a + ` | def f: if .x then .x | f else . end; f`, a + ` | def f: if (.x | type) == "object" then (.x, .y) | f else . end; [f]`,
		`try ` + a + `.x.y catch .`, `try (` + a + ` | .x.y.z) catch .`, a + `.x.y?`, `[` + a + ` | .x?, .id?]`, `[` + a + ` | ..]`, `[` + a + ` | paths]`, a + `.x | tojson`, `"\(` + a + `.x)"`, a + ` | @json`,
		`reduce ` + a + `.items[]? as $i (0; . + $i.id)`, `[foreach ` + a + `.items[]? as $i (0; . + $i.id)]`, `reduce ` + a + ` as $o (null; $o.x)`, `{o: ` + a + `} | .o.id`, a + ` | {id, x}`, a + ` | {(.id | tostring): .x}`,
		a + `.x += 1`, a + ` | .x.new = 1`, a + ` | del(.x)`, a + ` | to_entries`, `[` + a + `.x] | .[0].y`, `.steps | to_entries`, `.steps["a"].output.x`, `. | .steps.a.output.x`,
		`.steps[("a", "a")].output.id`, a + ` | getpath(["x", "y"])`, `getpath(["steps", "a", "output", "id"])`, a + ` | pick(.x.y)`, a + ` | path(.x.y)`, `isempty(` + a + `.x)`, a + ` == ` + a + `.x`, `-` + a + `.id`,
		a + ` | error?`, `label $f | ` + a + ` | .x, break $f`, a + ` | . as $o | [1] | map($o.id)`, `. as {steps: {a: $s}} | $s.output.id`, a + ` | (.x | .y) as $y | $y`, a + ` | input_line_number? // .x`,
		a + strings.Repeat(".x", 30), a + ` | .x | (.y, .n)`, a + ` | [.x.y, .x] | .[1].n`, a + ` | {x} | .x.y`, a + ` | .[("x", "id")]`, a + ` | first(.x, .id)`, a + ` | nth(1; .x, .id)`, a + ` | until(true; .x) | .id`,
	} {
		compiled, err := FromWorkflow(makegood.Workflow{Name: "w", Steps: []makegood.Step{
			{Name: "a", Agent: "x"}, {Name: "d", Agent: "x", With: json.RawMessage(quoted("${ [" + expression + "] }"))},
		}})
		if err != nil {
			if !strings.Contains(expression, "input_line_number") {
				t.Errorf("%s: %v", expression, err)
			}
			continue
		}
		p := compiled.plans["d"]
		uncut := *p
		uncut.forward = &request{with: p.forward.with, reads: reads{input: true, job: true, all: true}}
		whole := &Compiled{Workflow: compiled.Workflow, plans: map[string]*plan{"d": &uncut}}
		for _, output := range outputs {
			data := Data{Outputs: map[string]json.RawMessage{"a": json.RawMessage(output)}}
			want, wantErr := inputOf(context.Background(), whole, "d", false, data)
			var gathered Data
			if err := compiled.Gather(&gathered, "d", false, "a", json.RawMessage(output)); err != nil {
				t.Fatal(err)
			}
			got, err := inputOf(context.Background(), compiled, "d", false, gathered)
			if string(got) != string(want) || message(err) != message(wantErr) {
				t.Errorf("%s on %s\n got %s, %v\nwant %s, %v", expression, output, got, err, want, wantErr)
			}
		}
	}
}

// fanIn is a workflow whose last step reads a path of the outputs of n branches.
func fanIn(t *testing.T, n int, path string) *Compiled {
	t.Helper()
	w := makegood.Workflow{Name: "w"}
	last := makegood.Step{Name: "last", Agent: "x"}
	var sum []string
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		w.Steps = append(w.Steps, makegood.Step{Name: name, Agent: "x", Needs: []string{}})
		last.Needs = append(last.Needs, name)
		sum = append(sum, fmt.Sprintf(".steps.%s.output%s", name, path))
	}
	last.With = json.RawMessage(quoted("${ [" + strings.Join(sum, ", ") + "] | length }"))
	w.Steps = append(w.Steps, last)
	compiled, err := FromWorkflow(w)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// A hundred branches of 256 KB are legal, and took 780 MB as a whole. Only what is named is kept and decoded.
func TestALargeFanInTakesLittleMoreThanItReads(t *testing.T) {
	output := json.RawMessage(`{"id": 1, "list": [` + strings.Repeat("0,", 130_000) + `0]}`)
	compiled := fanIn(t, 100, ".id")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var data Data
	for _, name := range compiled.Reads("last", false) {
		if err := compiled.Gather(&data, "last", false, name, output); err != nil {
			t.Fatal(err)
		}
	}
	got, err := inputOf(context.Background(), compiled, "last", false, data)
	runtime.ReadMemStats(&after)
	const most = 8 << 20
	if made := after.TotalAlloc - before.TotalAlloc; string(got) != "100" || err != nil || made > most {
		t.Errorf("got %s, %v, with %d bytes allocated; want 100, and at most %d", got, err, made, most)
	}
}

func TestWhatIsReadOfAllOutputsTogetherIsLimited(t *testing.T) {
	const want = `step "last": its expressions read more than 8388608 bytes of the outputs of other steps`
	for _, c := range []struct {
		branches int
		output   string
		over     bool
	}{
		{32, `"` + strings.Repeat("x", 1<<18-2) + `"`, false},
		{33, `"` + strings.Repeat("x", 1<<18-2) + `"`, true},
		// In memory, a short value takes more than its text.
		{8, `[` + strings.Repeat("0,", 131_000) + `0]`, false},
		{9, `[` + strings.Repeat("0,", 131_000) + `0]`, true},
	} {
		compiled := fanIn(t, c.branches, "")
		var data Data
		var err error
		for _, name := range compiled.Reads("last", false) {
			if err = compiled.Gather(&data, "last", false, name, json.RawMessage(c.output)); err != nil {
				break
			}
		}
		var limit *EvalError
		if c.over != errors.As(err, &limit) || c.over && limit.Reason != want {
			t.Errorf("%d outputs of %d bytes, %.9s...: %v, want over %t", c.branches, len(c.output), c.output, err, c.over)
		}
	}
}

// What is stored was checked when it came; what is damaged all the same is told of, and breaks nothing.
func TestWhatIsNotJSONIsGathered(t *testing.T) {
	compiled := fanIn(t, 1, ".id")
	for _, output := range []string{``, `{`, `"`, `"\`, `{"id`, `{"id":`, `]`, `1 2`, `{"id":1}}`, "\xff"} {
		var data Data
		if err := compiled.Gather(&data, "last", false, "s0", json.RawMessage(output)); err != nil {
			t.Errorf("%q: %v", output, err)
		}
		if _, err := inputOf(context.Background(), compiled, "last", false, data); output != "" && err == nil {
			t.Errorf("%q: no error", output)
		}
	}
}
