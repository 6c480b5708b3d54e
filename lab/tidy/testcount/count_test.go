package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a module of one package for each named file, and makes it the working directory.
func module(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

const goodTests = `package a

import "testing"

func TestPasses(t *testing.T)  {}
func TestSkips(t *testing.T)   { t.Skip("not here") }
func TestParent(t *testing.T)  { t.Run("one", TestPasses); t.Run("two", TestPasses); t.Run("three", TestSkips) }
func Example()                 { /* Output: */ }
func FuzzSeeds(f *testing.F)   { f.Add(1); f.Add(2); f.Fuzz(func(*testing.T, int) {}) }
`

const badTests = `package b

import "testing"

func TestPasses(t *testing.T)     {}
func TestFails(t *testing.T)      { t.Error("the reason") }
func TestChildFails(t *testing.T) { t.Run("bad", TestFails); t.Run("good", TestPasses) }
func TestFailsItself(t *testing.T) { t.Run("good", TestPasses); t.Error("of its own") }
`

func TestEveryTestIsCountedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		last  string
		code  int
		says  []string
	}{
		"all is well": {
			map[string]string{"a/a_test.go": goodTests, "none/none.go": "package none\n"},
			"6 passed, 0 failed, 2 skipped", 0,
			[]string{"ok    example.org/m/a", "-     example.org/m/none  no tests"},
		},
		"a test fails": {
			map[string]string{"a/a_test.go": goodTests, "b/b_test.go": badTests},
			"9 passed, 3 failed, 2 skipped", 1,
			[]string{"FAIL  example.org/m/b", "the reason", "of its own"},
		},
		"a package does not build": {
			map[string]string{"a/a_test.go": goodTests, "b/b.go": "package b\n\nvar x int = true\n", "b/b_test.go": badTests},
			"6 passed, 1 failed, 2 skipped", 1,
			[]string{"FAIL  example.org/m/b", "cannot use true"},
		},
		"the process dies": {
			map[string]string{"b/b_test.go": "package b\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
				"func TestPasses(t *testing.T) {}\n\nfunc TestDies(t *testing.T) { os.Exit(3) }\n"},
			"1 passed, 1 failed, 0 skipped", 1,
			[]string{"FAIL  example.org/m/b"},
		},
		"TestMain fails": {
			map[string]string{"b/b_test.go": "package b\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
				"func TestPasses(t *testing.T) {}\n\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(1) }\n"},
			"1 passed, 1 failed, 0 skipped", 1,
			[]string{"FAIL  example.org/m/b"},
		},
		"there is no test": {
			map[string]string{"none/none.go": "package none\n"},
			"0 passed, 0 failed, 0 skipped", 1,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			module(t, row.files)
			var out, errs bytes.Buffer
			if code := run([]string{"./..."}, &out, &errs); code != row.code {
				t.Errorf("exit code: got %d, want %d; said %s", code, row.code, &errs)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != row.last {
				t.Errorf("last line: got %q, want %q in\n%s", got, row.last, &out)
			}
			for _, want := range row.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", &out, want)
				}
			}
		})
	}
}

func TestArgumentsGoToGoTest(t *testing.T) {
	module(t, map[string]string{"b/b_test.go": badTests})
	var out, errs bytes.Buffer
	if code := run([]string{"-run", "TestPasses", "./b"}, &out, &errs); code != 0 || !strings.HasSuffix(out.String(), "1 passed, 0 failed, 0 skipped\n") {
		t.Errorf("got %d and\n%s%s", code, &out, &errs)
	}
}
