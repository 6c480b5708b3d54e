package template

import (
	"strings"
	"testing"
)

// Three lines more give an agent all that the others have, and every rule still holds.
func TestAnAgentMoreIsThreeLines(t *testing.T) {
	source := readFile(t, templateFile)
	const names, row = "[inventory, payments, shipping, http, hello]", "    http: {MemorySize: 256, Timeout: 60, Visibility: 360, Concurrency: 10}\n"
	if strings.Count(source, names) != 1 || strings.Count(source, row) != 1 {
		t.Fatalf("the template has no %q, or no %q", names, row)
	}
	more := strings.Replace(source, names, "[inventory, payments, shipping, http, hello, parcels]", 1)
	more = strings.Replace(more, row, row+"    parcels: {MemorySize: 512, Timeout: 120, Visibility: 720, Concurrency: 5}\n", 1)
	if names := strings.Count(source, `http,hello"`); names != 1 {
		t.Fatalf("the mapping Names lists the agents %d times, want once", names)
	}
	more = strings.Replace(more, `http,hello"`, `http,hello,parcels"`, 1)
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
	if timeout := after.property("parcelsAgent", "Timeout"); timeout != 120 {
		t.Errorf("got the timeout %v, want that of its row", timeout)
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
