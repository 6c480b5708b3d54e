package deployed

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
)

// filed is a line of metrics: where it is filed, and what.
type filed struct {
	set    string
	values map[string]string
}

// linesOf returns the lines that a meter has written.
func linesOf(t *testing.T, out string) (all []filed) {
	t.Helper()
	for line := range strings.Lines(out) {
		var fields map[string]json.RawMessage
		var head struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Dimensions [][]string
					Metrics    []struct{ Name, Unit string }
				}
			} `json:"_aws"`
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatal(err)
		}
		d := head.AWS.CloudWatchMetrics[0]
		f := filed{values: map[string]string{}}
		for _, name := range d.Dimensions[0] {
			f.set += name + "=" + string(fields[name]) + " "
		}
		for _, m := range d.Metrics {
			f.values[m.Name] = string(fields[m.Name]) + " " + m.Unit
		}
		all = append(all, f)
	}
	return all
}

func sampled(byName bool, samples ...watch.Sample) string {
	var out bytes.Buffer
	m := newMeter(&out, slog.New(slog.DiscardHandler), "prod")
	m.byName = byName
	for _, s := range samples {
		m.sample(s)
	}
	m.write(context.Background())
	m.write(context.Background()) // nothing is left
	return out.String()
}

// Times are written one by one in milliseconds, so that CloudWatch knows their percentiles; counts as their sum. Under the stack alone,
// unless names are wanted.
func TestWhatIsSampledIsWrittenOnceAnInvocation(t *testing.T) {
	samples := []watch.Sample{
		{Metric: watch.QueueDuration, Value: .0123, Agent: "http"},
		{Metric: watch.QueueDuration, Value: 2, Agent: "hello"},
		{Metric: watch.Attempts, Value: 1, Workflow: "order", Agent: "http", Outcome: watch.Silent},
		{Metric: watch.Attempts, Value: 1, Workflow: "order", Agent: "http", Outcome: watch.Silent},
		{Metric: watch.JobsEnded, Value: 1, Workflow: "order", State: makegood.JobUndone},
		{Metric: watch.StepDuration, Value: 60, Workflow: "order", Step: "ship"},
		{Metric: watch.WaitDuration, Value: 60, Workflow: "order"},
		{Metric: watch.JobsStopped, Value: 1, Workflow: "order"},
	}
	whole := map[string]string{
		"QueueTime": "[12,2000] Milliseconds", "AttemptsSilent": "2 Count", "JobsUndone": "1 Count", "StepTime": "[60000] Milliseconds",
	}
	got := linesOf(t, sampled(false, samples...))
	if len(got) != 1 || got[0].set != `Stack="prod" ` || !maps.Equal(got[0].values, whole) {
		t.Errorf("got %v, want one line with %v", got, whole)
	}
	names := map[string]map[string]string{
		`Stack="prod" `:                  whole,
		`Stack="prod" Agent="http" `:     {"QueueTime": "[12] Milliseconds", "AttemptsSilent": "2 Count"},
		`Stack="prod" Agent="hello" `:    {"QueueTime": "[2000] Milliseconds"},
		`Stack="prod" Workflow="order" `: {"JobsUndone": "1 Count", "StepTime": "[60000] Milliseconds"},
	}
	got = linesOf(t, sampled(true, samples...))
	for _, f := range got {
		if !maps.Equal(f.values, names[f.set]) {
			t.Errorf("under %s: got %v, want %v", f.set, f.values, names[f.set])
		}
	}
	if len(got) != len(names) {
		t.Errorf("got %d lines, want %d", len(got), len(names))
	}
}

// A line has a hundred values of a metric at most, an instance MaxMetricNames names, and what waits is bounded.
func TestWhatIsSampledIsBounded(t *testing.T) {
	var many, names []watch.Sample
	for i := range maxSampled + 50 {
		many = append(many, watch.Sample{Metric: watch.Lateness, Value: float64(i)})
	}
	for i := range limits.MaxMetricNames + 50 {
		names = append(names, watch.Sample{Metric: watch.JobsSubmitted, Value: 1, Workflow: strings.Repeat("x", i+1)})
	}
	values := 0
	lines := linesOf(t, sampled(false, many...))
	for _, f := range lines {
		values += strings.Count(f.values["Lateness"], ",") + 1
	}
	if values != maxSampled || len(lines) != maxSampled/maxEMFValues {
		t.Errorf("got %d values in %d lines, want %d in lines of %d", values, len(lines), maxSampled, maxEMFValues)
	}
	others := 0
	lines = linesOf(t, sampled(true, names...))
	for _, f := range lines {
		if f.set == `Stack="prod" Workflow="other" ` && f.values["JobsSubmitted"] == "50 Count" {
			others++
		}
	}
	if len(lines) != 1+limits.MaxMetricNames+1 || others != 1 {
		t.Errorf("got %d lines, %d of them of 50 others; want the stack's, %d of workflows, and that of the others", len(lines), others, limits.MaxMetricNames)
	}
}

// What is written stays within what docs/cost.md reckons an invocation's log with: Lambda's own lines are about 350 bytes of it.
func TestALineOfAStepIsAsLongAsItsCostSays(t *testing.T) {
	line := sampled(true, watch.Sample{Metric: watch.QueueDuration, Value: .123, Agent: "payments"}, watch.Sample{Metric: watch.AttemptDuration, Value: 1.234, Agent: "payments"},
		watch.Sample{Metric: watch.Attempts, Value: 1, Workflow: "order", Agent: "payments", Outcome: watch.Succeeded},
		watch.Sample{Metric: watch.StepDuration, Value: 1.234, Workflow: "order", Step: "charge"})
	for text := range strings.Lines(line) {
		if len(text) > 450 {
			t.Errorf("got a line of %d bytes, want 450 at most: %s", len(text), text)
		}
	}
}

// Every metric that a sample can have, and no other, is one that this package names, and those by name are among them.
func TestEverySampleIsOfAMetricThatIsNamed(t *testing.T) {
	reached := map[string]bool{}
	for _, d := range watch.Metrics() {
		for _, outcome := range []watch.Outcome{"", watch.Succeeded, watch.Failed, watch.Silent, watch.Waiting, watch.Withdrawn, watch.Refused, watch.Interrupted} {
			for _, state := range domain.ProcessStates() {
				if name, _ := metricOf(watch.Sample{Metric: d.Metric, Outcome: outcome, State: state}); name != "" {
					reached[name] = true
				}
			}
		}
	}
	for name := range reached {
		if !slices.Contains(Metrics(), name) {
			t.Errorf("%s is not among Metrics", name)
		}
	}
	for _, name := range slices.Concat(MetricsByAgent(), MetricsByWorkflow()) {
		if !reached[name] {
			t.Errorf("%s by name: no sample is of it", name)
		}
	}
	if len(reached) != 16 {
		t.Errorf("got %d metrics of samples, want 16: %v", len(reached), reached)
	}
}
