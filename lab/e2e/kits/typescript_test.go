//go:build kits || aws

package kits_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// packing lets one test of a process build the kit for TypeScript.
var packing sync.Mutex

// typescriptKit returns a folder with the kit for TypeScript: its sources, dist and node_modules, makegood-agent.tgz as
// npm pack writes it, and package, the files of that archive. It is built once for each state of the sources, and in a folder
// that gets its name last, since two processes of tests may build it at once.
func typescriptKit(t *testing.T) string {
	t.Helper()
	packing.Lock()
	defer packing.Unlock()
	sources := os.DirFS(root(t, "kits", "typescript"))
	kept, err := typescriptSources(sources)
	if err != nil {
		t.Fatal(err)
	}
	folder := root(t, ".build", "kits", fmt.Sprintf("typescript-%x", hashOfFiles(kept)))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := os.MkdirTemp(filepath.Dir(folder), "packing-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(made)
	for name, text := range kept {
		if err := os.MkdirAll(filepath.Join(made, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(made, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range [][]string{
		{need(t, "npm"), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"},
		{need(t, "npm"), "pack"}, // which runs the script prepare
		{"sh", "-c", "mv makegood-agent-*.tgz makegood-agent.tgz && tar xzf makegood-agent.tgz"},
	} {
		step := exec.CommandContext(t.Context(), line[0], line[1:]...)
		step.Dir = made
		if out, err := step.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", line, err, out)
		}
	}
	if err := os.Rename(made, folder); err != nil {
		if _, there := os.Stat(folder); there != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// typescriptSources returns the files that the kit is built of, by their names.
func typescriptSources(folder fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "dist" || name == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || name == "package-lock.json":
			return nil
		}
		files[name], err = fs.ReadFile(folder, name)
		return err
	})
	return files, err
}

// hashOfFiles returns the first bytes of a hash of the names and texts of files.
func hashOfFiles(files map[string][]byte) []byte {
	const enough = 6
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(all, "%s %d\n%s", name, len(files[name]), files[name])
	}
	return all.Sum(nil)[:enough]
}
