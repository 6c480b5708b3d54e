package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// emptyNames say nothing of what a package is for.
var emptyNames = []string{
	"util", "utils", "common", "types", "helper", "helpers", "manager", "managers", "model", "models", "misc", "base", "shared",
}

// public are the packages that users import.
var public = []string{".", "agent", "agent/dynamofence", "agent/sqlitefence", "api", "client", "client/doors", "client/dynamotx", "client/sqlitetx", "command", "engine", "engine/folder", "makegoodtest", "onhttp", "onlambda", "onqueue", "telemetry", "telemetry/export"}

func checkPackageNames(sources []source) []string {
	found := map[string]bool{}
	for _, s := range goFiles(sources) {
		for _, part := range append(strings.Split(s.dir(), "/"), strings.TrimSuffix(s.file.Name.Name, "_test")) {
			if slices.Contains(emptyNames, part) {
				found[fmt.Sprintf("%s: %q says nothing of what the package is for", s.dir(), part)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Built from parts, so that the rule does not find itself.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func checkUnfinished(sources []source) []string {
	var found []string
	for _, s := range goFiles(sources) {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if word := unfinished.FindString(c.Text); word != "" {
					found = append(found, s.at(c.Pos(), "%s: do it, or decide not to and write down why", word))
				}
			}
		}
	}
	return found
}

// checkPackageComments wants one comment a package, in a file that is no test unless all are.
func checkPackageComments(sources []source) []string {
	type state struct{ ours, documented, inTests bool }
	packages := map[string]state{}
	for _, s := range goFiles(sources) {
		p := packages[s.dir()]
		has := s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != ""
		p.ours = p.ours || !s.isTest()
		p.documented = p.documented || has && !s.isTest()
		p.inTests = p.inTests || has && s.isTest()
		packages[s.dir()] = p
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if p := packages[dir]; !p.documented && (p.ours || !p.inTests) {
			found = append(found, dir+": no package comment says what it does and what it does not")
		}
	}
	return found
}

// checkDoc wants a comment on every exported thing of the public packages.
func checkDoc(sources []source) []string {
	var found []string
	for _, s := range ours(sources) {
		if !slices.Contains(public, s.dir()) {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					found = append(found, s.at(d.Pos(), "%s is public and says nothing", d.Name.Name))
				}
			case *ast.GenDecl:
				found = append(found, undocumented(s, d)...)
			}
		}
	}
	return found
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumented returns the exported names of a declaration that nothing is said about. One comment may
// speak for a group of constants or variables, not for a group of types.
func undocumented(s source, d *ast.GenDecl) []string {
	var found []string
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				found = append(found, s.at(spec.Pos(), "%s is public and says nothing", spec.Name.Name))
			}
		case *ast.ValueSpec:
			if spec.Doc != nil || spec.Comment != nil || d.Doc != nil {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					found = append(found, s.at(name.Pos(), "%s is public and says nothing", name.Name))
				}
			}
		}
	}
	return found
}

// checkVariables finds state that belongs to nobody: a variable of a package may be an error, a
// table, or the proof that a type is what it says.
func checkVariables(sources []source) []string {
	var found []string
	for _, s := range ours(sources) {
		for _, d := range s.file.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if v.Names[0].Name != "_" && len(v.Values) == 0 && v.Type != nil && !embeds(g, v) {
					found = append(found, s.at(v.Pos(), "%s is set at run time: state of a package belongs to nobody", v.Names[0].Name))
				}
			}
		}
	}
	return found
}

