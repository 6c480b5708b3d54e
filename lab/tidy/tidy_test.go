package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder, seen from here.
const root = "../.."

// source is a file of the tree.
type source struct {
	path string // from the module's folder, with slashes
	text string
	file *ast.File      // nil for what is not Go
	fset *token.FileSet // one for all files of a tree
}

// rule is something that must hold of the tree.
type rule struct {
	name  string
	check func([]source) []string // gives "FILE:LINE: what is wrong", or "FOLDER: what is wrong"
	// Each of wrong breaks the rule, and good does not. A rule that finds nothing in its mistakes
	// is no rule.
	wrong []mistake
	good  []tree
}

// mistake is a small tree that breaks a rule, and what must be said of it.
type mistake struct {
	says string
	tree tree
}

// tree is the text of files by their path.
type tree map[string]string

func rules() []rule {
	return slices.Concat(arrowRules(), pureRules(), layerRules(), shapeRules(), wordRules(), budgetRules(), grammarRules(), textRules())
}

func TestTheTreeIsTidy(t *testing.T) {
	sources := readTree(t)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, found := range r.check(sources) {
				t.Error(found)
			}
		})
	}
}

func TestEveryRuleFindsItsMistakes(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			if len(r.wrong) == 0 || len(r.good) == 0 {
				t.Fatalf("got %d mistakes and %d good trees, want some of both", len(r.wrong), len(r.good))
			}
			for _, m := range r.wrong {
				found := r.check(plant(t, m.tree))
				if len(found) != 1 || !strings.Contains(found[0], m.says) {
					t.Errorf("%v:\ngot  %q\nwant one finding with %q", m.tree, found, m.says)
				}
			}
			for _, good := range r.good {
				if found := r.check(plant(t, good)); len(found) > 0 {
					t.Errorf("%v:\ngot  %q\nwant nothing", good, found)
				}
			}
		})
	}
}

// readTree reads every Go and Markdown file, but for those that the go command does not see either.
func readTree(t *testing.T) []source {
	t.Helper()
	var sources []source
	fset := token.NewFileSet()
	folders := workspace(t)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// A module outside the workspace, such as a project that makegood new has written here, belongs to its author,
			// and so do the packages that npm has fetched.
			_, missing := os.Stat(filepath.Join(name, "go.mod"))
			if !slices.Contains(folders, name) && (hidden(entry.Name()) || entry.Name() == "node_modules" || missing == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s, err := parse(fset, filepath.ToSlash(relative), string(text))
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	if len(sources) < 10 {
		t.Fatalf("read %d files under %s, which cannot be all", len(sources), root)
	}
	return sources
}

// workspace returns the folders of the modules in go.work, seen from here.
func workspace(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, use := range regexp.MustCompile(`(?m)^\t(\.\S*)$`).FindAllStringSubmatch(read(t, "go.work"), -1) {
		folders = append(folders, filepath.Join(root, use[1]))
	}
	if len(folders) < 2 {
		t.Fatalf("go.work names the modules %q, want the product's and the laboratory's", folders)
	}
	return folders
}

func hidden(folder string) bool {
	return folder[0] == '.' || folder[0] == '_' || folder == "testdata" || folder == "bin"
}

func parse(fset *token.FileSet, name, text string) (source, error) {
	s := source{path: name, text: text, fset: fset}
	if !strings.HasSuffix(name, ".go") {
		return s, nil
	}
	var err error
	s.file, err = parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

func plant(t *testing.T, files tree) []source {
	t.Helper()
	var sources []source
	fset := token.NewFileSet()
	for name, text := range files {
		s, err := parse(fset, name, text)
		if err != nil {
			t.Fatalf("planted %s: %v", name, err)
		}
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return sources
}

// dir is the source's folder; "." is the root package's.
func (s source) dir() string { return path.Dir(s.path) }

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at writes where something is.
func (s source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.line(pos), fmt.Sprintf(format, args...))
}

func (s source) line(pos token.Pos) int { return s.fset.Position(pos).Line }

func (s source) offset(pos token.Pos) int { return s.fset.Position(pos).Offset }

// goFiles returns the Go files; ours those that are no tests.
func goFiles(sources []source) []source {
	return slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return s.file == nil })
}

func ours(sources []source) []source {
	return slices.DeleteFunc(goFiles(sources), source.isTest)
}
