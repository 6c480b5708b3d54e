package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath   string
	EmbedFiles   []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
	Module       struct{ Path string }
}

// listed returns the packages of the module, or of all modules of go.work.
func listed() ([]pkg, error) {
	out, err := output("go", "list", "-e", "-json=ImportPath,EmbedFiles,Imports,TestImports,XTestImports,Deps,Module", "work")
	if err != nil {
		return nil, err
	}
	var all []pkg
	for decoder := json.NewDecoder(bytes.NewBufferString(out)); ; {
		var p pkg
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, p)
	}
}

// readers are the packages whose tests read files of the whole tree, by the end of the names of these files.
var readers = []struct{ files, folder string }{
	{".go", "lab/tidy"},
	{".md", "lab/tidy"},
	{".md", "lab/docs"},
	{"Makefile", "lab/docs"},
	{"template.yaml", "lab/e2e/template"},
}

// plan says what is tested, by import path, and what is not.
type plan struct {
	changed   []string // packages with changed files
	importers []string // packages that import one of them, and have no changed files
	readers   []string // packages whose tests read the changed files, and that are none of the others
	leftOut   []string // importers beyond the bound
	nobody    []string // files that no test here builds or reads
}

// tested returns the packages to test: the changed ones first.
func (p plan) tested() []string {
	return slices.Concat(p.changed, p.importers, p.readers)
}

// tree is a module.
type tree struct {
	packages map[string]pkg // by import path
	root     string         // import path of the module
}

// choose returns what is to be tested for the changed files, with at most so many importers.
func choose(all []pkg, files []string, most int) plan {
	t := tree{packages: map[string]pkg{}}
	for _, p := range all {
		t.packages[p.ImportPath] = p
		// A module below the root's has its folder behind the root's path.
		if t.root == "" || len(p.Module.Path) < len(t.root) {
			t.root = p.Module.Path
		}
	}
	// shown are the packages that changed for their importers: a test file changes nothing for them.
	changed, shown, read := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var p plan
	for _, file := range files {
		owner := t.owner(file)
		if _, there := t.packages[owner]; there {
			changed[owner] = true
		}
		if owner != "" && t.ships(owner, file) {
			shown[owner] = true
		}
		reads := t.readersOf(file)
		for _, reader := range reads {
			read[reader] = true
		}
		if !changed[owner] && (owner != "" || len(reads) == 0) {
			p.nobody = append(p.nobody, file)
		}
	}
	p.changed = slices.Sorted(maps.Keys(changed))
	p.importers = t.importers(shown, changed)
	if len(p.importers) > most {
		p.importers, p.leftOut = p.importers[:most], p.importers[most:]
	}
	for _, reader := range slices.Sorted(maps.Keys(read)) {
		p.leftOut = slices.DeleteFunc(p.leftOut, func(path string) bool { return path == reader })
		if !slices.Contains(p.tested(), reader) {
			p.readers = append(p.readers, reader)
		}
	}
	return p
}

// owner returns the import path that a file belongs to: its folder's for Go, else that of the nearest package above it.
// The package in the root owns its Go files and what it embeds, and not the whole tree. "" means that no package owns
// the file.
func (t tree) owner(file string) string {
	if path.Ext(file) == ".go" && !strings.Contains("/"+file, "/testdata/") {
		return path.Join(t.root, path.Dir(file))
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if owner := path.Join(t.root, dir); t.packages[owner].ImportPath != "" {
			return owner
		}
	}
	if slices.Contains(t.packages[t.root].EmbedFiles, file) {
		return t.root
	}
	return ""
}

// ships reports whether importers of its package get the file: a Go file that is no test, or an embedded file.
func (t tree) ships(owner, file string) bool {
	if path.Join(t.root, path.Dir(file)) == owner && path.Ext(file) == ".go" {
		return !strings.HasSuffix(file, "_test.go")
	}
	below := strings.TrimPrefix(path.Join(t.root, file), owner+"/")
	return slices.Contains(t.packages[owner].EmbedFiles, below)
}

func (t tree) readersOf(file string) []string {
	var all []string
	for _, r := range readers {
		owner := path.Join(t.root, r.folder)
		if strings.HasSuffix(file, r.files) && t.packages[owner].ImportPath != "" {
			all = append(all, owner)
		}
	}
	return all
}

// importers returns the packages that import one of shown directly, in their tests too, without the changed packages.
// Packages whose code imports it come before those whose tests do. Then packages with the fewest dependencies come
// first: they are nearest to the change, and the cheapest to build.
func (t tree) importers(shown, changed map[string]bool) []string {
	imports := func(paths []string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return shown[path] })
	}
	var all []string
	rank := map[string]int{}
	for _, p := range t.packages {
		inCode := imports(p.Imports)
		if changed[p.ImportPath] || !inCode && !imports(p.TestImports) && !imports(p.XTestImports) {
			continue
		}
		all, rank[p.ImportPath] = append(all, p.ImportPath), len(p.Deps)
		if !inCode {
			rank[p.ImportPath] += afterCode
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
	})
	return all
}

// afterCode is more than any package has dependencies.
const afterCode = 1_000_000
