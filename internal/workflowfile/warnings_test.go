package workflowfile

import "testing"

// Who comes from another tool writes its expressions; they are plain text here, and no error.
func TestTheNotationOfOtherToolsIsWarnedAbout(t *testing.T) {
	const before, after = `f:2: "`, `" is plain text here: an expression stands between ${ and }, such as ${ .input.id }`
	for with, found := range map[string]string{
		`{a: "{{ .input.x }}"}`:                    "{{ .input.x }}",
		`{a: "b {{input.x}} c"}`:                   "{{input.x}}",
		`{a: [{b: "$.input.x"}]}`:                  "$.input.x",
		`{a: "${ .input.y } and $.steps.a[0].b"}`:  "$.steps.a[0].b",
		`{a: "${ .input.x }"}`:                     "",
		`{a: "{{ name }} pays 5$. input follows"}`: "",
		`{a: "$${ .input.x }"}`:                    "",
		`{a: "a$.inputs"}`:                         "",
	} {
		c, err := Parse("f", []byte("name: x\nsteps: [{name: a, agent: y, with: "+with+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if found != "" {
			want = before + found + after
		}
		if got := Errors(c.Warnings).Error(); got != want {
			t.Errorf("%s: got %q, want %q", with, got, want)
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
