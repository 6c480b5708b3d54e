package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/workflows"
)

// command runs the command with arguments.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot("makegood", workflows.Files, workflows.Agents(func(string) string { return "" }))
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	code = execute(context.Background(), root, &errs)
	return code, out.String(), errs.String()
}

const good = "name: order\nsteps: [{name: reserve, agent: inventory}, {name: pay, agent: http, with: {url: \"https://pay.example\"}}]\n"

func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestValidateSaysWhatEachFileIs(t *testing.T) {
	one := write(t, "one.yaml", good)
	two := write(t, "two.yaml", "name: Order\nsteps:\n  - name: a\n    agent: nobody\n")
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	code, stdout, stderr := command(t, "name: tiny\nsteps: [{name: ship, agent: shipping}]", "validate", one, two, missing, "-")
	wantOut := one + ": ok, workflow order, 2 steps\nstdin: ok, workflow tiny, 1 step\n"
	wantErr := two + `:1: "Order" cannot be the name of a workflow: want [a-z][a-z0-9-]{0,62}` + "\n" +
		two + `:4: no agent "nobody": known are approval, hello, http, inventory, payments, shipping, wait, workflow` + "\n" +
		"open " + missing + ": no such file or directory\n"
	if code != codeUsage || stdout != wantOut || stderr != wantErr {
		t.Errorf("got code %d\n%s%s\nwant code %d\n%s%s", code, stdout, stderr, codeUsage, wantOut, wantErr)
	}
}

// The command knows what its agents can be asked for, so a typing error is not found out by the first job that fails.
func TestValidateKnowsTheActionsOfTheLinkedAgents(t *testing.T) {
	file := write(t, "order.yaml", "name: order\nsteps:\n  - name: reserve\n    agent: inventory\n    undo: {action: relaese}\n")
	code, _, stderr := command(t, "", "validate", file)
	want := file + `:5: agent inventory has no action "relaese": did you mean "release"?` + "\n"
	if code != codeUsage || stderr != want {
		t.Errorf("got code %d, %s; want %d, %s", code, stderr, codeUsage, want)
	}
}

