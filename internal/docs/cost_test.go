package docs

import (
	"strings"
	"testing"
)

// The costs that README and docs/cost.md show are those that were counted: make test-aws compares the file with what it
// counts (e2e/cost).
func TestTheCostsInTheDocsAreThoseThatWereCounted(t *testing.T) {
	counted := read(t, "e2e/cost/testdata/table.md")
	if rows := strings.Count(counted, "\n"); rows < 5 {
		t.Fatalf("the table that was counted has %d lines, want a head and rows", rows)
	}
	for _, file := range []string{"README.md", "docs/cost.md"} {
		if !strings.Contains(read(t, file), "\n\n"+counted+"\n") {
			t.Errorf("%s does not show the table of e2e/cost/testdata/table.md:\n%s", file, counted)
		}
	}
}
