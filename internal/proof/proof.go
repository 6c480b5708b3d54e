// Package proof compares what tests count with what docs/proof.md says of it. Only tests import it.
package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page is seen from the module's folder.
const page = "docs/proof.md"

// Says fails the test unless a line of the page begins so. Commas do not count: figures have them there.
func Says(t *testing.T, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module(t), page))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains("\n"+without(string(text)), "\n"+without(want)) {
		t.Errorf("docs/proof.md has no line that begins with %q", want)
	}
}

func without(text string) string { return strings.ReplaceAll(text, ",", "") }

// module is the folder with go.mod that the caller's test lies in.
func module(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("there is no go.mod above this test")
		}
		folder = filepath.Dir(folder)
	}
}
