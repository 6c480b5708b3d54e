package workflowfile

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the expected texts anew; read the diff before you commit it")

// corpus lists the files of a folder of testdata.
func corpus(t testing.TB, folder string, atLeast int) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/" + folder + "/*.yaml")
	if err != nil || len(files) < atLeast {
		t.Fatalf("%d files in testdata/%s, %v; want at least %d", len(files), folder, err, atLeast)
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// compare holds got against the file beside, or writes that with -rewrite.
func compare(t *testing.T, beside, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(beside, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(read(t, beside)); got != want {
		t.Errorf("got\n%swant (%s)\n%s", got, beside, want)
	}
}

// Each file of testdata/bad breaks a rule or two; the text beside it is what makegood validate says.
func TestBadFilesAreRefusedWithTheTextBesideThem(t *testing.T) {
	for _, file := range corpus(t, "bad", 70) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			compiled, err := Parse(filepath.Base(file), read(t, file), WithAgents(anAgent("x"), anAgent("y")))
			var all Errors
			if compiled != nil || !errors.As(err, &all) || !errors.Is(err, ErrInvalid) {
				t.Fatalf("Parse = %v, %v; want Errors", compiled, err)
			}
			for _, e := range all {
				if e.Line < 1 || e.File != filepath.Base(file) || strings.ContainsAny(e.Message, "\n\r") {
					t.Errorf("%#v: want a file, a line, and a message of one line", e)
				}
			}
			if !slices.IsSortedFunc(all, func(a, b Error) int { return a.Line - b.Line }) {
				t.Errorf("%v: want them sorted by line", err)
			}
			if _, again := Parse(filepath.Base(file), read(t, file), WithAgents(anAgent("y"), anAgent("x"))); again.Error() != err.Error() {
				t.Errorf("the second time: %v; want the same", again)
			}
			compare(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// Each file of testdata/good gives the definition beside it. A change there is a new hash for every
// workflow that somebody has: it must be wanted.
func TestGoodFilesGiveTheDefinitionBesideThem(t *testing.T) {
	for _, file := range corpus(t, "good", 10) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			compiled, err := Parse(filepath.Base(file), read(t, file))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, strings.TrimSuffix(file, ".yaml")+".json", string(compiled.Definition)+"\n")
			for name, again := range map[string]func() (*Compiled, error){
				"Load":         func() (*Compiled, error) { return Load(compiled.Definition) },
				"FromWorkflow": func() (*Compiled, error) { return FromWorkflow(compiled.Workflow) },
			} {
				second, err := again()
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if second.Hash != compiled.Hash || !bytes.Equal(second.Definition, compiled.Definition) {
					t.Errorf("%s gives %s %s, want %s %s", name, second.Hash, second.Definition, compiled.Hash, compiled.Definition)
				}
			}
		})
	}
}
