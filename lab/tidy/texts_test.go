package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxText is the limit of each habit per 1,000 words, in all texts that the product prints and in all openings of its docs.
const maxText = 0.5

// suites are the packages of the product with texts for its tests alone.
var suites = []string{"internal/testkit", "internal/store/storetest", "internal/queue/queuetest", "internal/payload/payloadtest"}

// said is what texts come to, with the places of each habit.
type said struct {
	grammar
	places [4][]string
}

func (s *said) add(place, text string) {
	words := strings.Fields(text)
	s.words += len(words)
	for i, h := range habits {
		n := len(h.found.FindAllString(strings.Join(words, " "), -1))
		s.counts[i] += n
		s.places[i] = append(s.places[i], slices.Repeat([]string{place}, n)...)
	}
}

// above returns a finding for each habit over the limit.
func (s *said) above(where string) (found []string) {
	for i, h := range habits {
		if s.words >= smallComments && s.per(i) > maxText {
			found = append(found, fmt.Sprintf("%s: %d times %s, %.1f in 1,000 words; the limit is %.1f: %s",
				where, s.counts[i], h.name, s.per(i), maxText, strings.Join(s.places[i], ", ")))
		}
	}
	return found
}

// checkTexts reads the sentences among the string literals of the product: messages, help, logs.
func checkTexts(sources []source) []string {
	var all said
	for _, s := range ours(sources) {
		aside := func(top string) bool { return within(s.dir(), top) }
		if slices.ContainsFunc(besideProduct, aside) || slices.ContainsFunc(suites, aside) || strings.Contains(s.text, "Code generated") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING && strings.Contains(l.Value, " ") {
				text, _ := strconv.Unquote(l.Value)
				// SQL has a word for it.
				all.add(s.at(l.Pos(), "%.30s", text), strings.ReplaceAll(text, " DO NOTHING", ""))
			}
			return true
		})
	}
	return all.above("texts of the product")
}

// checkOpenings reads the first paragraph below each heading of README.md and docs/*.md.
func checkOpenings(sources []source) []string {
	var all said
	for _, s := range sources {
		if s.path == "README.md" || path.Dir(s.path) == "docs" && path.Ext(s.path) == ".md" {
			for line, text := range openings(s.text) {
				all.add(fmt.Sprintf("%s:%d", s.path, line), text)
			}
		}
	}
	for i := range all.places {
		slices.Sort(all.places[i])
	}
	return all.above("openings of the docs")
}

// openings returns the first paragraph below each heading, by its line; a list, a table or code below a heading is none.
func openings(page string) map[int]string {
	found := map[int]string{}
	first, below, code := 0, false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			first, below, code = 0, false, !code
		case code:
		case strings.HasPrefix(line, "#"):
			first, below = 0, true
		case line == "":
			below, first = below && first == 0, 0
		case below && first == 0 && (strings.ContainsAny(line[:1], "|-<!") || strings.HasPrefix(line, "1. ")):
			below = false
		case below:
			if first == 0 {
				first = i + 1
			}
			found[first] += line + "\n"
		}
	}
	return found
}

func textRules() []rule {
	many := strings.Repeat("one step does a task ", 80) // 400 words
	text := func(more string) string { return "package a\n\nvar a = `" + many + more + "`\n" }
	page := func(more string) string { return "# A page\n\n" + many + "\n" + more + "\n\n" }
	return []rule{
		{
			name:  "texts are plain English",
			check: checkTexts,
			wrong: []mistake{
				{`texts of the product: 1 times "what is" as a subject, 2.5 in 1,000 words; the limit is 0.5: internal/a/b.go:2: it shows what is there`, tree{
					"internal/a/a.go": text(""), "internal/a/b.go": "package a\nvar b = \"it shows what is there\"\n",
				}},
				{"2 times nobody, somebody, nothing", tree{"a.go": text("nobody says something")}},
				{"1 times who, whoever", tree{"command/a.go": text("whoever asks")}},
				{"1 times of which, of it", tree{"command/a.go": text("a part of it")}},
			},
			good: []tree{{
				"internal/a/a.go": text("") + "// nobody, whoever\nvar b, c = `nothing`, `ON CONFLICT DO NOTHING`\n", "internal/b/b_test.go": text("nobody"),
				"lab/a/a.go": text("nobody"), "examples/a/a.go": text("nobody"), "internal/store/storetest/a.go": text("nobody"), "internal/c/c.go": "// Code generated\n" + text("nobody"),
			}, {"internal/a/a.go": "package a\nvar a = `nobody knows`\n"}},
		},
		{
			name:  "the openings of docs are plain English",
			check: checkOpenings,
			wrong: []mistake{
				{`openings of the docs: 1 times "what is" as a subject, 2.5 in 1,000 words; the limit is 0.5: README.md:3`, tree{"README.md": page("It shows what is there.")}},
				{"1 times who, whoever, 2.5 in 1,000 words; the limit is 0.5: docs/a.md:8", tree{"docs/a.md": page("") + "\n## A section\nfor a reader\nwho asks\n"}},
				{"1 times of which, of it", tree{"docs/a.md": "# A page\n\n![](a.png)\n", "docs/b.md": page("A part of it.")}},
			},
			good: []tree{{
				"docs/a.md": page("") + "Nobody.\n\n```\n# nobody\n\nnobody\n```\n## Rows\n\n| nobody |\n## List\n- nobody\n\nNobody.\n## Code\n```\nnobody\n```\nNobody.\n", "docs/decisions/a.md": page("Nobody."),
				"lab/a.md": page("Nobody."),
			}},
		},
	}
}
