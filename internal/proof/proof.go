// Package proof compares what tests count with what docs/proof.md says of it. Only tests import it.
package proof

import (
	"os"
	"strings"
	"testing"
)

// page is seen from the tests of a package in internal.
const page = "../../docs/proof.md"

// Says fails the test unless a line of the page begins so. Commas do not count: figures have them there.
func Says(t *testing.T, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains("\n"+without(string(text)), "\n"+without(want)) {
		t.Errorf("docs/proof.md has no line that begins with %q", want)
	}
}

func without(text string) string { return strings.ReplaceAll(text, ",", "") }
