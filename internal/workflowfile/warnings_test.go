package workflowfile

import "testing"

// Who comes from another tool writes its expressions; they are plain text here, and no error.
func TestTheNotationOfOtherToolsIsWarnedAbout(t *testing.T) {
	const before, between, after = `f:2: "`, `" is plain text here: an expression stands between ${ and }: ${ `, ` }`
	for with, found := range map[string][2]string{
		`{a: "{{ .input.x }}"}`:                    {"{{ .input.x }}", ".input.x"},
		`{a: "b {{input.x}} c"}`:                   {"{{input.x}}", ".input.x"},
		`{a: "{{ $.input.x }}"}`:                   {"{{ $.input.x }}", ".input.x"},
		`{a: [{b: "$.input.x"}]}`:                  {"$.input.x", ".input.x"},
		`{a: "${ .input.y } and $.steps.a[0].b"}`:  {"$.steps.a[0].b", ".steps.a[0].b"},
		`{a: "${ .input.x }"}`:                     {},
		`{a: "{{ name }} pays 5$. input follows"}`: {},
		`{a: "$${ .input.x }"}`:                    {},
		`{a: "a$.inputs"}`:                         {},
	} {
		c, err := Parse("f", []byte("name: x\nsteps: [{name: a, agent: y, with: "+with+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if found[0] != "" {
			want = before + found[0] + between + found[1] + after
		}
		if got := Errors(c.Warnings).Error(); got != want {
			t.Errorf("%s: got %q, want %q", with, got, want)
		}
	}
}

// Who writes a timeout at a step that waits for a person means how long it waits, and it would wait seven days.
func TestATimeThatSaysNothingIsWarnedAbout(t *testing.T) {
	c, err := Parse("f", []byte("name: x\nsteps:\n  - name: a\n    agent: approval\n    timeout: 30m\n    with: {choices: [yes, no]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "f:5: timeout does not hold for agent approval, which works on no task: for in with says how long it waits"
	if got := Errors(c.Warnings).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A workflow that begins itself must have a way to end.
func TestAWorkflowThatBeginsItselfIsWarnedAbout(t *testing.T) {
	for when, want := range map[string]string{
		"":                           `f:2: step "a" begins a job of its own workflow, without a when that ends it: that fails at the limit of 3 jobs above one`,
		`, when: "${ .input.more }"`: "",
	} {
		c, err := Parse("f", []byte("name: x\nsteps: [{name: a, agent: workflow, action: x"+when+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		if got := Errors(c.Warnings).Error(); got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
}

// An undo that has its step's with is warned about once.
func TestAWarningStandsOnce(t *testing.T) {
	c, err := Parse("f", []byte("name: x\nsteps: [{name: a, agent: y, with: '$.input', undo: {action: b}}]"))
	if err != nil || len(c.Warnings) != 1 {
		t.Errorf("got %v, %v, want one warning", c.Warnings, err)
	}
}
