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
	if !strings.Contains("\n"+without(Page(t)), "\n"+without(want)) {
		t.Errorf("docs/proof.md has no line that begins with %q", want)
	}
}

// Page returns the text of the page.
func Page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module(t), page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write puts another text in its place.
func Write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(module(t), page), []byte(text), 0o600); err != nil {
		t.Fatal(err)
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
