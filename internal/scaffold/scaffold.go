// Package scaffold holds the first files of a team's own project: the files that makegood new writes, and the
// template of this version, which it prints for any agents and compares with a project's own. It writes files into a
// folder, and runs only go mod tidy there.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// MaxModuleBytes is how long the path of a module may be.
const MaxModuleBytes = 256

// Two angle brackets are no sign of YAML, Go or make.
const leftMark, rightMark = "<<", ">>"

//go:embed all:project
var project embed.FS

// Project is what its files are made for.
type Project struct {
	// Name is that of its package, its command and its stacks: a limits.ProjectName.
	Name string
	// Module is the path of its Go module.
	Module string
	// Version is that of Makegood which it requires. Empty: none is known, so Replace is.
	Version string
	// Replace is a checkout of Makegood that stands in for the published module; empty: none.
	Replace string
	// Agents, if any, are those of a project with another workflow and other agents than the ones here: then its files
	// are those around them.
	Agents []string
	// Local: the project runs in a process of its own, without AWS.
	Local bool
}

// ErrThere: a file that would be written is there already, and none was written.
var ErrThere = errors.New("is there already, and no file was written")

// ofTrips are the files that only a project has that books trips.
var ofTrips = []string{
	"project/NAME.go.tmpl", "project/NAME_test.go.tmpl", "project/README.md.tmpl", "project/agents.go.tmpl", "project/trips.jsonl.tmpl", "project/workflows/trip.yaml.tmpl",
}

// ofAWS reports whether a file is for a stack alone.
func ofAWS(name string) bool {
	return name == "project/samconfig.toml.tmpl" || strings.HasPrefix(name, "project/functions/")
}

// imported are the packages that a project's files import; its own cannot have their names.
var imported = []string{"agent", "command", "context", "embed", "errors", "fmt", "main", "makegood", "makegoodtest", "onlambda", "testing"}

// modulePath is what the path of a module looks like.
var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// Check returns the fault of a project; nil: none.
func (p Project) Check() error {
	if err := limits.ProjectName.Check(p.Name); err != nil {
		return err
	}
	if token.IsKeyword(p.Name) || slices.Contains(imported, p.Name) {
		return fmt.Errorf("%q cannot be the name of a project: it is a word of Go, or a package that its files import", p.Name)
	}
	if len(p.Module) > MaxModuleBytes || !modulePath.MatchString(p.Module) {
		return fmt.Errorf("%q cannot be the path of a Go module: want one such as example.com/%s", p.Module, p.Name)
	}
	if p.Version == "" && p.Replace == "" {
		return errors.New("this command was built from a tree that is no published version, so a project cannot require it: --replace PATH names a checkout that it can use")
	}
	return nil
}

// Import is how a file of the project imports its package.
func (p Project) Import() string {
	if path.Base(p.Module) == p.Name {
		return fmt.Sprintf("%q", p.Module)
	}
	return fmt.Sprintf("%s %q", p.Name, p.Module)
}

// Required is the version in go.mod. A replaced one is never looked up.
func (p Project) Required() string {
	if p.Replace != "" {
		return "v0.0.0"
	}
	return p.Version
}

// File is one file of a project.
type File struct {
	// Name is its path from the project's folder, with slashes.
	Name string
	Text []byte
}

// Files are those of a project, sorted by name. They are the same for the same project.
func (p Project) Files() ([]File, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	around := []string{"flights", "hotels", "cars", makegood.HTTPAgent}
	if len(p.Agents) > 0 {
		around = p.Agents
	}
	var files []File
	if !p.Local {
		deployed, err := Template(around)
		if err != nil {
			return nil, err
		}
		files = append(files, File{"template.yaml", deployed})
	}
	err := fs.WalkDir(project, "project", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || len(p.Agents) > 0 && slices.Contains(ofTrips, name) || p.Local && ofAWS(name) {
			return err
		}
		text, err := p.fill(name)
		files = append(files, File{p.place(name), text})
		return err
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

// place returns where a file of the folder project goes.
func (p Project) place(name string) string {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "project/"), ".tmpl")
	return strings.ReplaceAll(name, "NAME", p.Name)
}

// fill puts the project's names into a file.
func (p Project) fill(name string) ([]byte, error) {
	text, err := project.ReadFile(name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Delims(leftMark, rightMark).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var filled bytes.Buffer
	err = parsed.Execute(&filled, p)
	return filled.Bytes(), err
}

// Write writes files into a folder, which it makes, and calls written after each. If one exists already it writes
// none: ErrThere. After another error some may have been written.
func Write(folder string, files []File, written func(name string)) error {
	for _, f := range files {
		name := filepath.Join(folder, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s %w", name, ErrThere)
		}
	}
	for _, f := range files {
		name := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := writeNew(name, f.Text); err != nil {
			return err
		}
		written(f.Name)
	}
	return nil
}

// writeNew writes a file that is not there yet.
func writeNew(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
