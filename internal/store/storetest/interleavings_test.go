package storetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// page has the table of interleavings.
const page = "../../../docs/architecture.md"

// The table in the docs has a row for each interleaving of the suite, in its order, and no other.
func TestTheInterleavingsAreThoseOfTheDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| first | then | what happens |\n|---|---|---|\n"
	_, table, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("%s has no table with the head %q", page, head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var want strings.Builder
	for _, r := range interleavings() {
		fmt.Fprintf(&want, "| %s | %s | %s |\n", r.first, r.then, r.happens)
	}
	if strings.TrimSpace(table) != strings.TrimSpace(want.String()) {
		t.Errorf("%s: got the rows\n%s\nwant\n%s", page, table, want.String())
	}
}

func TestEveryRuleHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules() {
		if seen[r.name] {
			t.Errorf("two rules are named %q", r.name)
		}
		seen[r.name] = true
	}
}
