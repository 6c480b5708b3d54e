package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

// The costs that docs/cost.md, the README and docs/explanation/compared.md show are those that were counted: make test-aws compares the file with what it
// counts (lab/e2e/cost).
func TestTheCostsInTheDocsAreThoseThatWereCounted(t *testing.T) {
	counted := read(t, "lab/e2e/cost/testdata/table.md")
	if rows := strings.Count(counted, "\n"); rows < 5 {
		t.Fatalf("the table that was counted has %d lines, want a head and rows", rows)
	}
	if !strings.Contains(read(t, "docs/cost.md"), "\n\n"+counted+"\n") {
		t.Errorf("docs/cost.md does not show the table of lab/e2e/cost/testdata/table.md:\n%s", counted)
	}
	dollars := func(of string) string {
		_, row, _ := strings.Cut(counted, "| "+of+" |")
		row, _, _ = strings.Cut(row, " |\n")
		return row[strings.LastIndex(row, " ")+1:] + " $"
	}
	want := fmt.Sprintf("A million steps of jobs of five cost %s where every message comes alone, as on a quiet stack, and %s where batches fill, by AWS's list prices; AWS Step Functions Standard asks %s.",
		dollars("5 steps, unbatched"), dollars("5 steps, batched"), dollars("AWS Step Functions Standard (list price)"))
	if says := strings.Join(strings.Fields(read(t, "README.md")), " "); !strings.Contains(says, want) {
		t.Errorf("README.md does not say %q", want)
	}
	ofMap := func(of string) string {
		var million float64
		if _, err := fmt.Sscanf(dollars(of), "%f $", &million); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%.2f $", million/10)
	}
	alone, full := ofMap("a map of 1,000 items, unbatched"), ofMap("a map of 1,000 items, batched")
	const tens = "a map of 1,000 items, ten a task, "
	for file, want := range map[string]string{
		"README.md":    fmt.Sprintf("A map of 100,000 items costs %s and %s, with `batch: 10` %s and %s.", alone, full, ofMap(tens+"unbatched"), ofMap(tens+"batched")),
		"docs/cost.md": fmt.Sprintf("A map of 100,000 items costs %s in full batches and %s where every message comes alone", full, alone),
	} {
		if says := strings.Join(strings.Fields(read(t, file)), " "); !strings.Contains(says, want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
	for what, of := range map[string]string{
		"full batches": "5 steps, batched", "every message alone": "5 steps, unbatched",
		"items of a map, full batches": "a map of 1,000 items, batched", "items of a map, every message alone": "a map of 1,000 items, unbatched",
	} {
		row := fmt.Sprintf("| **Makegood**, %s | %s |\n", what, strings.TrimSuffix(dollars(of), " $"))
		if !strings.Contains(read(t, "docs/explanation/compared.md"), row) {
			t.Errorf("docs/explanation/compared.md does not say %q", row)
		}
	}
}

// What the events of changes cost follows from how many a job makes: its birth and the end of each step, which lab/e2e/cost counts.
func TestWhatTheEventsOfChangesCostIsReckoned(t *testing.T) {
	const steps, events = 5.0, 6.0
	want := fmt.Sprintf("At %.2f $ for a million events of up to 64 KB a million steps are %.2f $", prices.MillionEvents, events/steps*prices.MillionEvents)
	if says := strings.Join(strings.Fields(read(t, "docs/cost.md")), " "); !strings.Contains(says, want) {
		t.Errorf("docs/cost.md does not say %q", want)
	}
}

// What the audit costs follows from how much of the table it reads in a minute.
func TestWhatTheAuditCostsIsReckoned(t *testing.T) {
	const (
		jobs, items, bytes   = 1_000_000, 6, 2048
		minutes, days        = 24 * 60, 30
		unit, most, cheaper  = 4 << 10, 1 << 20, 0.5
		perMonth, perMinutes = days * prices.MillionReads / 1e6, supervisor.DefaultAuditPage * minutes
	)
	walk := float64(jobs*items) / perMinutes
	// A page is rounded up to whole units.
	page := (supervisor.DefaultAuditPage*bytes/items + unit - 1) / unit
	usual, largest := float64(page)*cheaper*minutes, float64(most/unit)*cheaper*minutes
	says := strings.Join(strings.Fields(read(t, "docs/cost.md")), " ")
	for _, want := range []string{
		fmt.Sprintf("a page of %d items a minute", supervisor.DefaultAuditPage),
		fmt.Sprintf("walked through in %.1f days, for %.0f read units a day, %.2f $ a month", walk, usual, usual*perMonth),
		fmt.Sprintf("%.0f read units a day at most, %.2f $ a month", largest, largest*perMonth),
		fmt.Sprintf("rests for %s", map[bool]string{true: "an hour"}[supervisor.AuditRest.Hours() == 1]),
	} {
		if !strings.Contains(says, want) {
			t.Errorf("docs/cost.md does not say %q", want)
		}
	}
}
