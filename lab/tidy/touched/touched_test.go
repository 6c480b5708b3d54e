package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a module in a repository of git, and makes it the working directory. mid and the test of other import
// low; top imports mid.
func repository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, map[string]string{
		"go.mod":                "module example.org/m\n\ngo 1.26\n",
		"README.md":             "# m\n",
		"low/low.go":            "package low\n\nimport _ \"embed\"\n\n//go:embed text.yaml\nvar Text string\n",
		"low/text.yaml":         "a: 1\n",
		"low/low_test.go":       "package low\n",
		"low/testdata/s.txt":    "story\n",
		"mid/mid.go":            "package mid\n\nimport (\n\t_ \"encoding/json\"\n\n\t_ \"example.org/m/low\"\n)\n",
		"top/top.go":            "package top\n\nimport (\n\t_ \"strings\"\n\n\t_ \"example.org/m/mid\"\n)\n",
		"other/other.go":        "package other\n",
		"other/other_test.go":   "package other\n\nimport _ \"example.org/m/low\"\n",
		"kits/kit.py":           "pass\n",
		"lab/tidy/tidy_test.go": "package tidy\n",
	})
	git(t, "init", "--quiet", "--initial-branch=main")
	git(t, "add", ".")
	git(t, "commit", "--quiet", "--message", "first")
}

func git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ask returns the packages that are printed, without the module's path, and what is said beside them.
func ask(t *testing.T, args ...string) (packages, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(args, &out, &errs); code != 0 {
		t.Fatalf("exit code: got %d, want 0; said %s", code, &errs)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "example.org/m/", "")), " "), errs.String()
}

func TestWhatAChangeTouches(t *testing.T) {
	for name, row := range map[string]struct {
		change map[string]string
		want   string
		says   string
	}{
		"nothing":                    {nil, "", "0 files changed"},
		"code":                       {map[string]string{"low/low.go": "package low\n"}, "low mid other lab/tidy", "1 packages of theirs, 2 that import these, 1 that read"},
		"an untracked file":          {map[string]string{"mid/more.go": "package mid\n"}, "mid top lab/tidy", ""},
		"a new package":              {map[string]string{"new/new.go": "package new\n"}, "new lab/tidy", ""},
		"a test":                     {map[string]string{"low/low_test.go": "package low\n\nvar x int\n"}, "low lab/tidy", ""},
		"what a package embeds":      {map[string]string{"low/text.yaml": "a: 2\n"}, "low mid other", ""},
		"what a test reads":          {map[string]string{"low/testdata/s.txt": "another\n"}, "low", ""},
		"a package of other builds":  {map[string]string{"tagged/a.go": "//go:build tagged\n\npackage tagged\n"}, "lab/tidy", "tested here: tagged/a.go"},
		"a page":                     {map[string]string{"README.md": "# n\n"}, "lab/tidy", ""},
		"what belongs to no package": {map[string]string{"kits/kit.py": "1\n"}, "", "LEFT OUT are 1 files outside the packages tested here: kits/kit.py"},
	} {
		t.Run(name, func(t *testing.T) {
			repository(t)
			write(t, row.change)
			got, said := ask(t)
			if got != row.want || !strings.Contains(said, row.says) {
				t.Errorf("got %q and\n%swant %q and %q", got, said, row.want, row.says)
			}
		})
	}
}

// A module of the workspace below the root is a folder like others.
func TestAModuleOfTheWorkspaceIsTestedToo(t *testing.T) {
	repository(t)
	write(t, map[string]string{
		"go.work":      "go 1.26\n\nuse (\n\t.\n\t./below\n)\n",
		"below/go.mod": "module example.org/m/below\n\ngo 1.26\n",
		"below/a/a.go": "package a\n\nimport _ \"example.org/m/low\"\n",
	})
	git(t, "add", ".")
	git(t, "commit", "--quiet", "--message", "another module")
	write(t, map[string]string{"low/low.go": "package low\n"})
	if got, _ := ask(t); got != "low below/a mid other lab/tidy" {
		t.Errorf("got %q, want what imports low in both modules", got)
	}
	git(t, "checkout", "--quiet", ".")
	write(t, map[string]string{"below/a/a.go": "package a\n"})
	if got, _ := ask(t); got != "below/a lab/tidy" {
		t.Errorf("got %q, want the package of the other module", got)
	}
}

// Its importers no longer build, and that is to be seen.
func TestThePackageThatIsGoneHasImporters(t *testing.T) {
	repository(t)
	if err := os.RemoveAll("low"); err != nil {
		t.Fatal(err)
	}
	if got, said := ask(t); got != "mid other lab/tidy" || !strings.Contains(said, " low/low.go ") {
		t.Errorf("got %q and\n%s", got, said)
	}
}

// The test of other imports what changed, and has fewer dependencies than mid, whose code does.
func TestImportersBeyondTheBoundAreNamed(t *testing.T) {
	repository(t)
	write(t, map[string]string{"low/low.go": "package low\n"})
	got, said := ask(t, "-importers", "1")
	if got != "low mid lab/tidy" || !strings.Contains(said, "LEFT OUT are 1 more importers (make test has them): example.org/m/other\n") {
		t.Errorf("got %q and\n%s", got, said)
	}
}

func TestItComparesWithTheBranchPoint(t *testing.T) {
	repository(t)
	git(t, "checkout", "--quiet", "-b", "mine")
	write(t, map[string]string{"top/top.go": "package top\n"})
	git(t, "commit", "--quiet", "--all", "--message", "mine")
	git(t, "checkout", "--quiet", "main")
	write(t, map[string]string{"low/low.go": "package low\n"})
	git(t, "commit", "--quiet", "--all", "--message", "of others")
	git(t, "checkout", "--quiet", "mine")
	if got, said := ask(t); got != "" || !strings.Contains(said, "0 files") {
		t.Errorf("without origin/main: got %q and\n%swant what is not committed: nothing", got, said)
	}
	if got, _ := ask(t, "-base", "main"); got != "top lab/tidy" {
		t.Errorf("with a base: got %q", got)
	}
	git(t, "update-ref", "refs/remotes/origin/main", "main")
	if got, _ := ask(t); got != "top lab/tidy" {
		t.Errorf("with origin/main: got %q", got)
	}
}

func TestABaseThatIsNoCommitIsRefused(t *testing.T) {
	repository(t)
	var out, errs bytes.Buffer
	if code := run([]string{"-base", "nowhere"}, &out, &errs); code != 1 || out.Len() > 0 || !strings.Contains(errs.String(), "nowhere") {
		t.Errorf("got %d, %q and %q", code, &out, &errs)
	}
}

// A reader that has moved would be left out without a word.
func TestTheReadersExist(t *testing.T) {
	for _, r := range readers {
		if found, err := filepath.Glob("../../../" + r.folder + "/*_test.go"); err != nil || len(found) == 0 {
			t.Errorf("%s: want a package with tests, err %v", r.folder, err)
		}
	}
}