// embeds reports whether the variable is filled by the compiler, from a file.
func embeds(g *ast.GenDecl, v *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{g.Doc, v.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	return false
}

// fieldWord is a word of our own where the field has one, or one that says something else elsewhere.
type fieldWord struct {
	word string // a regular expression of whole words, in lower case
	say  string
}

// fieldWords are not said in an identifier, a comment or a document.
var fieldWords = []fieldWord{
	{`beats?|beaten|beating`, "heartbeat, or extend"},
	{`letters?`, "message, batch or envelope"},
	{`errands?`, "command, task or batch"},
	{`mailbox(?:es)?|postm[ae]n`, "queue, or outbox"},
	{`seats?`, "lock"},
	{`he|him|his|himself|she|her|hers|herself`, "they"},
	{`tells? (?:\S+ ){1,4}apart|told apart`, "distinguish: to tell is to let somebody know"},
	{`shared (?:steps?|tasks?|attempts?)`, "exclusive: false"}, // In documents: Go's field is Shared, for the sake of its zero value.
}

// fieldPhrases are the field's own, with a word in them that is elsewhere ours.
var fieldPhrases = regexp.MustCompile(`\bdead-?(?:\s|//)*letter(?:s|ed)?\b|\bletters and digits\b`)

// fieldExceptions are the files, or folders, in which a word is meant as anybody means it.
var fieldExceptions = []struct{ path, word, why string }{
	{"docs/deploy.md", "letter", "the sample workflow hello writes one"},
	{"engine/engine_test.go", "letter", "the workflow of the test writes one"},
	{"engine/engine_test.go", "letters", "the workflow of the test writes them"},
	{"engine/example_test.go", "seat", "one in an aeroplane"},
	{"internal/httpagent/request.go", "letter", "one of the alphabet"},
	{"workflows/hello/", "letter", "the sample workflow writes one"},
}

func checkFieldWords(sources []source) []string {
	var found []string
	for _, s := range sources {
		if s.path == "CHANGELOG.md" {
			continue // It tells of the past in the words of then.
		}
		if s.file == nil {
			found = append(found, saidIn(s, s.text, 1)...)
			continue
		}
		for _, group := range s.file.Comments {
			found = append(found, saidIn(s, s.text[s.offset(group.Pos()):s.offset(group.End())], s.line(group.Pos()))...)
		}
		known := map[string]bool{}
		for _, name := range named(s.file) {
			if !known[name.Name] {
				found = append(found, saidIn(s, spaced(name.Name), s.line(name.Pos()))...)
			}
			known[name.Name] = true
		}
	}
	return found
}

// fieldRule finds any of fieldWords; which one it was says the number of its group.
var fieldRule = regexp.MustCompile(`\b(?:` + strings.Join(fieldPatterns(), "|") + `)\b`)

func fieldPatterns() (patterns []string) {
	for _, w := range fieldWords {
		patterns = append(patterns, "("+w.word+")")
	}
	return patterns
}

// saidIn returns what is said in a text that begins in a line of the source.
func saidIn(s source, text string, line int) []string {
	text = strings.ToLower(text)
	if !fieldRule.MatchString(text) {
		return nil
	}
	text = fieldPhrases.ReplaceAllStringFunc(text, func(phrase string) string {
		return strings.Repeat("\n", strings.Count(phrase, "\n"))
	})
	var found []string
	for _, at := range fieldRule.FindAllStringSubmatchIndex(text, -1) {
		said, group := text[at[0]:at[1]], 1
		for at[2*group] < 0 {
			group++
		}
		if !excepted(s, said) {
			found = append(found, fmt.Sprintf("%s:%d: %q: say %s", s.path, line+strings.Count(text[:at[0]], "\n"), said, fieldWords[group-1].say))
		}
	}
	return found
}

func excepted(s source, word string) bool {
	if s.file != nil && strings.HasPrefix(word, "shared ") {
		return true
	}
	for _, e := range fieldExceptions {
		if e.word == word && strings.HasPrefix(s.path, e.path) {
			return true
		}
	}
	return false
}

// No exception is there for a file that has gone, or that says the word no more.
func TestEveryExceptionOfTheWordsIsNeeded(t *testing.T) {
	sources := readTree(t)
	for _, e := range fieldExceptions {
		if e.why == "" || !slices.ContainsFunc(sources, func(s source) bool {
			return strings.HasPrefix(s.path, e.path) && strings.Contains(strings.ToLower(s.text), e.word)
		}) {
			t.Errorf("%s %q: want a reason, and a file that says it", e.path, e.word)
		}
	}
}

// named returns the identifiers of a file, but for those that stand behind a dot: a thing of ours is declared
// somewhere.
func named(f *ast.File) []*ast.Ident {
	behind := map[*ast.Ident]bool{}
	var names []*ast.Ident
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			behind[n.Sel] = true
		case *ast.Ident:
			if !behind[n] {
				names = append(names, n)
			}
		}
		return true
	})
	return names
}

