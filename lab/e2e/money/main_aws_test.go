//go:build aws && linux

package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/command"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/processes"
)

// The test's own program is the functions, and the command.
func TestMain(m *testing.M) {
	processes.Serve(workflows, agents()...)
	if len(os.Args) > 1 && os.Args[1] == asCommand {
		os.Args = os.Args[1:]
		command.Main(workflows)
	}
	os.Exit(m.Run())
}

// Real functions, doors and the command: what each workflow cost is shown, the rows are the sum, and one job says it too.
func TestWhatJobsHaveCostIsShown(t *testing.T) {
	if os.Getenv(standin.EndpointVariable) == "" {
		t.Logf("deviates: %s has no CloudFormation", standin.DynamoDB(t).Product)
		return
	}
	const each = 3
	var out bytes.Buffer
	if err := show(t.Context(), &out, each); err != nil {
		t.Fatal(err)
	}
	table, rest, _ := strings.Cut(out.String(), "\n\n")
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) == 9 {
			rows[fields[0]] = fields[1:]
		}
	}
	sum := 0.0
	for _, workflow := range []string{"order", "notice", "report"} {
		row := rows[workflow]
		if row == nil || row[0] != strconv.Itoa(each) {
			t.Fatalf("got %v of %s in\n%s", row, workflow, table)
		}
		writes, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += writes
	}
	// A job of a step, and one of ten: a claim and a save each at least, a birth, its way into the index and out.
	if got := rows["all"]; got == nil || got[0] != strconv.Itoa(3*each) || got[1] != strconv.FormatFloat(sum, 'f', -1, 64) || sum < each*5 {
		t.Errorf("got %v of all, want the sum of the rows, %v:\n%s", got, sum, table)
	}
	if !strings.Contains(rest, `"north"`) || strings.Count(rest, "bank") < 2 {
		t.Errorf("as JSON no tenant, or by the prices of a file no agent:\n%s", rest)
	}
	if !strings.Contains(rest, "\n  cost    0.0000") {
		t.Errorf("the job says nothing of its cost:\n%s", rest)
	}
}
