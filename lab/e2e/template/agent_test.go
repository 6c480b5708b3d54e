package template

import (
	"regexp"
	"strings"
	"testing"
)

// agentList is the one list of agents in a template, whichever they are.
var agentList = regexp.MustCompile(`(?m)^  Agents: &agents \[(.+)\]$`)

// withAgent puts an agent more into the list.
func withAgent(t *testing.T, source, name string) string {
	t.Helper()
	if n := len(agentList.FindAllString(source, -1)); n != 1 {
		t.Fatalf("the template lists its agents %d times, want once", n)
	}
	return agentList.ReplaceAllString(source, "  Agents: &agents [$1, "+name+"]")
}

// One word more gives an agent all that the others have, and every rule still holds; a row of its own is for who wants one.
func TestAnAgentMoreIsOneWord(t *testing.T) {
	source := readFile(t, templateFile)
	before, after := load(t, source), load(t, withAgent(t, source, "onemore"))
	for name, r := range before.Resources {
		if !strings.HasPrefix(name, "payments") {
			continue
		}
		twin := strings.Replace(name, "payments", "onemore", 1)
		if after.Resources[twin].Kind != r.Kind {
			t.Errorf("payments has %s, a %s; onemore has no %s", name, r.Kind, twin)
		}
	}
	if got, want := len(after.Resources)-len(before.Resources), 14; got != want {
		t.Errorf("got %d resources more, want %d", got, want)
	}
	if timeout := after.Property("onemoreAgent", "Timeout"); timeout != 60 {
		t.Errorf("got the timeout %v, want the default", timeout)
	}
	if known := after.environment("Scheduler")["MAKEGOOD_AGENTS"]; !strings.HasSuffix(known, ",onemore") {
		t.Errorf("the Scheduler knows of %s, want onemore among them", known)
	}
	for _, r := range rules() {
		for _, found := range r.check(after) {
			t.Errorf("%s: %s", r.name, found)
		}
	}
}
