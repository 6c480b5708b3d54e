package proof

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Bug is a wrong version of a file.
type Bug struct {
	Name string
	File string // below internal
	// Old is replaced by New. It must stand there once.
	Old, New string
}

// Bugs makes bugs of rows: name, file, old, new.
func Bugs(rows [][4]string) []Bug {
	bugs := make([]Bug, len(rows))
	for i, row := range rows {
		bugs[i] = Bug{Name: row[0], File: row[1], Old: row[2], New: row[3]}
	}
	return bugs
}

// Run runs go test with these arguments in the folder of the caller's test, over a tree in which one file
// is the wrong one, and returns what it printed, and its error. A bug that does not compile, or has no place,
// fails the test.
func Run(t *testing.T, bug Bug, args ...string) ([]byte, error) {
	t.Helper()
	file, text := bug.place(t)
	wrong := filepath.Join(t.TempDir(), filepath.Base(bug.File))
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{wrong: []byte(strings.Replace(text, bug.Old, bug.New, 1)), overlay: list} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args = append([]string{"test", "-overlay", overlay, "-failfast", "-vet=off", "-count=1"}, args...)
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("[build failed]")) {
		t.Fatalf("the bug does not compile: %v\n%s", err, out)
	}
	return out, err
}

// place returns the file that a bug is planted in, and its text.
func (b Bug) place(t *testing.T) (file, text string) {
	t.Helper()
	file = filepath.Join(Root(t), "internal", b.File)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), b.Old); n != 1 {
		t.Errorf("%s: %s has %d places to plant the bug in, want 1: %q", b.Name, b.File, n, b.Old)
	}
	return file, string(content)
}
