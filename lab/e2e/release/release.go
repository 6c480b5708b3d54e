// Package release builds programs of this module as one release of it or another has them: this tree, the
// release before it, and one that comes after it. Only tests of upgrades use it; it deploys nothing.
package release

import (
	"archive/tar"
	"bytes"
	_ "embed" // for the release before
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// before is the commit of the release before this one. It is moved when a release is made.
//
//go:embed before
var before string

// Release is a tree that programs are built of.
type Release struct {
	// Name is "before", "this" or "next".
	Name string
	tree string
	// overlay is what go build is told to read in place of files of the tree; empty: nothing.
	overlay string
}

// This is the tree that the test stands in.
func This() (Release, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/makegood-dev/makegood").Output()
	if err != nil {
		return Release{}, fmt.Errorf("find this module: %w", err)
	}
	return Release{Name: "this", tree: strings.TrimSpace(string(out))}, nil
}

// Before takes the release before this one out of the history, into a folder. Without the history it fails: what
// was not built was not tested.
func Before(folder string) (Release, error) {
	this, err := This()
	if err != nil {
		return Release{}, err
	}
	commit := strings.TrimSpace(before)
	archive := exec.Command("git", "-C", this.tree, "archive", "--format=tar", commit)
	var wrong bytes.Buffer
	archive.Stderr = &wrong
	out, err := archive.Output()
	if err != nil {
		return Release{}, fmt.Errorf("take commit %s, which lab/e2e/release/before names, out of the history: %w: %s", commit, err, wrong.Bytes())
	}
	return Release{Name: "before", tree: folder}, extract(bytes.NewReader(out), folder)
}

func extract(archive io.Reader, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(header.Name), 0o755)
		case tar.TypeReg:
			err = write(root, header.Name, r)
		}
		if err != nil {
			return fmt.Errorf("extract %s: %w", header.Name, err)
		}
	}
}

func write(root *os.Root, name string, content io.Reader) error {
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// Change is a place in a file, and what stands there in the release that comes after this one.
type Change struct {
	File string // from the root of the module
	// Old is replaced by New. It must stand there once.
	Old, New string
}

// Next is this tree with changes, as a later release might have made them. What is changed lies in folder; the tree
// stays as it is.
func Next(folder string, changes []Change) (Release, error) {
	this, err := This()
	if err != nil {
		return Release{}, err
	}
	replace := map[string]string{}
	for _, c := range changes {
		if err := c.apply(this.tree, folder, replace); err != nil {
			return Release{}, err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return Release{}, err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return Release{Name: "next", tree: this.tree, overlay: overlay}, os.WriteFile(overlay, list, 0o600)
}

// apply writes the changed file, over earlier changes to it.
func (c Change) apply(tree, folder string, replace map[string]string) error {
	original := filepath.Join(tree, c.File)
	from := original
	if changed, ok := replace[original]; ok {
		from = changed
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), c.Old); n != 1 {
		return fmt.Errorf("%s has %d places for a change, want 1: %q", c.File, n, c.Old)
	}
	to := filepath.Join(folder, strings.ReplaceAll(c.File, "/", "_"))
	replace[original] = to
	return os.WriteFile(to, []byte(strings.Replace(string(text), c.Old, c.New, 1)), 0o600)
}

// Build builds a program, named by its folder from the root of the module, into a file, and returns that.
func (r Release) Build(program, file string, flags ...string) (string, error) {
	args := []string{"build", "-o", file}
	if r.overlay != "" {
		args = append(args, "-overlay", r.overlay)
	}
	command := exec.Command("go", append(append(args, flags...), "./"+program)...)
	command.Dir = r.tree
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s of the release %q: %w\n%s", program, r.Name, err, out)
	}
	return file, nil
}
