package tidy

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A comment is plain English: a noun, then a verb. Four habits are counted, each per 1,000 words of a package's comments, and lines above
// 120 characters as they are. The limits are those of the target; a package above has a row, whose figures only fall.
const (
	maxHabit       = 3.0 // of each habit, per 1,000 words
	maxPublicHabit = 1.0 // the same, in a package that users import
	maxLine        = 120 // characters, tabs counted as four
	// smallComments is below how many words of comments a package is not measured: one "nothing" would be too much.
	smallComments = 300
)

// habit is something that our comments do and those of others do not.
type habit struct {
	name  string
	found *regexp.Regexp
}

var habits = []habit{
	{`"what is" as a subject`, regexp.MustCompile(`(?i)\bwhat(ever)? (is|are|was|were|has|have|had|can|could|may|must|it|they|he|she|comes?|came|goes|went|happens|happened|follows|stands|stays|waits?|does)\b`)},
	{"nobody, somebody, nothing", regexp.MustCompile(`(?i)\b(nobody|somebody|nothing|something|anybody|everybody)\b`)},
	{"who, whoever", regexp.MustCompile(`(?i)\b(who|whoever|whom|whose)\b`)},
	{"of which, of it", regexp.MustCompile(`(?i)\bof (which|whom|it|them)\b`)},
}

// grammar is what a package's comments come to: words, each habit, and lines that are too long.
type grammar struct {
	words  int
	counts [4]int
	long   int
}

// per is a habit per 1,000 words, rounded up to a tenth.
func (g grammar) per(habit int) float64 {
	tenths := (g.counts[habit]*10_000 + g.words - 1) / max(1, g.words)
	return float64(tenths) / 10
}

// excused is a package above the limits, as it was when the row was written: how often it has each habit, and its long lines.
type excused struct {
	habits [4]int
	long   int
}

// isPublic reports whether users import a package.
func isPublic(folder string) bool {
	for _, inner := range []string{"internal/", "lab/", "importer/", "examples", "cmd/", "functions/", "localstack", "workflows", "kits/"} {
		if strings.HasPrefix(folder+"/", strings.TrimSuffix(inner, "/")+"/") {
			return false
		}
	}
	return true
}

func measure(sources []source) map[string]grammar {
	all := map[string]grammar{}
	for _, s := range sources {
		if s.file == nil || strings.HasSuffix(s.path, "_test.go") || strings.Contains(s.text, "Code generated") {
			continue
		}
		folder := path.Dir(s.path)
		g := all[folder]
		for _, group := range s.file.Comments {
			text := group.Text()
			g.words += len(strings.Fields(text))
			for i, h := range habits {
				g.counts[i] += len(h.found.FindAllString(text, -1))
			}
		}
		for line := range strings.Lines(s.text) {
			if line := strings.TrimSpace(line); strings.HasPrefix(line, "//") && len([]rune(line)) > maxLine {
				g.long++
			}
		}
		all[folder] = g
	}
	return all
}

// grammarRows reads the rows: FOLDER, how often it has the four habits, and the long lines.
func grammarRows() map[string]excused {
	rows := map[string]excused{}
	for line := range strings.Lines(grammarFile) {
		var folder string
		var row excused
		if n, err := fmt.Sscan(line, &folder, &row.habits[0], &row.habits[1], &row.habits[2], &row.habits[3], &row.long); err != nil || n != 6 {
			panic(fmt.Sprintf("lab/tidy/testdata/grammar.txt: %q: %v", line, err))
		}
		rows[folder] = row
	}
	return rows
}

// checkGrammar compares each package with its limits or its row.
func checkGrammar(sources []source) (found []string) {
	all, rows := measure(sources), grammarRows()
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		g, row := all[folder], rows[folder]
		limit := maxHabit
		if isPublic(folder) {
			limit = maxPublicHabit
		}
		for i, h := range habits {
			if g.words >= smallComments && g.per(i) > limit && g.counts[i] > row.habits[i] {
				found = append(found, fmt.Sprintf("%s: %d times %s in its comments, %.1f in 1,000 words; the limit is %.1f, its row says %d (lab/tidy/testdata/grammar.txt)",
					folder, g.counts[i], h.name, g.per(i), limit, row.habits[i]))
			}
		}
		if g.long > row.long {
			found = append(found, fmt.Sprintf("%s: %d lines of comment above %d characters, the limit is %d (lab/tidy/testdata/grammar.txt)", folder, g.long, maxLine, row.long))
		}
	}
	return found
}

//go:embed testdata/grammar.txt
var grammarFile string

// With -rewrite the rows become the figures of today, where these are lower: no figure rises, and no row comes.
func TestTheRowsOfTheGrammarFall(t *testing.T) {
	all, rows := measure(readTree(t)), grammarRows()
	var text strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(rows)) {
		row, g := rows[folder], all[folder]
		for i := range row.habits {
			row.habits[i] = min(row.habits[i], g.counts[i])
		}
		row.long = min(row.long, g.long)
		limit := maxHabit
		if isPublic(folder) {
			limit = maxPublicHabit
		}
		if g.words >= smallComments && max(g.per(0), g.per(1), g.per(2), g.per(3)) > limit || row.long > 0 {
			fmt.Fprintln(&text, folder, row.habits[0], row.habits[1], row.habits[2], row.habits[3], row.long)
		}
	}
	if text.String() == grammarFile {
		return
	}
	if !*rewrite {
		t.Fatal("comments have become plainer: go test ./lab/tidy -run Grammar -rewrite")
	}
	if err := os.WriteFile("testdata/grammar.txt", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func grammarRules() []rule {
	many := strings.Repeat("One step does a task.\n// ", 80) // 400 words
	comment := func(text string) string { return "package a\n\n// A is a thing. " + text + "\nvar A int\n" }
	return []rule{{
		name:  "comments are plain English",
		check: checkGrammar,
		wrong: []mistake{
			{"internal/a: 2 times \"what is\" as a subject in its comments, 4.9 in 1,000 words; the limit is 3.0, its row says 0", tree{"internal/a/a.go": comment(many + "It shows what is there, and what was.")}},
			{"elsewhere: 1 times nobody, somebody, nothing", tree{"elsewhere/a.go": comment(many + "Nobody is asked.")}},
			{"internal/a: 2 times who, whoever", tree{"internal/a/a.go": comment(many + "Whoever asks knows who it was.")}},
			{"internal/a: 2 times of which, of it", tree{"internal/a/a.go": comment(many + "A job of which a part, of it all.")}},
			{"internal/a: 1 lines of comment above 120", tree{"internal/a/a.go": "package a\n// " + strings.Repeat("x", 118) + "\n"}},
		},
		good: []tree{{
			"internal/a/a.go": comment(many + "It shows what is there."), "internal/b/b.go": "package b\n// Nobody, nothing, whoever.\n// " + strings.Repeat("x", 117) + "\n",
			"internal/a/a_test.go": "package a\n// " + strings.Repeat("x", 200) + "\n",
		}},
	}}
}
