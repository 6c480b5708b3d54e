package scaffold

import (
	"bytes"
	"errors"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trips is a project that requires a published version.
func trips() Project {
	return Project{Name: "trips", Module: "example.com/trips", Version: "v1.2.3"}
}

func filesOf(t *testing.T, p Project) map[string]string {
	t.Helper()
	files, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range files {
		texts[f.Name] = string(f.Text)
	}
	return texts
}

// Under its own name, and under one that is not the last part of its module, so that imports are named.
func TestTheFilesOfAProjectAreFormattedAndUseNothingInternal(t *testing.T) {
	other := Project{Name: "booking", Module: "example.com/team/go-booking", Replace: "/src/makegood"}
	local := trips()
	local.Local = true
	for _, p := range []Project{trips(), other, local} {
		for name, text := range filesOf(t, p) {
			if strings.Contains(text, leftMark) || strings.Contains(name, "NAME") || !strings.HasSuffix(text, "\n") {
				t.Errorf("%s: a mark is left, or the end of its last line is missing", name)
			}
			if strings.Contains(text, makegoodModule+"/internal") {
				t.Errorf("%s uses what is internal", name)
			}
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			formatted, err := format.Source([]byte(text))
			if err != nil || !bytes.Equal(formatted, []byte(text)) {
				t.Errorf("%s is not formatted: %v", name, err)
			}
		}
	}
}

// A local project says nothing of AWS, and has no file that is for it.
func TestALocalProjectHasNothingOfAWS(t *testing.T) {
	local := trips()
	local.Local = true
	files := filesOf(t, local)
	for name, text := range files {
		for _, word := range []string{"AWS", "aws", "Lambda", "lambda", "SAM ", "template.yaml", "functions/"} {
			if at := strings.Index(text, word); at >= 0 {
				t.Errorf("%s has %q: %.80s", name, word, text[max(0, at-40):])
			}
		}
	}
	for _, name := range []string{"template.yaml", "samconfig.toml", "functions/door/main.go"} {
		if _, is := files[name]; is {
			t.Errorf("%s is there", name)
		}
	}
	if !strings.Contains(files["Makefile"], "serve --data ./data") || !strings.Contains(files["README.md"], "## In production") {
		t.Errorf("got %s %s", files["Makefile"], files["README.md"])
	}
}

func TestAProjectRequiresThisVersionOrTheCheckoutInItsPlace(t *testing.T) {
	goVersion := "\ngo " + strings.Fields(readFile(t, "../../go.mod"))[3] + "\n"
	replaced := trips()
	replaced.Replace = "/src/makegood"
	for want, p := range map[string]Project{
		"module example.com/trips\n" + goVersion + "\nrequire " + makegoodModule + " v1.2.3\n":                                                    trips(),
		"module example.com/trips\n" + goVersion + "\nrequire " + makegoodModule + " v0.0.0\n\nreplace " + makegoodModule + " => /src/makegood\n": replaced,
	} {
		if got := filesOf(t, p)["go.mod"]; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestWhatIsNoProjectIsRefused(t *testing.T) {
	for want, p := range map[string]Project{
		"the name of a project is missing":                {Module: "a.b/c", Version: "v1.0.0"},
		`"my-trips" cannot be the name of a project`:      {Name: "my-trips", Module: "a.b/c", Version: "v1.0.0"},
		`"func" cannot be the name of a project`:          {Name: "func", Module: "a.b/c", Version: "v1.0.0"},
		`"agent" cannot be the name of a project`:         {Name: "agent", Module: "a.b/c", Version: "v1.0.0"},
		`"../c" cannot be the path of a Go module`:        {Name: "trips", Module: "../c", Version: "v1.0.0"},
		`"a b" cannot be the path of a Go module`:         {Name: "trips", Module: "a b", Version: "v1.0.0"},
		"--replace PATH names a checkout that it can use": {Name: "trips", Module: "a.b/c"},
	} {
		if files, err := p.Files(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %d files, %v, want %q", p, len(files), err, want)
		}
	}
}

// Nothing at all is written where one file would be in the way.
func TestNothingIsOverwritten(t *testing.T) {
	folder := t.TempDir()
	mine := filepath.Join(folder, "trips.jsonl")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := trips().Files()
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	if err := Write(folder, files, func(string) { written++ }); !errors.Is(err, ErrThere) || !strings.HasPrefix(err.Error(), mine) {
		t.Errorf("got %v, want that %s is there already", err, mine)
	}
	if left, _ := os.ReadDir(folder); written > 0 || len(left) != 1 || readFile(t, mine) != "mine" {
		t.Errorf("%d files were written, and %d are there", written, len(left))
	}
}
