package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reportFile is where the report goes.
const reportFile = "docs/conformance.md"

// report writes what every suite said of every stack.
func report(on []stack, results []result) string {
	var text strings.Builder
	text.WriteString(`# Conformance

The adapters for AWS are tested against stand-ins, and none is right everywhere: one suite, every
stand-in, and each deviation by the name of the test that found it. This page is written by
` + "`make test-aws`" + `, which installs the versions named here. It proves no behaviour of AWS itself.

None of them throttles, meets transactions, loses an answer, or lets its index lag. Throttling,
conflicts with transactions and lost answers are provoked where our adapters meet the SDK, by the tests
of the adapters.

Of the suite lab/e2e/lambda, which takes minutes, MiniStack runs what needs a bus, limits and breakers, and the rest only when the suite is named: it shows
a part there of what it shows on the other.

| stand-in | suite | passed | failed | deviations |
|---|---|---|---|---|
`)
	for _, r := range results {
		fmt.Fprintf(&text, "| %s | `%s` | %d | %d | %d |\n", r.stack, r.folder, r.passed, r.failed, len(r.deviations))
	}
	for _, s := range on {
		fmt.Fprintf(&text, "\n## Deviations of %s\n\n", s)
		before := text.Len()
		for _, r := range results {
			if r.stack != s.String() {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(r.deviations)) {
				fmt.Fprintf(&text, "- `%s` in `%s`: %s\n", strings.ReplaceAll(name, "_", " "), r.folder, r.deviations[name])
			}
		}
		if text.Len() == before {
			text.WriteString("None.\n")
		}
	}
	return text.String()
}
