package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/importer/internal/asl"
)

const sayHello = `{"StartAt":"Say","States":{"Say":{"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:123456789012:function:Say","End":true}}}`

// ask runs the command, and returns its exit code and output.
func ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	code = execute(t.Context(), root, &errs)
	return code, out.String(), errs.String()
}

func definition(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "greet.asl.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What was left, and what is no definition, is told by the exit code too; a check writes nothing.
func TestACheckSaysWhatWouldBecomeOfADefinition(t *testing.T) {
	for _, c := range []struct {
		text, want string
		code       int
	}{
		{sayHello, "1 of 1 states taken over", 0},
		{`{"StartAt":"M","States":{"M":{"Type":"Map","Iterator":{},"End":true}}}`, "not taken over: a Map", codeOtherwise},
		{`{"StartAt":"M","States":{}}`, "/States: want an object with one state at least", codeUsage},
	} {
		folder := filepath.Join(t.TempDir(), "greet")
		code, stdout, stderr := ask(t, definition(t, c.text), "--check", "--out", folder)
		if _, err := os.Stat(folder); code != c.code || !strings.Contains(stdout+stderr, c.want) || err == nil {
			t.Errorf("got %d, %s, %s, want %d, %q and no folder", code, stdout, stderr, c.code, c.want)
		}
	}
}

// Bad usage is refused with what was wrong of it, and the help has an example.
func TestWhatIsNoCommandLineIsRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "makegood-import needs a FILE\nmakegood-import --help says how it is used\n"},
		{[]string{"a.json", "b.json"}, "takes one FILE, got 2: a.json b.json"},
		{[]string{"a.json", "--chek"}, "unknown flag: --chek"},
		{[]string{filepath.Join(t.TempDir(), "gone.json")}, "gone.json: no such file"},
	} {
		if code, stdout, stderr := ask(t, c.args...); code != codeUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d, %q and %q, want %d and %q", c.args, code, stdout, stderr, codeUsage, c.want)
		}
	}
	if code, help, _ := ask(t, "--help"); code != 0 || !strings.Contains(help, "makegood-import order.asl.json --replace . --out ../orders") {
		t.Errorf("got %d and %s", code, help)
	}
}

func TestTheReportOfAnImportIsJSON(t *testing.T) {
	code, stdout, _ := ask(t, definition(t, sayHello), "--check", "--json", "--name", "hello-you")
	var report asl.Report
	if err := json.Unmarshal([]byte(stdout), &report); code != 0 || err != nil || report.Workflow != "hello-you" || report.States[0].Verdict != asl.TakenOver {
		t.Errorf("got %d, %v, %s", code, err, stdout)
	}
}

// The project is written whole, or nothing of it where a file of it is there.
func TestAnImportWritesAProjectAndOverwritesNothing(t *testing.T) {
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "greet")
	code, stdout, stderr := ask(t, definition(t, sayHello), "--out", folder, "--replace", checkout)
	if code != 0 {
		t.Fatalf("got %d, %s, %s", code, stdout, stderr)
	}
	for _, name := range []string{"workflows/greet.yaml", "workflows/greet.import.md", "agents.go", "go.sum", "template.yaml", "cmd/greet/main.go"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if makefile, err := os.ReadFile(filepath.Join(folder, "Makefile")); err != nil || strings.Contains(string(makefile), "demo") {
		t.Errorf("there is nothing to demonstrate: %v\n%s", err, makefile)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(filepath.Join(other, "workflows"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "workflows/greet.yaml"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = ask(t, definition(t, sayHello), "--out", other, "--replace", checkout)
	if entries, err := os.ReadDir(other); code != codeUsage || !strings.Contains(stderr, "no file was written") || err != nil || len(entries) != 1 {
		t.Errorf("got %d, %s, %v in the folder, want nothing but what was there", code, stderr, entries)
	}
}
