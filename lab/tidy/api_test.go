package tidy

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/api.txt anew")

// apiFile is the whole public API: what breaks a line of it is a new major version.
const apiFile = "testdata/api.txt"

// The names that users may write, and no others: each is kept for years.
func TestThePublicAPIIsWhatIsWrittenDown(t *testing.T) {
	var b strings.Builder
	sources := readTree(t)
	for _, dir := range public {
		lines := api(t, sources, dir)
		if len(lines) == 0 {
			t.Errorf("%s exports nothing", dir)
		}
		fmt.Fprintf(&b, "# %s\n\n%s\n", dir, strings.Join(lines, ""))
	}
	got := b.String()
	if *rewrite {
		if err := os.WriteFile(apiFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	is, was := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Errorf("gone: %s", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("new:  %s", line)
		}
	}
	t.Error("the public API has changed: if it is meant, go test ./lab/tidy -run PublicAPI -rewrite, and read the difference")
}

// api returns the exported declarations of a package, sorted, without comments, values of variables and bodies.
func api(t *testing.T, sources []source, dir string) []string {
	t.Helper()
	var all []string
	for _, s := range ours(sources) {
		if s.dir() != dir {
			continue
		}
		// Parsed anew: what is not exported is taken out of the tree.
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, s.path, s.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			all = append(all, declared(t, fset, d)...)
		}
	}
	slices.Sort(all)
	return all
}

// declared writes each thing that a declaration exports.
func declared(t *testing.T, fset *token.FileSet, d ast.Decl) []string {
	t.Helper()
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !exportedReceiver(d) {
			return nil
		}
		d.Body = nil
		return []string{written(t, fset, d)}
	case *ast.GenDecl:
		var all []string
		for _, spec := range d.Specs {
			if d.Tok == token.IMPORT {
				continue
			}
			if v, is := spec.(*ast.ValueSpec); is && d.Tok == token.VAR {
				v.Values = nil
				if v.Type == nil {
					all = append(all, "var "+v.Names[0].Name+"\n")
					continue
				}
			}
			all = append(all, d.Tok.String()+" "+written(t, fset, spec))
		}
		return all
	}
	return nil
}

func written(t *testing.T, fset *token.FileSet, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Node(&b, fset, node); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "\n\n", "\n") + "\n"
}
