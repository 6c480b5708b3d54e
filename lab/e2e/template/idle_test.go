package template

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/store/dynamostore"

	"github.com/makegood-dev/makegood/lab/e2e/prices"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

const deployPage = "../../../docs/deploy.md"

// List prices in dollars beside those of package prices, of the same place and time: docs/deploy.md names the pages.
const (
	perMillionTicks    = 1.00
	perAlarm           = 0.10
	perDashboard       = 3.00
	perKey             = 1.00
	minutes            = 30 * 24 * 60 // of a month
	pollers            = 5            // of a queue that feeds a function; MaximumConcurrency keeps them at that
	receivesPerMinute  = 3            // long polls of 20 seconds
	secondsPerSweep    = 0.3          // assumed; with MemorySize it makes cents
	logBytesPerSweep   = 1500         // assumed: two lines of ours, three of Lambda's
	leaseWrites        = 2            // of a shard: taken, released
	beginWrites        = 1            // of one of beginnings, beside those: renewed before it is looked at ahead
	placeWrites        = 1            // how far was looked ahead
	readsPerEmptyQuery = 0.5          // eventually consistent
)

// cost is what one part costs in a month in which no job is submitted.
type cost struct {
	part, from string
	dollars    float64
}

// idle computes them from the template as an environment deploys it.
func (t *template) idle(shards int) []cost {
	million := func(n float64, price float64) float64 { return n / 1e6 * price }
	queues, alarms, dashboards := 0, 0, 0
	for _, name := range t.Of(queueKind) {
		if !t.isDead(name) {
			queues++
		}
	}
	if t.Conditions["IsWatched"] {
		alarms = len(t.Of(alarmKind))
	}
	if t.Conditions["HasDashboard"] {
		dashboards = len(t.Of("AWS::CloudWatch::Dashboard"))
	}
	traces := 0.0
	if stackfile.Text(stackfile.At(t.Globals, "Function", "Tracing")) == "Active" {
		traces = million(minutes, prices.MillionTraces)
	}
	begins := dynamostore.BeginShards(shards)
	leases := float64(minutes * ((shards+begins)*leaseWrites + begins*beginWrites))
	// A shard of beginnings is asked for what is overdue, and for what is about to begin; and the place is read.
	queries := float64(minutes * (shards + 2*begins + 1))
	memory := float64(stackfile.Number(t.Property("Supervisor", "MemorySize"))) / 1024
	return []cost{
		{"queues", fmt.Sprintf("%d that feed a function, %d empty receives each", queues, pollers*receivesPerMinute*minutes), million(float64(queues*pollers*receivesPerMinute*minutes), prices.MillionRequests)},
		{"sweeps: leases", fmt.Sprintf("%d shards a minute, %d writes each; %d of beginnings, %d each", shards, leaseWrites, begins, leaseWrites+beginWrites), million(leases, prices.MillionWrites)},
		{"sweeps: looking", "a query for each shard, two for one of beginnings; a question for the queue's depth; how far was looked ahead read and written", million(queries*readsPerEmptyQuery, prices.MillionReads) + million(minutes, prices.MillionRequests) + million(minutes*placeWrites, prices.MillionWrites)},
		{"audit", "a look at its place a minute, a page and a write an hour", million((minutes+minutes/60)*readsPerEmptyQuery, prices.MillionReads) + million(minutes/60, prices.MillionWrites)},
		{"sweeps: running", fmt.Sprintf("%d ticks and invocations of %.1f s", minutes, secondsPerSweep), million(minutes, prices.MillionInvocations+perMillionTicks) + minutes*secondsPerSweep*memory*prices.GBSecond},
		{"logs and metrics", fmt.Sprintf("%d bytes a sweep, two metrics", logBytesPerSweep), minutes*logBytesPerSweep/1e9*prices.GBOfLogs + 2*prices.Metric},
		{"traces", "one a sweep, if Tracing is Active", traces},
		{"alarms", fmt.Sprint(alarms), float64(alarms) * perAlarm},
		{"dashboard", fmt.Sprint(dashboards), float64(dashboards) * perDashboard},
		{"key", "1", perKey},
	}
}

func TestThePageSaysWhatAnIdleStackCosts(t *testing.T) {
	// The page's figures are those of the sample's five agents; a reader's own cost a little more or less.
	source := agentList.ReplaceAllString(readFile(t, templateFile), "  Agents: &agents [inventory, payments, shipping, http, hello]")
	var rows [2][]cost
	for i, environment := range []string{"dev", "prod"} {
		whole, err := parse(source, overrides(t)[environment])
		if err != nil {
			t.Fatal(err)
		}
		shards := stackfile.Number(whole.Parameters["Shards"])
		if set, ok := overrides(t)[environment]["Shards"]; ok {
			if _, err := fmt.Sscan(stackfile.Text(set), &shards); err != nil {
				t.Fatal(err)
			}
		}
		rows[i] = whole.idle(shards)
	}
	var want strings.Builder
	var sums [2]float64
	want.WriteString("| part | in prod | dev $ | prod $ |\n|---|---|---|---|\n")
	for i, prod := range rows[1] {
		dev := rows[0][i]
		sums[0], sums[1] = sums[0]+dev.dollars, sums[1]+prod.dollars
		fmt.Fprintf(&want, "| %s | %s | %.2f | %.2f |\n", prod.part, prod.from, dev.dollars, prod.dollars)
	}
	fmt.Fprintf(&want, "| **a month** | | **%.2f** | **%.2f** |\n", sums[0], sums[1])
	if !strings.Contains(readFile(t, deployPage), want.String()) {
		t.Errorf("docs/deploy.md does not show what the template makes; it should say\n%s", want.String())
	}
	readme := strings.Join(strings.Fields(readFile(t, "../../../README.md")), " ")
	if says := fmt.Sprintf("%.0f $ a month as `dev`, %.0f $ as `prod`", sums[0], sums[1]); !strings.Contains(readme, says) {
		t.Errorf("README.md does not say %q", says)
	}
	// What costs most idle is what a reader can switch off; so dev, which has, must be the cheaper.
	if slices.IndexFunc(rows[0], func(c cost) bool { return c.dollars < 0 }) >= 0 || sums[0] >= sums[1] {
		t.Errorf("dev costs %.2f, prod %.2f", sums[0], sums[1])
	}
}
