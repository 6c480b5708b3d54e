// Package proof compares the counts of tests with those in docs/proof.md, and hunts for planted bugs: wrong versions of
// the shipped code, with one place of a file replaced for the build of a test. Nothing in the tree changes. The hunts
// show that the model check and the simulation would see a mistake. Only tests import it.
package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// page is the path of the page from the root of the repository.
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
	text, err := os.ReadFile(filepath.Join(Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write puts another text in its place.
func Write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(Root(t), page), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func without(text string) string { return strings.ReplaceAll(text, ",", "") }

// Root returns the root of the repository: the nearest folder above the caller's test that has a go.work.
func Root(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("there is no go.work above this test")
		}
		folder = filepath.Dir(folder)
	}
}