// spaced returns the words of an identifier.
func spaced(identifier string) string {
	var words strings.Builder
	for i, c := range identifier {
		if c == '_' || unicode.IsUpper(c) && i > 0 {
			words.WriteByte(' ')
		}
		if c != '_' {
			words.WriteRune(c)
		}
	}
	return words.String()
}

// checkReturns wants of the doc comment of a function what those of the standard library say first.
func checkReturns(sources []source) []string {
	var found []string
	for _, s := range goFiles(sources) {
		for _, d := range s.file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Doc == nil || f.Type.Results == nil {
				continue
			}
			doc, has := strings.CutPrefix(f.Doc.Text(), f.Name.Name+" ")
			switch {
			case !has:
			case strings.HasPrefix(doc, "gives ") && !givesAway.MatchString(doc):
				found = append(found, s.at(f.Pos(), "%s gives: say returns", f.Name.Name))
			case strings.HasPrefix(doc, "says whether ") || strings.HasPrefix(doc, "tells whether "):
				found = append(found, s.at(f.Pos(), "%s says whether: say reports whether", f.Name.Name))
			}
		}
	}
	return found
}

// givesAway is what gives up, or gives something to somebody.
var givesAway = regexp.MustCompile(`^gives (up|back|\S+( \S+){0,2} (up|back|free|its|their|to)|an? \S+ (the|its|an?)|every|both)\b`)

