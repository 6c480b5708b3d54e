package tidy

import (
	"slices"
	"strings"
	"testing"
)

// The table could be talked into anything; these are the rows that may not be.
func TestTheTableKeepsTheLaws(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range arrows {
		if seen[a.from] {
			t.Errorf("%s has two rows", a.from)
		}
		seen[a.from] = true
		for _, v := range a.vendors {
			if v == awsSDK && !slices.ContainsFunc(awsFolders, func(f string) bool { return strings.HasPrefix(a.from+"/", f) }) {
				t.Errorf("%s: the table lets the AWS SDK in", a.from)
			}
		}
	}
	for from, want := range map[string][]string{
		constants: nil, ".": nil, consequences: {"."}, "internal/job": {"."}, "internal/machine": {".", "internal/job"}, "internal/store": {".", "internal/job"}, "internal/queue": {"."}, "agent": {".", "internal/agentctx"},
	} {
		if row, _ := rowOf(from); !slices.Equal(row.to, want) {
			t.Errorf("%s may import %v, want %v", from, row.to, want)
		}
	}
	if row, _ := rowOf("internal/supervisor"); row.allowsOurs("internal/machine") {
		t.Error("the table lets the Supervisor import the core")
	}
	if row, _ := rowOf("internal/machine"); len(row.vendors) > 0 {
		t.Errorf("the core may import %v, want nothing of others", row.vendors)
	}
}

// awsFolders are where the AWS SDK may be at all: adapters, mains and what starts them.
var awsFolders = []string{"internal/store/dynamostore", "internal/queue/sqsqueue", "internal/payload/s3payload", "internal/notify/", "internal/deployed", "internal/stack", "internal/testkit/", "functions/", "onlambda", "command", "lab/", "localstack/", "client/dynamotx", "client/doors", "agent/dynamofence"}

// noLibraries are the folders of mains, examples and tests, the shop that these ask, the importer and the laboratory: no product package imports these.
var noLibraries = []string{"cmd", "functions", "examples", "workflows", "importer", "internal/sample/services", "lab", "localstack"}

// isLibrary reports whether "*" stands for a folder: nobody may import a main, an example, a test or the shop without a row that names it.
func isLibrary(dir string) bool {
	return !slices.ContainsFunc(noLibraries, func(top string) bool { return within(dir, top) })
}
