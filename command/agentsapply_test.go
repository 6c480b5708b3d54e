package command

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// The command agents apply is typed with good and bad files, and its output and exit status are compared. Before some
// lines a new file is written.
func TestLimitsOfAFileAreApplied(t *testing.T) {
	url, _ := paused(t, embedded.Outside{Name: "mail"})
	inFolder(t, "agents.yaml", "deaf: {concurrency: 101}")
	for _, step := range []struct {
		file string
		line string
		code int
		says string
	}{
		{"", "agents apply", codeUsage, "agents.yaml:1: concurrency 101 is out of range: 1 to 100"},
		{"mail: {rate: 1/s}\ndeff: {concurrency: 1}", "agents apply", codeUsage, `agents.yaml:2: no agent "deff": did you mean "deaf"?`},
		{"", "holds", 0, "no agent has a limit"}, // That of mail is not set either.
		{"", "agents apply more.yaml", codeUsage, "no such file"},
		{"", "agents apply a.yaml b.yaml", codeUsage, "arg(s)"},
		{"mail: {rate: 90/m, reason: a friend's}\ndeaf: {concurrency: 2}", "agents apply --dry-run", codeOtherwise, "agent mail  would be set: limit 90/m, 2 at one moment\nagent deaf  would be set: limit 2\n"},
		{"", "holds", 0, "no agent has a limit"},
		{"", "agents apply --who ci", 0, "agent mail  set: limit 90/m, 2 at one moment\nagent deaf  set: limit 2\n"},
		{"", "agents apply --dry-run", 0, "agent mail  unchanged: limit 90/m, 2 at one moment\nagent deaf  unchanged: limit 2\n"},
		{"", "agents limit deaf --concurrency 1 --who anna --reason INC-4711", 0, "limit 1: 0 under way"},
		{"", "agents apply --dry-run", codeOtherwise, "agent deaf  would be changed: limit 2 in the place of limit 1, since "},
		{"", "agents apply --who ci", 0, " by anna: INC-4711\n"},
		{"mail: {rate: 90/m}", "agents apply", 0, "agent mail  unchanged: limit 90/m, 2 at one moment\n"},
		{"", "holds", 0, "limit 2: 0 under way"}, // It is not in the file, and stays.
		{"", "agents apply --prune --dry-run", codeOtherwise, "agent deaf  would be removed: limit 2, since "},
		{"", "agents apply --prune --json", 0, `{"limits":[{"agent":"deaf","limit":{},"reason":"","change":"removed","was":{"kind":"limit","name":"deaf",`},
		{"", "agents apply --prune --json", 0, `{"limits":[{"agent":"mail","limit":{"rate":"90/m","burst":2},"reason":"","change":"unchanged","was":{"kind":"limit","name":"mail",`},
		{"mail: {rate: 90/m, reason: another}", "agents apply --dry-run", codeOtherwise, "agent mail  would be changed: limit 90/m, 2 at one moment in the place of limit 90/m, 2 at one moment, since "},
		{"", "agents apply --prune -", 0, ""},
		{"", "holds", 0, "no agent has a limit"},
	} {
		if step.file != "" {
			if err := os.WriteFile("agents.yaml", []byte(step.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, stdout, stderr := askWith(t, "{}", append(words(step.line), "--addr", url)...)
		if code != step.code || !strings.Contains(stdout+stderr, step.says) {
			t.Errorf("makegood %s: got %d, %q, %q, want %d and %q", step.line, code, stdout, stderr, step.code, step.says)
		}
	}
}

// A limit that stands as the file has it is left as it is, with its time and its author.
func TestALimitThatStandsIsLeftAsItIs(t *testing.T) {
	url, _ := paused(t, embedded.Outside{Name: "mail"})
	inFolder(t, "agents.yaml", "deaf: {concurrency: 2}\nmail: {concurrency: 3}")
	holds := func() (all struct{ Holds []makegood.Hold }) {
		t.Helper()
		_, stdout, _ := ask(t, "holds", "--json", "--addr", url)
		if err := json.Unmarshal([]byte(stdout), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	ask(t, "agents", "limit", "deaf", "--concurrency", "2", "--reason", "INC-4711", "--who", "anna", "--addr", url)
	was := holds().Holds
	code, stdout, stderr := ask(t, "agents", "apply", "--who", "ci", "--addr", url)
	if code != 0 || stdout != "agent deaf  unchanged: limit 2\nagent mail  set: limit 3\n" {
		t.Errorf("got %d, %q, %q, want one that is unchanged and one that is set", code, stdout, stderr)
	}
	now := holds().Holds
	if len(was) != 1 || len(now) != 2 || !reflect.DeepEqual(now[0], was[0]) || now[0].By != "anna" || now[1].By != "ci" {
		t.Errorf("got %+v after %+v, want the first as it was and the second by ci", now, was)
	}
}

// An API that cannot be reached is told with exit code 3.
func TestLimitsWithoutAnAPIAreNotApplied(t *testing.T) {
	inFolder(t, "agents.yaml", "deaf: {concurrency: 1}")
	if code, stdout, stderr := ask(t, "agents", "apply", "--addr", "127.0.0.1:1"); code != codeFailed || stdout != "" {
		t.Errorf("got %d, %q, %q, want %d", code, stdout, stderr, codeFailed)
	}
}

// The command validate checks a file named agents.yaml by the rules for limits, and not by those for workflows.
func TestAFileOfLimitsIsValidated(t *testing.T) {
	inFolder(t, "agents.yaml", "http: {concurrency: 2}")
	if code, stdout, stderr := ask(t, "validate", "agents.yaml"); code != 0 || stdout != "agents.yaml: ok, limits of 1 agent\n" {
		t.Errorf("got %d, %q, %q, want that it is right", code, stdout, stderr)
	}
	inFolder(t, "agents.yaml", "pay: {concurrency: 2}\nhttp: {}")
	const want = "agents.yaml:1: no agent \"pay\": known are http\nagents.yaml:2: a limit of agent http: want concurrency, 1 to 100, or rate\n"
	if code, stdout, stderr := ask(t, "validate", "agents.yaml"); code != codeUsage || stderr != want {
		t.Errorf("got %d, %q, %q, want %q", code, stdout, stderr, want)
	}
}