func wordRules() []rule {
	return []rule{
		{
			name:  "a package is named for what it does",
			check: checkPackageNames,
			wrong: []mistake{
				{`internal/util: "util"`, tree{"internal/util/a.go": "package util\n"}},
				{`internal/common/x: "common"`, tree{"internal/common/x/a.go": "package x\n"}},
				{`internal/x: "helpers"`, tree{"internal/x/a.go": "package helpers\n"}},
				{`"models"`, tree{"models/a_test.go": "package models_test\n"}},
				{`"misc"`, tree{"misc/a.go": "package misc\n", "misc/b.go": "package misc\n"}},
			},
			good: []tree{{"internal/wire/a.go": "package wire\n", "internal/utility/a.go": "package utility\n"}},
		},
		{
			name:  "the field's words are said",
			check: checkFieldWords,
			wrong: []mistake{
				{`a.go:2: "beat": say heartbeat`, tree{"a.go": "package a\nfunc doBeat() {}\n"}},
				{`a.go:4: "letters": say message, batch or envelope`, tree{"a.go": "package a\n\n// What is there:\n// letters.\n"}},
				{`"errand": say command`, tree{"a_test.go": "package a\nfunc f() { errand := 1 }\n"}},
				{`"mailbox": say queue`, tree{"a.go": "package a\ntype mailbox struct{}\n"}},
				{`"seat": say lock`, tree{"a.go": "package a\ntype t struct{ writer_seat int }\n"}},
				{`docs/x.md:2: "him": say they`, tree{"docs/x.md": "An operator:\nask him.\n"}},
				{`"told apart": say distinguish`, tree{"README.md": "The two are told apart.\n"}},
				{`"shared step": say exclusive: false`, tree{"docs/x.md": "A shared step.\n"}},
			},
			good: []tree{{
				"a.go":         "package a\n// A heartbeat; the history of others, in letters and digits; dead\n// letters.\nvar deadLetter, x = \"his letter\", unicode.Letter\n",
				"CHANGELOG.md": "Beat is Heartbeat.\n", "workflows/hello/a.go": "package hello\ntype Letter int\n",
			}},
		},
		{
			name:  "a function returns and reports",
			check: checkReturns,
			wrong: []mistake{
				{"a.go:3: f gives: say returns", tree{"a.go": "package a\n// f gives one.\nfunc f() int { return 1 }\n"}},
				{"f says whether: say reports", tree{"a_test.go": "package a\n// f says whether it is.\nfunc (t) f() bool { return true }\n"}},
			},
			good: []tree{{"a.go": "package a\n// f gives a lease up.\nfunc f() error { return nil }\n// g gives a reader its text.\nfunc g() {}\n// h returns one.\nfunc h() int { return 1 }\n"}},
		},
		{
			name:  "nothing is left for later in a comment",
			check: checkUnfinished,
			wrong: []mistake{
				{"a.go:2: TO" + "DO", tree{"a.go": "package a\n// TO" + "DO: later\n"}},
				{"FIX" + "ME", tree{"a_test.go": "package a\n/* FIX" + "ME */\n"}},
			},
			good: []tree{{"a.go": "package a\n// todos are a word like any other\nvar s = \"TO" + "DO\"\n"}},
		},
		{
			name:  "a package says what it does",
			check: checkPackageComments,
			wrong: []mistake{
				{"internal/a: no package comment", tree{"internal/a/a.go": "package a\n", "internal/a/b.go": "package a\n"}},
				{"internal/a: no package comment", tree{"internal/a/a.go": "package a\n", "internal/a/a_test.go": "// Package a is said in the wrong place.\npackage a\n"}},
				{"internal/a: no package comment", tree{"internal/a/a_test.go": "package a\n"}},
				{"internal/a: no package comment", tree{"internal/a/a.go": "// Detached.\n\npackage a\n"}},
			},
			good: []tree{
				{"internal/a/a.go": "// Package a does.\npackage a\n", "internal/a/b.go": "package a\n", "internal/a/a_test.go": "package a_test\n"},
				{"internal/a/a_test.go": "// Package a has tests only.\npackage a\n"},
			},
		},
		{
			name:  "what is public says what it is",
			check: checkDoc,
			wrong: []mistake{
				{"a.go:2: F is public", tree{"a.go": "package a\nfunc F() {}\n"}},
				{"F is public", tree{"agent/a.go": "package a\nfunc (t *T[x]) F() {}\n"}},
				{"T is public", tree{"agent/a.go": "package a\ntype T int\n"}},
				{"T is public", tree{"agent/a.go": "package a\n// Types.\ntype (\n\tT int\n)\n"}},
				{"V is public", tree{"a.go": "package a\nvar V = 1\n"}},
				{"C is public", tree{"a.go": "package a\nconst (\n\tC = 1\n)\n"}},
			},
			good: []tree{
				{"a.go": "package a\n// F does.\nfunc F() {}\n// T is.\ntype T int\n// All.\nconst (\n\tA = 1\n\tB = 2\n)\nconst (\n\tC = 3 // says it\n)\nfunc (t) M() {}\nfunc f() {}\n"},
				{"internal/x/a.go": "package a\nfunc F() {}\n", "a_test.go": "package a\nfunc F() {}\n"},
			},
		},
		{
			name:  "no package keeps state",
			check: checkVariables,
			wrong: []mistake{
				{"a.go:2: count is set at run time", tree{"a.go": "package a\nvar count int\n"}},
				{"mu is set at run time", tree{"a.go": "package a\nvar (\n\terr = f()\n\tmu sync.Mutex\n)\n"}},
			},
			good: []tree{{
				"a.go":      "package a\nvar ErrGone = f()\nvar table = []int{1}\nvar _ I = T{}\n//go:embed a.txt\nvar text string\nfunc f() { var n int; _ = n }\n",
				"a_test.go": "package a\nvar count int\n",
			}},
		},
	}
}
