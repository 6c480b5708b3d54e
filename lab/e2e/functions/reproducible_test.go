package functions_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The same source gives the same file in every folder, so that anybody can tell what is deployed.
func TestABootstrapIsTheSameWhereverItIsBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds whole programs: make whole")
	}
	var hashes [2][sha256.Size]byte
	for i := range hashes {
		folder := filepath.Join(t.TempDir(), "a-folder-of-its-own")
		copySources(t, "../../..", folder)
		command := exec.Command("make", "functions", "arches="+runtime.GOARCH, "functions=agent")
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("make functions: %v\n%s", err, out)
		}
		body, err := os.ReadFile(filepath.Join(folder, ".build", runtime.GOARCH, "agent", "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "a-folder-of-its-own") {
			t.Error("the file names the folder in which it was built")
		}
		hashes[i] = sha256.Sum256(body)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("got %x and %x, want the same", hashes[0], hashes[1])
	}
}

// copySources copies all that go build may read.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != from && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin"):
			return fs.SkipDir
		case entry.IsDir() || !entry.Type().IsRegular() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, body, 0o644)
	})
	if err != nil {
		t.Fatalf("copy the sources: %v", err)
	}
}
