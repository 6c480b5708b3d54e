package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/sizing"
)

// What the table of docs/cost.md shows and what the calculator reckons from are counts of the same thing.
func TestTheCalculatorReckonsFromTheTable(t *testing.T) {
	shown := read(t, "lab/e2e/cost/testdata/table.md")
	compared := 0
	for _, c := range sizing.Counts() {
		name, ok := rowOf(c)
		if !ok {
			continue
		}
		n := float64(c.Steps + c.Items)
		row := fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %.2f |", name, c.Writes/n, c.Reads/n, c.Requests/n, (c.Events+c.Tasks)/n)
		if !strings.Contains(shown, row) {
			t.Errorf("the table has no row %q: make cost COUNTS=1 > internal/sizing/counts.go", row)
		}
		compared++
	}
	// The row with large outputs has a small input, which the calculator's has not.
	if rows := len(loads()) - 1; compared != rows {
		t.Errorf("%d rows of the table were compared, want %d", compared, rows)
	}
}

// rowOf names the row of the table of a count, if it has one.
func rowOf(c sizing.Count) (string, bool) {
	for _, l := range loads() {
		mapped := l.mapped && l.steps == c.Items && max(1, l.together) == c.Together
		if (mapped || !l.mapped && c.Items == 0 && l.steps == c.Steps) && l.batched == c.Batched && l.slow == c.Slow && l.way() == c.Way && l.output == inlineOutput && c.Bytes == 0 {
			return l.name, true
		}
	}
	return "", false
}
