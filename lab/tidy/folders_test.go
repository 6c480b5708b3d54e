package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// table is one of this package that names folders; whole: a folder stands for those below it, too.
type table struct {
	name    string
	folders []string
	whole   bool
}

func tables() []table {
	var from, to []string
	for _, a := range arrows {
		from, to = append(from, a.from), append(to, a.to...)
	}
	return []table{
		{"arrows", from, false},
		{"arrows", to, false},
		{"awsFolders", awsFolders, true},
		{"noLibraries", noLibraries, true},
		{"pure", slices.Sorted(maps.Keys(pure)), false},
		{"public", public, false},
	}
}

// checkTables finds folders in tables that the tree has not: a law for nobody looks as if it held.
func checkTables(tables []table, sources []source) []string {
	packages := map[string]bool{}
	for _, s := range goFiles(sources) {
		packages[s.dir()] = true
	}
	var found []string
	for _, t := range tables {
		for _, folder := range t.folders {
			if !t.names(folder, packages) {
				found = append(found, fmt.Sprintf("%s: no such package, and the table %s names it (lab/tidy)", folder, t.name))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// names reports whether a folder of the table stands for at least one of the packages.
func (t table) names(folder string, packages map[string]bool) bool {
	prefix, wild := strings.CutSuffix(folder, "*")
	for dir := range packages {
		switch {
		case wild && strings.HasPrefix(dir, prefix):
			return true
		case dir == folder || t.whole && within(dir, strings.TrimSuffix(folder, "/")):
			return true
		}
	}
	return false
}

func TestTheTablesNameOnlyFoldersThatExist(t *testing.T) {
	for _, found := range checkTables(tables(), readTree(t)) {
		t.Error(found)
	}
}

// The tables of a small tree, since it has none of the folders of ours.
func TestAFolderThatATableNamesAndTheTreeHasNotIsFound(t *testing.T) {
	small := []table{
		{"arrows", []string{".", "a", "b/*"}, false},
		{"arrows", []string{"*", "a"}, false},
		{"whole", []string{"c", "d/"}, true},
	}
	for _, row := range []struct{ gone, instead, want string }{
		{"", "", ""},
		{"r.go", "", ".: no such package, and the table arrows names it"},
		{"a/a.go", "", "a: no such package, and the table arrows names it"},
		{"a/a.go", "a/a.md", "a: no such package, and the table arrows names it"},
		{"a/a.go", "a/x/a.go", "a: no such package, and the table arrows names it"},
		{"b/x/b.go", "b/b.go", "b/*: no such package, and the table arrows names it"},
		{"c/x/c.go", "c/c.go", ""},
		{"c/x/c.go", "cc/c.go", "c: no such package, and the table whole names it"},
		{"d/d.go", "d/x/d.go", ""},
		{"d/d.go", "", "d/: no such package, and the table whole names it"},
	} {
		files := tree{"r.go": "package r\n", "a/a.go": "package a\n", "b/x/b.go": "package b\n", "c/x/c.go": "package c\n", "d/d.go": "package d\n"}
		delete(files, row.gone)
		if row.instead != "" {
			files[row.instead] = "package p\n"
		}
		if got := strings.Join(checkTables(small, plant(t, files)), "; "); got != row.want && !strings.HasPrefix(got, row.want+" (") {
			t.Errorf("%q instead of %q: got %q, want %q", row.instead, row.gone, got, row.want)
		}
	}
}
