package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/lab/costmeter"
	"github.com/makegood-dev/makegood/lab/e2e/prices"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the documentation says of prices and assumptions is what the dollars are reckoned with.
func TestThePricesInTheDocsAreThoseOfTheTable(t *testing.T) {
	text := read(t, "docs/cost.md")
	want := []string{
		"looked up on " + prices.Date, "List prices of " + prices.Region,
		fmt.Sprintf("write units | %.3f |", prices.MillionWrites), fmt.Sprintf("read units | %.3f |", prices.MillionReads),
		fmt.Sprintf("SQS standard queue, a million requests | %.2f |", prices.MillionRequests),
		fmt.Sprintf("Lambda, a million requests | %.2f |", prices.MillionInvocations),
		fmt.Sprintf("GB second on arm64 | %.10f |", prices.GBSecond),
		fmt.Sprintf("a GB of logs taken in | %.2f |", prices.GBOfLogs), fmt.Sprintf("a metric of ours for a month | %.2f |", prices.Metric),
		fmt.Sprintf("a million traces | %.2f |", prices.MillionTraces), fmt.Sprintf("and its backup | %.2f and %.2f |", prices.GBMonth, prices.GBMonthOfBackup),
		fmt.Sprintf("billed for %.0f ms at %.0f MB", assumedSeconds*1000, memoryGB*1024),
	}
	for _, line := range want {
		if !strings.Contains(text, line) {
			t.Errorf("docs/cost.md does not say %q", line)
		}
	}
}

// The functions of the template have the memory that the duration is reckoned with, but for the Supervisor, which takes
// no part in a step.
func TestTheMemoryIsThatOfTheTemplate(t *testing.T) {
	found := regexp.MustCompile(`(?:Role: !GetAtt (\w+)\.Arn\n(?: +#.*\n)? +)?MemorySize: (\d+)`).FindAllStringSubmatch(read(t, "template.yaml"), -1)
	if len(found) < 3 {
		t.Fatalf("template.yaml gives %d functions a size, want Scheduler, Supervisor and agents", len(found))
	}
	for _, size := range found {
		want := fmt.Sprint(memoryGB * 1024)
		if size[1] == "SupervisorRole" {
			want = "512"
		}
		if size[2] != want {
			t.Errorf("template.yaml has %s, want %s MB", size[0], want)
		}
	}
}

// Of a job of four steps, 10 write units are 2.5 a step, and so on.
func TestTheDollarsOfAMillionStepsAreThoseOfAllUnits(t *testing.T) {
	f := figures{
		load:       load{steps: 4},
		submission: costmeter.Totals{WriteUnits: 2, SQSRequests: 1},
		steps:      costmeter.Totals{WriteUnits: 8, ReadUnits: 4, SQSRequests: 7, Invocations: 2},
	}
	p := f.perStep()
	if p.WriteUnits != 2.5 || p.ReadUnits != 1 || p.SQSRequests != 2 || p.Invocations != 0.5 {
		t.Errorf("got %+v, want 2.5 write units, 1 read unit, 2 requests and 0.5 invocations", p)
	}
	const want = 2.5*0.625 + 1*0.125 + 2*0.40 + 0.5*0.20 + 0.5*0.050*0.25*13.3334
	if math.Abs(p.Dollars-want) > 1e-9 {
		t.Errorf("got %v $, want %v", p.Dollars, want)
	}
}

// The table of what comes beside is that of the counted invocations, which stand in the table of the steps.
func TestThePageSaysWhatComesBeside(t *testing.T) {
	counted := map[string]float64{}
	for row := range strings.SplitSeq(read(t, "lab/e2e/cost/testdata/table.md"), "\n") {
		cells := strings.Split(row, " | ")
		if len(cells) < 6 {
			continue
		}
		if n, err := strconv.ParseFloat(cells[4], 64); err == nil {
			counted[strings.TrimPrefix(cells[0], "| ")] = n
		}
	}
	want := besideTable(counted[referenceUnbatched], counted[referenceBatched])
	if counted[referenceUnbatched] == 0 || !strings.Contains(read(t, "docs/cost.md"), "\n\n"+want+"\n") {
		t.Errorf("docs/cost.md should say\n%s", want)
	}
}

// What is paid for metrics is bounded by how many there are: those of an agent once for each.
func TestThePageSaysWhatMetricsCost(t *testing.T) {
	most := len(deployed.Metrics())
	says := fmt.Sprintf("which can be %d, those of the agents once for each", most)
	if !strings.Contains(read(t, "docs/cost.md"), says) {
		t.Errorf("docs/cost.md does not say %q", says)
	}
	agents, workflows := len(deployed.MetricsByAgent()), len(deployed.MetricsByWorkflow())
	says = fmt.Sprintf("%d for each agent, %.2f $ a month, and %d for each workflow, %.2f $", agents, float64(agents)*prices.Metric, workflows, float64(workflows)*prices.Metric)
	if !strings.Contains(read(t, "docs/cost.md"), says) {
		t.Errorf("docs/cost.md does not say %q", says)
	}
}
