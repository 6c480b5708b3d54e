package tidy

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// pure are the packages that decide and describe, with what of the standard library each may use:
// nothing that knows the time, the machine or chance.
var pure = map[string][]string{
	".":               {"bytes", "encoding/json", "errors", "fmt", "maps", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8"},
	"internal/limits": {"fmt", "strings", "time", "unicode", "unicode/utf8"},
	"internal/domain": {"bytes", "encoding/json", "errors", "fmt", "maps", "slices", "strings", "time"},
	// A token is computed: the same secret gives the same.
	"internal/machine": {"cmp", "crypto/hmac", "crypto/sha256", "encoding/base64", "encoding/json", "errors", "fmt", "maps", "slices", "strconv", "strings", "time"},
}

// clocks are the parts of package time that ask a clock, or wait for one, or read the local zone.
var clocks = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation",
}

// pureFiles returns the files of the pure packages, tests left out.
func pureFiles(sources []source) []source {
	return slices.DeleteFunc(ours(sources), func(s source) bool { return pure[s.dir()] == nil })
}

func checkPureImports(sources []source) []string {
	var found []string
	for _, s := range pureFiles(sources) {
		for _, i := range imports(s) {
			if i.isStandard() && !slices.Contains(pure[s.dir()], i.name) {
				found = append(found, i.at("%s is pure and may not import %s", s.dir(), i.name))
			}
			if i.isStandard() && slices.ContainsFunc(s.file.Imports, func(spec *ast.ImportSpec) bool {
				return spec.Name != nil && spec.Path.Value == strconv.Quote(i.name)
			}) {
				found = append(found, i.at("%s under another name hides from these rules", i.name))
			}
		}
	}
	return found
}

func checkPureCode(sources []source) []string {
	var found []string
	for _, s := range pureFiles(sources) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := impure(n); what != "" {
				found = append(found, s.at(n.Pos(), "%s is pure: no %s", s.dir(), what))
			}
			return true
		})
	}
	return found
}

// impure names what a node does that a pure function does not; empty for most.
func impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "goroutine"
	case *ast.ChanType:
		return "channel"
	case *ast.SelectStmt:
		return "select"
	case *ast.SendStmt:
		return "sending to a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "receiving from a channel"
		}
	case *ast.SelectorExpr:
		if x, is := n.X.(*ast.Ident); is && x.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			return "init"
		}
	}
	return ""
}

// checkMapOrder finds loops over maps, whose order is chance. One that is sound says so in a comment
// with the word "order", beside it or on the line above.
func checkMapOrder(sources []source) []string {
	var found []string
	for _, p := range typed(pureFiles(sources)) {
		for _, s := range p.sources {
			ast.Inspect(s.file, func(n ast.Node) bool {
				loop, is := n.(*ast.RangeStmt)
				if !is || !p.overMap(loop.X) || s.explains(loop.Pos(), "order") {
					return true
				}
				found = append(found, s.at(loop.Pos(), "%s is pure: a loop over a map has no order; sort, or say in a comment why any order will do", s.dir()))
				return true
			})
		}
	}
	return found
}

// explains reports whether a comment with this word is on the line of pos or ends on the one above.
func (s source) explains(pos token.Pos, word string) bool {
	line := s.line(pos)
	return slices.ContainsFunc(s.file.Comments, func(c *ast.CommentGroup) bool {
		from, to := s.line(c.Pos()), s.line(c.End())
		return (from == line || to == line || to == line-1) && strings.Contains(c.Text(), word)
	})
}

// typedPackage is a package whose expressions have types.
type typedPackage struct {
	sources []source
	info    types.Info
}

// overMap reports whether a range over x has the order of a map.
func (p typedPackage) overMap(x ast.Expr) bool {
	if call, is := x.(*ast.CallExpr); is {
		if f, is := call.Fun.(*ast.SelectorExpr); is {
			if of, is := f.X.(*ast.Ident); is && of.Name == "maps" {
				return true
			}
		}
	}
	t := p.info.TypeOf(x)
	if t == nil {
		return false
	}
	_, is := t.Underlying().(*types.Map)
	return is
}

