package planted

import (
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/proof"
)

// Hunt is a test that should see bugs.
type Hunt struct {
	// Bugs are looked for, All of them or the few of Quick; that each has its place in the code is looked at in any case.
	Bugs  []Bug
	All   bool
	Quick []int
	// Args are those of go test: which test looks.
	Args []string
	// Found reads what it printed: a cell of the bug's row in docs/proof.md each, and at last what it says, which may
	// differ from run to run and is only shown.
	Found *regexp.Regexp
}

// Run fails the test unless every bug is found, as docs/proof.md says.
func (h Hunt) Run(t *testing.T) {
	for _, bug := range h.Bugs {
		bug.place(t)
	}
	if t.Failed() {
		return
	}
	bugs := h.Bugs
	if !h.All {
		bugs = nil
		for _, i := range h.Quick {
			bugs = append(bugs, h.Bugs[i])
		}
	}
	for _, bug := range bugs {
		t.Run(bug.Name, func(t *testing.T) {
			out, err := Run(t, bug, h.Args...)
			found := h.Found.FindStringSubmatch(string(out))
			if err == nil || found == nil {
				t.Fatalf("got %v, want it to be found:\n%s", err, out)
			}
			says := len(found) - 1
			row := "| " + bug.Name + " |"
			for _, cell := range found[1:says] {
				// The name of a test has its spaces so.
				row += " " + strings.ReplaceAll(cell, "_", " ") + " |"
			}
			t.Logf("%s %s |", row, strings.ReplaceAll(found[says], "\n", " "))
			proof.Says(t, row)
		})
	}
}
