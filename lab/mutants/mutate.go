package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a wrong version of a function: one piece of its text is another.
type mutant struct {
	Package string `json:"package"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Func    string `json:"func"`
	Old     string `json:"old"`
	New     string `json:"new"`
	// Nth distinguishes those that read the same in one function; the first is 1.
	Nth int `json:"nth"`

	start, end int
	text       string // what stands from start to end instead
}

// gone is what a mutant shows for what it leaves out.
const gone = "(nothing)"

// key names a mutant wherever in its file it stands.
func (m mutant) key() string {
	key := fmt.Sprintf("%s %s: %s => %s", m.File, m.Func, m.Old, m.New)
	if m.Nth > 1 {
		key += fmt.Sprintf(" (%d)", m.Nth)
	}
	return key
}

// plant returns the file's text with the mutant in it.
func (m mutant) plant(text []byte) []byte {
	return slices.Concat(text[:m.start], []byte(m.text), text[m.end:])
}

// diff shows the lines that the mutant changes, as they are and as they would be.
func (m mutant) diff(text []byte) string {
	first := bytes.LastIndexByte(text[:m.start], '\n') + 1
	last := len(text)
	if end := bytes.IndexByte(text[m.end:], '\n'); end >= 0 {
		last = m.end + end
	}
	wrong := slices.Concat(text[first:m.start], []byte(m.text), text[m.end:last])
	return prefixed("-", text[first:last]) + prefixed("+", wrong)
}

func prefixed(mark string, lines []byte) string {
	var out strings.Builder
	for line := range strings.Lines(string(lines)) {
		out.WriteString("  " + mark + strings.TrimRight(line, "\n") + "\n")
	}
	return out.String()
}

// swaps are the operators that stand for each other: those of gremlins.
var swaps = map[token.Token][]string{
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.GEQ: {">", "<"}, token.GTR: {">=", "<="}, token.LEQ: {"<", ">"}, token.LSS: {"<=", ">="},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.AND: {"|"}, token.OR: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"}, token.XOR: {"&"},
	token.ADD_ASSIGN: {"-=", "="}, token.SUB_ASSIGN: {"+=", "="}, token.MUL_ASSIGN: {"/=", "="},
}

// mutantsOf lists the mutants of a package, or of the one file that is named.
func mutantsOf(root, name string) ([]mutant, error) {
	pattern := filepath.Join(root, name, "*.go")
	if strings.HasSuffix(name, ".go") {
		pattern = filepath.Join(root, name)
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		found, err := mutantsIn(short, text)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Package = name
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has nothing that could be made wrong", name)
	}
	return all, nil
}

// mutantsIn lists the mutants of a file, in the order of the text.
func mutantsIn(file string, text []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	l := lister{fset: fset, text: text, file: file, seen: map[string]int{}}
	for _, d := range tree.Decls {
		l.declaration(d)
	}
	return l.found, nil
}

// lister walks a file, function by function.
type lister struct {
	fset  *token.FileSet
	text  []byte
	file  string
	name  string // of the function, or the constant
	found []mutant
	seen  map[string]int
}

// declaration goes through the body of a function, and the values of constants.
func (l *lister) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			l.name = d.Name.Name
			ast.Inspect(d.Body, l.visit)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if c, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST {
				l.name = c.Names[0].Name
				ast.Inspect(c, l.visit)
			}
		}
	}
}

func (l *lister) offset(p token.Pos) int { return l.fset.Position(p).Offset }

func (l *lister) source(n ast.Node) string {
	return string(l.text[l.offset(n.Pos()):l.offset(n.End())])
}

// add makes a mutant: text stands where from to end is. shown is what it is about.
func (l *lister) add(from, end token.Pos, text, old, shown string) {
	m := mutant{
		File: filepath.ToSlash(l.file), Line: l.fset.Position(from).Line, Func: l.name, Old: oneLine(old), New: oneLine(shown),
		start: l.offset(from), end: l.offset(end), text: text, Nth: 1,
	}
	if m.New == "" {
		m.New = gone
	}
	l.seen[m.key()]++
	m.Nth = l.seen[m.key()]
	l.found = append(l.found, m)
}

// replace makes a mutant of a node of which a part reads otherwise.
func (l *lister) replace(from, end token.Pos, text string, n ast.Node) {
	old, at := l.source(n), l.offset(n.Pos())
	l.add(from, end, text, old, old[:l.offset(from)-at]+text+old[l.offset(end)-at:])
}

func (l *lister) whole(n ast.Node, text string) { l.replace(n.Pos(), n.End(), text, n) }

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