// typed returns the packages of the sources with their types, each behind those that it imports. It takes no notice of
// mistakes: the compiler finds those.
func typed(sources []source) []typedPackage {
	known := map[string]*types.Package{}
	load := importFunc(func(name string) (*types.Package, error) {
		if p := known[name]; p != nil {
			return p, nil
		}
		if strings.Contains(name, ".") {
			return nil, fmt.Errorf("%s is not looked at", name)
		}
		return standard().Import(name)
	})
	var all []typedPackage
	for _, dir := range []string{"internal/limits", ".", "internal/domain", "internal/job", "internal/machine"} {
		p := typedPackage{info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
		var files []*ast.File
		for _, s := range sources {
			if s.dir() == dir {
				p.sources, files = append(p.sources, s), append(files, s.file)
			}
		}
		if len(files) == 0 {
			continue
		}
		config := types.Config{Importer: load, Error: func(error) {}}
		checked, _ := config.Check(dir, p.sources[0].fset, files, &p.info)
		known[strings.TrimSuffix(module+"/"+dir, "/.")] = checked
		all = append(all, p)
	}
	return all
}

// standard imports the standard library from source, because nothing else is sure to be there. That
// takes a second, so it is done once.
var standard = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

// importFunc is a types.Importer.
type importFunc func(name string) (*types.Package, error)

func (f importFunc) Import(name string) (*types.Package, error) { return f(name) }

func pureRules() []rule {
	core := func(body string) tree { return tree{"internal/machine/m.go": "package machine\n" + body} }
	return []rule{
		{
			name:  "the pure packages use pure libraries only",
			check: checkPureImports,
			wrong: []mistake{
				{"may not import math/rand/v2", core(`import "math/rand/v2"`)},
				{"may not import os", core(`import "os"`)},
				{"may not import sync", core(`import "sync"`)},
				{"may not import context", core(`import "context"`)},
				{"may not import net/http", tree{"workflow.go": "package makegood\nimport \"net/http\"\n"}},
				{"time under another name", core(`import clock "time"`)},
			},
			good: []tree{
				core(`import ("fmt"; "slices"; "time")`),
				{"internal/machine/m_test.go": "package machine\nimport \"os\"\n"},
				{"internal/wire/w.go": "package wire\nimport \"os\"\n"},
			},
		},
		{
			name:  "the pure packages have no clock, no goroutine, no channel, no init",
			check: checkPureCode,
			wrong: []mistake{
				{"m.go:3: internal/machine is pure: no time.Now", core("import \"time\"\nvar t = time.Now()")},
				{"no time.Since", core("import \"time\"\nfunc f(t time.Time) time.Duration { return time.Since(t) }")},
				{"no time.Local", core("import \"time\"\nfunc f(t time.Time) time.Time { return t.In(time.Local) }")},
				{"no goroutine", core("func f() { go f() }")},
				{"no channel", core("type t chan int")},
				{"no receiving", core("func f(c t) { <-c }")},
				{"no sending", core("func f(c t) { c <- 1 }")},
				{"no select", core("func f() { select {} }")},
				{"no init", core("func init() {}")},
			},
			good: []tree{
				core("import \"time\"\nfunc f(now time.Time) time.Time { return now.Add(time.Second) }"),
				{"internal/embedded/e.go": "package embedded\nfunc f() { go f() }"},
			},
		},
		{
			name:  "the pure packages do not depend on the order of a map",
			check: checkMapOrder,
			wrong: []mistake{
				{"m.go:2: internal/machine is pure: a loop over a map", core("func f(m map[string]int) { for range m {} }")},
				{"a loop over a map", core("type set map[string]bool\nfunc f(s struct{ m set }) { for k := range s.m { _ = k } }")},
				{"a loop over a map", core("import \"maps\"\nfunc f(m map[string]int) { for range maps.Keys(m) {} }")},
				{"a loop over a map", tree{
					"job.go":                "package makegood\nimport \"time\"\ntype Job struct { At time.Time; Open map[string]int }\n",
					"internal/machine/m.go": "package machine\nimport \"" + module + "\"\nfunc f(j makegood.Job) { for range j.Open {} }\n",
				}},
				{"a loop over a map", core("func f(m map[string]int) {\n\t// A comment about something else.\n\tfor range m {\n\t}\n}")},
			},
			good: []tree{
				core("func f(m map[string]int) (n int) {\n\t// A sum is the same in any order.\n\tfor _, v := range m {\n\t\tn += v\n\t}\n\treturn n\n}"),
				core("import (\"maps\"; \"slices\")\nfunc f(m map[string]int) { for range slices.Sorted(maps.Keys(m)) {} }"),
				core("func f(list []string, n int) { for range list {}; for range n {} }"),
				{"internal/wire/w.go": "package wire\nfunc f(m map[string]int) { for range m {} }"},
			},
		},
	}
}
