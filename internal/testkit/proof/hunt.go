package proof

import (
	"os"
	"regexp"
	"strings"
	"testing"
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

// Run fails the test unless every bug is found, as docs/proof.md says. With PLANTED=write it writes there how it was
// found, in the row that begins with the bug's name.
func (h Hunt) Run(t *testing.T) {
	for _, bug := range h.Bugs {
		bug.place(t)
	}
	if t.Failed() || testing.Short() {
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
			line := row + " " + strings.ReplaceAll(found[says], "\n", " ") + " |"
			t.Log(line)
			if os.Getenv("PLANTED") == "write" {
				rewrite(t, "| "+bug.Name+" |", line)
			}
			Says(t, row)
		})
	}
}

// rewrite puts a line in the place of the one of docs/proof.md that begins so, as far as the table has columns. Where
// several begin so, it writes none.
func rewrite(t *testing.T, begins, line string) {
	t.Helper()
	before, after, _ := strings.Cut(Page(t), "\n"+begins)
	if was, end, is := strings.Cut(after, "\n"); is && !strings.Contains(after, "\n"+begins) {
		cells := strings.SplitAfter(line, "|")
		line = strings.Join(cells[:min(len(cells), strings.Count(begins+was, "|"))], "")
		Write(t, before+"\n"+line+"\n"+end)
	}
}
