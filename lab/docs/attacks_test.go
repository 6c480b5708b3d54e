package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/notify"
)

// What is beside the catalogue has no id; each row names at least one test, and each test is there.
func TestEveryRowBesideTheCatalogueNamesItsTests(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/failure-modes.md"), "\n## Settle and redefine\n")
	if !found || !strings.Contains(section, "\n## What attacks found\n") {
		t.Fatal("docs/failure-modes.md does not say what is beside the catalogue")
	}
	rows := regexp.MustCompile(`(?m)^\| ([^|\n]*[^|\n-][^|\n]*) \|([^|\n]*)\|$`).FindAllStringSubmatch(section, -1)
	if len(rows) < 2 {
		t.Fatalf("got %d rows, want a head and findings", len(rows))
	}
	for _, row := range rows {
		if row[1] == "what goes wrong" {
			continue
		}
		tests := quoted.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 {
			t.Errorf("%q names no test", row[1])
		}
		for _, test := range tests {
			if problem := checkTest(test[1], readPackage); problem != "" {
				t.Errorf("%q names %s%s", row[1], test[1], problem)
			}
		}
	}
}

func TestTheLimitsInTheTextAreThoseOfTheCode(t *testing.T) {
	for phrase, document := range map[string]string{
		fmt.Sprintf("given up after %.0f seconds", agentrun.StopPatience.Seconds()):     "docs/architecture.md",
		fmt.Sprintf("given up after %.0f seconds and", agentrun.StopPatience.Seconds()): "CHANGELOG.md",
		fmt.Sprintf("Who is told has %.0f seconds", notify.Patience.Seconds()):          "CHANGELOG.md",
	} {
		if text := strings.Join(strings.Fields(read(t, document)), " "); !strings.Contains(text, phrase) {
			t.Errorf("%s does not say %q", document, phrase)
		}
	}
}
