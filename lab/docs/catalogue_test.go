package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxOpen is how many rows of the catalogue may be provoked by nothing.
const maxOpen = 5

// families are the rows of the catalogue: PREFIX1 to PREFIXn.
var families = []struct {
	prefix string
	count  int
}{
	{"I", 18},
	{"SUB-", 11},
	{"CLM-", 7},
	{"DSP-", 10},
	{"RCV-", 8},
	{"WRK-", 11},
	{"RPL-", 8},
	{"CMP-", 3},
	{"ADV-", 5},
	{"SWP-", 8},
	{"REC-", 8},
	{"CPS-", 5},
	{"NTF-", 4},
	{"SCH-", 4},
	{"OPS-", 9},
}

func catalogue() []string {
	var ids []string
	for _, f := range families {
		for n := 1; n <= f.count; n++ {
			ids = append(ids, fmt.Sprintf("%s%d", f.prefix, n))
		}
	}
	return ids
}

// The list of ids is that of the catalogue which the project was given, where that is at hand.
func TestTheCatalogueIsTheOneThatWasGiven(t *testing.T) {
	text, err := os.ReadFile("../../../shared/failure-modes.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the catalogue that was given is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var given []string
	for _, m := range regexp.MustCompile(`(?m)^\| \**([A-Z]{3}-\d+|I\d+)\b`).FindAllStringSubmatch(string(text), -1) {
		given = append(given, m[1])
	}
	slices.Sort(given)
	if want := slices.Sorted(slices.Values(catalogue())); !slices.Equal(given, want) {
		t.Errorf("the catalogue that was given has %v, the list here %v", given, want)
	}
}

func TestEveryRowOfTheCatalogueIsProvokedOrLater(t *testing.T) {
	known := map[string]tested{}
	wrong, open := checkCatalogue(read(t, "docs/failure-modes.md"), catalogue(), func(folder string) (tested, error) {
		if tests, ok := known[folder]; ok {
			return tests, nil
		}
		tests, err := readPackage(folder)
		known[folder] = tests
		return tests, err
	})
	for _, w := range wrong {
		t.Errorf("docs/failure-modes.md: %s", w)
	}
	for _, row := range open {
		t.Logf("open: %s", row)
	}
	if len(open) > maxOpen {
		t.Errorf("%d rows are open, want at most %d", len(open), maxOpen)
	}
}

func TestAHoleInTheCatalogueIsFound(t *testing.T) {
	tests := func(folder string) (tested, error) {
		if folder != "a/b" {
			return tested{}, fs.ErrNotExist
		}
		return tested{functions: map[string]bool{"TestX": true}, names: map[string]bool{"one thing": true}}, nil
	}
	const good = "| X-1 | it breaks | `a/b.TestX`, `a/b.TestX/one_thing` |\n"
	for text, want := range map[string]string{
		good + "| X-2 | it bends | later: issue 9 |\n":              "",
		good + "| X-2 | it bends | `a/b.TestX`; later: issue 9 |\n": "",
		good + "| X-2 | it bends | open: nobody bends it |\n":       "open X-2 it bends: nobody bends it",
		good:                                                                    "X-2 has no row",
		good + good + "| X-2 | a | later: b |\n":                                "X-1 has 2 rows",
		good + "| X-2 | it bends | |\n":                                         "X-2 has no test, and is neither later nor open",
		good + "| X-2 | it bends | later: |\n":                                  "X-2 has no test, and is neither later nor open",
		good + "| X-2 | | later: issue 9 |\n":                                   "X-2 does not say what goes wrong",
		good + "| X-2 | it bends | `a/b.TestY` |\n":                             "X-2 names a/b.TestY, and there is no such test",
		good + "| X-2 | it bends | `a/c.TestX` |\n":                             "X-2 names a/c.TestX: file does not exist",
		good + "| X-2 | it bends | `a/b.TestX/another` |\n":                     "X-2 names a/b.TestX/another, and there is no such subtest",
		good + "| X-2 | it bends | later: b |\n| X-3 | it flies | later: b |\n": "X-3 is not of the catalogue",
		good + "| X-2 | it bends | TestX |\n":                                   "X-2 has no test, and is neither later nor open",
		good + "| X-2 | it bends | `TestX` |\n":                                 "X-2 names TestX, want FOLDER.TestName",
	} {
		wrong, open := checkCatalogue(text, []string{"X-1", "X-2"}, tests)
		for _, o := range open {
			wrong = append(wrong, "open "+o)
		}
		if got := strings.Join(wrong, "; "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// tested is what a package's tests are called.
type tested struct {
	functions map[string]bool
	// names are all texts in the package and the names of its test data: what a subtest may be named by.
	names map[string]bool
}

var (
	rowOfCatalogue = regexp.MustCompile(`(?m)^\| ([A-Z]+-?\d+) \|([^|\n]*)\|([^|\n]*)\|$`)
	quoted         = regexp.MustCompile("`([^`]+)`")
	testName       = regexp.MustCompile(`^([\w/]+)\.(Test\w+)(?:/(\S+))?$`)
	without        = regexp.MustCompile(`(later|open): (.*\S)`)
)

// checkCatalogue says what is wrong with the document, and which of its rows are open.
func checkCatalogue(text string, ids []string, testsOf func(folder string) (tested, error)) (wrong, open []string) {
	rows := map[string]int{}
	for _, m := range rowOfCatalogue.FindAllStringSubmatch(text, -1) {
		id, what, by := m[1], strings.TrimSpace(m[2]), m[3]
		rows[id]++
		if !slices.Contains(ids, id) {
			wrong = append(wrong, id+" is not of the catalogue")
		}
		if what == "" {
			wrong = append(wrong, id+" does not say what goes wrong")
		}
		tests, reason := quoted.FindAllStringSubmatch(by, -1), without.FindStringSubmatch(by)
		if len(tests) == 0 && reason == nil {
			wrong = append(wrong, id+" has no test, and is neither later nor open")
		}
		if reason != nil && reason[1] == "open" {
			open = append(open, fmt.Sprintf("%s %s: %s", id, what, reason[2]))
		}
		for _, test := range tests {
			if problem := checkTest(test[1], testsOf); problem != "" {
				wrong = append(wrong, fmt.Sprintf("%s names %s%s", id, test[1], problem))
			}
		}
	}
	for _, id := range ids {
		switch rows[id] {
		case 0:
			wrong = append(wrong, id+" has no row")
		case 1:
		default:
			wrong = append(wrong, fmt.Sprintf("%s has %d rows", id, rows[id]))
		}
	}
	return wrong, open
}

// checkTest says what is wrong with the name of a test.
func checkTest(name string, testsOf func(folder string) (tested, error)) string {
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return ", want FOLDER.TestName"
	}
	tests, err := testsOf(m[1])
	if err != nil {
		return ": " + err.Error()
	}
	if !tests.functions[m[2]] {
		return ", and there is no such test"
	}
	for sub := range strings.SplitSeq(m[3], "/") {
		if sub != "" && !tests.names[sub] && !tests.names[strings.ReplaceAll(sub, "_", " ")] {
			return ", and there is no such subtest"
		}
	}
	return ""
}

// suites are the packages whose rules are the subtests of others.
var suites = []string{"internal/store/storetest"}

// readPackage reads the tests of a folder, whatever their build tags.
func readPackage(folder string) (tested, error) {
	found := tested{functions: map[string]bool{}, names: map[string]bool{}}
	for _, dir := range append(suites, folder) {
		files, err := filepath.Glob("../../" + dir + "/*.go")
		if err != nil {
			return found, err
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return found, err
			}
			found.note(file, dir == folder && strings.HasSuffix(name, "_test.go"))
		}
	}
	return found, found.noteData("../../" + folder + "/testdata")
}

// note keeps the texts of a file, and the test functions if it holds those of the package itself.
func (found tested) note(file *ast.File, own bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if own && n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") {
				found.functions[n.Name.Name] = true
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				found.names[text] = true
			}
		}
		return true
	})
}

// noteData keeps the names of test data, without their endings.
func (found tested) noteData(dir string) error {
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found.names[strings.TrimSuffix(entry.Name(), filepath.Ext(name))] = true
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