func TestWarningsArePrintedAndNothingIsRefused(t *testing.T) {
	const yaml = "name: a\nsteps:\n  - {name: reserve, agent: inventory, with: {order: '{{ .input.id }}'}}\n"
	const says = `"{{ .input.id }}" is plain text here`
	code, stdout, stderr := command(t, yaml, "validate", "-")
	if code != 0 || stdout != "stdin: ok, workflow a, 1 step\n" || !strings.HasPrefix(stderr, "stdin:3: warning: "+says) {
		t.Errorf("got %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, _ = command(t, yaml, "validate", "--json", "-")
	var report validation
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 || !report.Files[0].OK ||
		len(report.Files[0].Warnings) != 1 || report.Files[0].Warnings[0].Line != 3 {
		t.Errorf("--json: got %d, %s, %v; want a warning of line 3", code, stdout, err)
	}
	code, stdout, stderr = command(t, yaml, "validate", "--strict", "-")
	if code != codeUsage || stdout != "" || !strings.HasPrefix(stderr, "stdin:3: warning: "+says) || !strings.Contains(stderr, "${ .input.id }") {
		t.Errorf("--strict: got %d, %s, %s; want code %d, and what it should be", code, stdout, stderr, codeUsage)
	}
	if code, stdout, _ = command(t, yaml, "validate", "--strict", "--json", "-"); code != codeUsage || !strings.Contains(stdout, `"ok":false`) {
		t.Errorf("--strict --json: got %d, %s; want a file that is not right", code, stdout)
	}
	_, _, stderr = command(t, yaml, "publish", "--json", "--stack", "no/stack", "-")
	if !strings.HasPrefix(stderr, "stdin:3: warning: "+says) {
		t.Errorf("publish: got %s, want the warning first", stderr)
	}
}

func TestAFolderIsNotValidated(t *testing.T) {
	folder := t.TempDir()
	code, _, stderr := command(t, "", "validate", folder)
	if want := folder + " is a folder: name its files, as " + filepath.Join(folder, "*.yaml") + "\n"; code != codeUsage || stderr != want {
		t.Errorf("got %d, %s; want %d, %s", code, stderr, codeUsage, want)
	}
}

// A stack may have agents that this command does not link: what it cannot check, it names.
func TestPublishNamesTheAgentsWhoseActionsItCannotCheck(t *testing.T) {
	file := write(t, "a.yaml", "name: a\nsteps: [{name: fly, agent: airline}, {name: reserve, agent: inventory}]\n")
	_, _, stderr := command(t, "", "publish", "--stack", "no/stack", file)
	if want := "not linked into this command, so their actions were not checked: airline\n"; !strings.HasPrefix(stderr, want) {
		t.Errorf("got %s, want %s first", stderr, want)
	}
	file = write(t, "b.yaml", "name: a\nsteps: [{name: reserv, agent: inventory}]\n")
	code, _, stderr := command(t, "", "publish", "--stack", "no/stack", file)
	if want := file + `:2: agent inventory has no action "reserv": did you mean "reserve"?` + "\n"; code != codeUsage || stderr != want {
		t.Errorf("got %d, %s; want %d, %s", code, stderr, codeUsage, want)
	}
}

func TestValidatePrintsOneJSONObject(t *testing.T) {
	file := write(t, "a.yaml", "name: a\nsteps: []\n")
	code, stdout, stderr := command(t, good, "validate", "--json", "-", file)
	want := `{"files":[{"file":"stdin","ok":true,"workflow":"order","hash":"HASH","steps":2,"errors":[],"warnings":[]},` +
		`{"file":"` + file + `","ok":false,"workflow":"","hash":"","steps":0,` +
		`"errors":[{"line":2,"message":"a workflow must have at least one step"}],"warnings":[]}]}` + "\n"
	var report validation
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Files) != 2 || len(report.Files[0].Hash) != 32 {
		t.Fatalf("%s: %v; want two files, the first with a hash of 32 digits", stdout, err)
	}
	want = strings.Replace(want, "HASH", report.Files[0].Hash, 1)
	if code != codeUsage || stdout != want || stderr != "" {
		t.Errorf("got code %d, stderr %q\n%s\nwant code %d\n%s", code, stderr, stdout, codeUsage, want)
	}
}

func TestAFileThatIsTooLargeIsNotReadToItsEnd(t *testing.T) {
	code, _, stderr := command(t, strings.Repeat("#", 3<<20), "validate", "-")
	want := "stdin:1: the file has 1048577 bytes, the limit is 1048576\n"
	if code != codeUsage || stderr != want {
		t.Errorf("got code %d, %s; want %d, %s", code, stderr, codeUsage, want)
	}
}

func TestTheSampleIsRight(t *testing.T) {
	code, stdout, stderr := command(t, "", "validate", "../workflows/order/order.yaml")
	want := "../workflows/order/order.yaml: ok, workflow order, 3 steps\n"
	if code != 0 || stdout != want {
		t.Errorf("got code %d\n%s%s\nwant 0\n%s", code, stdout, stderr, want)
	}
}

// An agent outside is a linked one no more: what it can be asked for is not known.
func TestAnAgentOutsideMayBeAskedForAnything(t *testing.T) {
	const yaml = "name: x\nsteps: [{name: a, agent: elsewhere, undo: none}, {name: pack, agent: shipping, undo: none}]"
	code, stdout, stderr := command(t, yaml, "validate", "--outside", "elsewhere", "--outside", "shipping", "-")
	if want := "stdin: ok, workflow x, 2 steps\n"; code != 0 || stdout != want {
		t.Errorf("got code %d\n%s%s\nwant 0\n%s", code, stdout, stderr, want)
	}
	code, _, stderr = command(t, yaml, "validate", "-")
	if want := `no agent "elsewhere"`; code != codeUsage || !strings.Contains(stderr, want) {
		t.Errorf("without --outside: got code %d, %s; want %d, %s", code, stderr, codeUsage, want)
	}
}

func TestBadUsageEndsWithCodeOneAndAHint(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"validate", "validate needs a FILE\nmakegood validate --help says how it is used\n"},
		{"validate --nosuch x", "unknown flag: --nosuch\nmakegood validate --help says how it is used\n"},
		{"publish", "publish needs a FILE\nmakegood publish --help says how it is used\n"},
		{"get", "get needs an ID\nmakegood get --help says how it is used\n"},
		{"submit a b", "submit takes one WORKFLOW, got 2: a b\nmakegood submit --help says how it is used\n"},
		{"count a", "count takes flags only, got a\nmakegood count --help says how it is used\n"},
		{"qqqq", "unknown command \"qqqq\" for \"makegood\"\nmakegood --help says how it is used\n"},
	} {
		code, _, stderr := command(t, "", strings.Fields(c.args)...)
		if code != codeUsage || stderr != c.want {
			t.Errorf("makegood %s: code %d, %q; want %d, %q", c.args, code, stderr, codeUsage, c.want)
		}
	}
}

func TestEveryHelpShowsAnExample(t *testing.T) {
	root := newRoot("mytrips", nil, nil)
	for _, verb := range root.Commands() {
		if want := "  mytrips " + verb.Name() + " "; !strings.Contains(verb.Example+" ", want) {
			t.Errorf("%s --help has the example %q, want one with %q", verb.Name(), verb.Example, want)
		}
	}
	code, stdout, _ := command(t, "", "validate", "--help")
	if code != 0 || !strings.Contains(stdout, "Examples:\n  makegood validate workflows/order/order.yaml") {
		t.Errorf("code %d\n%s\nwant 0 and an example", code, stdout)
	}
}
