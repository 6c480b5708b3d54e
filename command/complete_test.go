package command

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// knowing is a process that knows the workflow x, and has no job of it.
func knowing(t *testing.T) string {
	t.Helper()
	engine, err := embedded.Open(t.Context(), embedded.Config{Agents: []agent.Handler{deaf{}}})
	if err != nil {
		t.Fatal(err)
	}
	return serves(t, engine, "name: x\nsteps: [{name: a, agent: deaf}]\n")
}

// What a shell asks is what cobra's scripts ask: __complete, and the line as far as it was typed.
func TestAShellIsToldWhatCouldBeMeant(t *testing.T) {
	dir, url := astray(t), knowing(t)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer down.Close()
	for line, want := range map[string][]string{
		"list --state un":                     {"Undoing", "Undone", ":4"},
		"list --addr " + url + " --workflow ": {"x", ":4"},
		"submit --addr " + url + " ":          {"x", ":4"},
		"get --data " + dir + " ":             {"lost", "sound", ":4"},
		"get --data " + dir + " l":            {"lost", ":4"},
		"cancel --addr " + down.URL + " ":     {":4"},
		"get --stack any ":                    {":4"},
		"get --data ":                         {":16"},
		"dev --workflows ":                    {":16"},
		"run --input a.jsonl ":                {"yaml", "yml", ":8"},
		"run a.yaml --input ":                 {"jsonl", "ndjson", "json", ":8"},
	} {
		code, stdout, stderr := ask(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		got := strings.Fields(stdout)
		slices.Sort(got[:len(got)-1])
		slices.Sort(want[:len(want)-1])
		if code != 0 || !slices.Equal(got, want) {
			t.Errorf("%q: got %d, %q, want %q\n%s", line, code, got, want, stderr)
		}
	}
}

func TestAStateIsUnderstoodInAnyCase(t *testing.T) {
	if code, stdout, stderr := ask(t, "list", "--data", astray(t), "--state", "pENDING"); code != 0 || strings.Count(stdout, "Pending") != 1 {
		t.Errorf("got %d, %s%s, want the one that the index has not lost", code, stdout, stderr)
	}
	code, _, stderr := ask(t, "list", "--data", astray(t), "--state", "done")
	if want := "--state done: want one of [Pending Processing "; code != codeUsage || !strings.HasPrefix(stderr, want) {
		t.Errorf("got %d, %s, want %d, %s", code, stderr, codeUsage, want)
	}
}

// "no jobs" would be true, and would hide a typing error.
func TestAWorkflowThatNobodyKnowsIsSaidToBeUnknown(t *testing.T) {
	dir, url := astray(t), knowing(t)
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--addr " + url + " --workflow x", "no jobs\n", 0},
		{"--addr " + url + " --workflow y", "there is no workflow y; there are [x]\n", codeUsage},
		{"--data " + dir + " --workflow x --state error", "no jobs\n", 0},
		{"--data " + dir + " --workflow y", "there is no workflow y: no engine on " + dir + " had one\n", codeUsage},
	} {
		code, stdout, stderr := ask(t, append([]string{"list"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout+stderr != c.want {
			t.Errorf("list %s: got %d, %s%s, want %d, %s", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
