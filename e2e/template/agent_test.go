package template

import (
	"strings"
	"testing"
)

// One word more gives an agent all that the others have, and every rule still holds; a row of its own is for who wants one.
func TestAnAgentMoreIsOneWord(t *testing.T) {
	source := readFile(t, templateFile)
	const names = "[inventory, payments, shipping, http, hello]"
	if strings.Count(source, names) != 1 {
		t.Fatalf("the template has %q %d times, want once", names, strings.Count(source, names))
	}
	more := strings.Replace(source, names, "[inventory, payments, shipping, http, hello, parcels]", 1)
	before, after := load(t, source), load(t, more)
	for name, r := range before.resources {
		if !strings.HasPrefix(name, "payments") {
			continue
		}
		twin := strings.Replace(name, "payments", "parcels", 1)
		if after.resources[twin].kind != r.kind {
			t.Errorf("payments has %s, a %s; parcels has no %s", name, r.kind, twin)
		}
	}
	if got, want := len(after.resources)-len(before.resources), 12; got != want {
		t.Errorf("got %d resources more, want %d", got, want)
	}
	if timeout := after.property("parcelsAgent", "Timeout"); timeout != 60 {
		t.Errorf("got the timeout %v, want the default", timeout)
	}
	if known := after.environment("Scheduler")["MAKEGOOD_AGENTS"]; !strings.HasSuffix(known, ",parcels") {
		t.Errorf("the Scheduler knows of %s, want parcels among them", known)
	}
	for _, r := range rules() {
		for _, found := range r.check(after) {
			t.Errorf("%s: %s", r.name, found)
		}
	}
}
