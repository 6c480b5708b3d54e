package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be written is refused before anything is.
func TestNewRefusesWhatItCannotWrite(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"new"}, "new needs a NAME"},
		{[]string{"new", "my-trips", "--replace", ".."}, `"my-trips" cannot be the name of a project`},
		{[]string{"new", "trips", "--replace", t.TempDir()}, "--replace wants a checkout of Makegood"},
		{[]string{"new", "trips", "--module", "a b", "--replace", ".."}, `"a b" cannot be the path of a Go module`},
	} {
		folder := filepath.Join(t.TempDir(), "project")
		args := c.args
		if len(args) > 1 {
			args = append(args, "--dir", folder)
		}
		code, _, stderr := ask(t, args...)
		if _, err := os.Stat(folder); code != codeUsage || !strings.Contains(stderr, c.want) || err == nil {
			t.Errorf("%q: got %d, %q, want %q, and no folder", args, code, stderr, c.want)
		}
	}
}

func TestTheTemplateIsForTheAgentsThatAreLinked(t *testing.T) {
	code, stdout, _ := ask(t, "template", "--agents", "flights,http")
	if code != 0 || !strings.Contains(stdout, "&agents [flights, http]") {
		t.Errorf("got %d and %.200s", code, stdout)
	}
	file := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(file, []byte(stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		agents, want string
		code         int
	}{
		{"http", "it is complete, for the agents http\n", 0},
		{"http,trains", "lacks Metadata.Agents: the agent trains\n", codeUsage},
		{"car-hire", `"car-hire" cannot be the name of an agent with a function`, codeUsage},
	} {
		code, stdout, stderr := ask(t, "template", "--check", file, "--agents", c.agents)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: got %d, %q, %q, want %d and %q", c.agents, code, stdout, stderr, c.code, c.want)
		}
	}
}
