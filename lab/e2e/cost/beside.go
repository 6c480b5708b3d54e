package main

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood/internal/sizing"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

// What comes beside the counted costs is reckoned with these. It depends on what a stack is told to keep and for how
// long, so none of it is in the table.
const (
	// logBytes are those of an invocation: three lines of Lambda's, and ours with the metrics.
	logBytes = sizing.LogBytes
	// tracedPart is what Lambda traces where Tracing is Active, beyond one request a second.
	tracedPart = 0.05
	// jobBytes and jobSteps are the reference job as it is stored, its entries in the index and its claims among them.
	jobBytes = sizing.StoredBytes
	jobSteps = 5
	// keptMonths is the retention of template.yaml.
	keptMonths = 1
)

// beside is what a million steps cost beside, by what for; perStep are the invocations of a step.
type beside struct {
	what, from string
	dollars    func(perStep float64) float64
}

func allBeside() []beside {
	return []beside{
		{"logs", fmt.Sprintf("%d bytes an invocation", logBytes), func(perStep float64) float64 {
			return perStep * logBytes / 1e9 * 1e6 * prices.GBOfLogs
		}},
		{"traces, if Tracing is Active", fmt.Sprintf("%.0f %% of the invocations, and one a second", tracedPart*100), func(perStep float64) float64 {
			return perStep * tracedPart * prices.MillionTraces
		}},
		{"storage", fmt.Sprintf("%d bytes a job of %d steps, for %d month, with its backup", jobBytes, jobSteps, keptMonths), func(float64) float64 {
			return 1e6 / jobSteps * jobBytes / 1e9 * keptMonths * (prices.GBMonth + prices.GBMonthOfBackup)
		}},
	}
}

// besideTable renders them for docs/cost.md, for a quiet stack and for one with full batches.
func besideTable(unbatched, batched float64) string {
	var text strings.Builder
	text.WriteString("| beside, for a million steps | from | unbatched $ | batched $ |\n|---|---|---|---|\n")
	for _, b := range allBeside() {
		fmt.Fprintf(&text, "| %s | %s | %.2f | %.2f |\n", b.what, b.from, b.dollars(unbatched), b.dollars(batched))
	}
	return text.String()
}

// reference are the loads whose invocations the table is reckoned with.
const (
	referenceUnbatched = "5 steps, unbatched"
	referenceBatched   = "5 steps, batched"
)

// invocations returns how many a step of the reference loads takes.
func invocations(all []figures) (unbatched, batched float64) {
	for _, r := range rows(all) {
		switch r.Load {
		case referenceUnbatched:
			unbatched = r.Invocations
		case referenceBatched:
			batched = r.Invocations
		}
	}
	return unbatched, batched
}
