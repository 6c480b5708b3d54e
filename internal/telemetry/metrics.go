package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/makegood-dev/makegood/internal/limits"
)

// Other stands in metrics for the names beyond limits.MaxMetricNames.
const Other = "other"

// keyAgentQueue and keyOperationName are of OpenTelemetry's conventions for messaging.
const (
	keyAgentQueue    = attribute.Key("messaging.destination.name")
	keyOperationName = attribute.Key("messaging.operation.name")
	keySystem        = attribute.Key("messaging.system")
)

// metrics are the instruments, and the names that they have been given.
type metrics struct {
	counters   map[Metric]metric.Int64Counter
	histograms map[Metric]metric.Float64Histogram

	workflows, agents, steps Names
}

// newMetrics makes the instruments. An instrument that the meter refuses has no effect.
func newMetrics(meter metric.Meter) *metrics {
	m := &metrics{counters: map[Metric]metric.Int64Counter{}, histograms: map[Metric]metric.Float64Histogram{}}
	// From what an agent in the process takes to what a person does.
	bounds := metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6*3600, 24*3600, 7*24*3600)
	for _, d := range Metrics() {
		switch {
		case d.Metric == Spans: // package telemetry/export's
		case d.Unit == seconds:
			m.histograms[d.Metric], _ = meter.Float64Histogram(string(d.Metric), metric.WithUnit(d.Unit), metric.WithDescription(d.Says), bounds)
		default:
			m.counters[d.Metric], _ = meter.Int64Counter(string(d.Metric), metric.WithUnit(d.Unit), metric.WithDescription(d.Says))
		}
	}
	return m
}

// record counts, or files, a sample.
func (m *metrics) record(ctx context.Context, s Sample) {
	with := metric.WithAttributes(m.attributes(s)...)
	if histogram, is := m.histograms[s.Metric]; is {
		histogram.Record(ctx, s.Value, with)
		return
	}
	m.counters[s.Metric].Add(ctx, int64(s.Value), with)
}

// attributes are what distinguishes samples of a metric, each bounded.
func (m *metrics) attributes(s Sample) []attribute.KeyValue {
	if s.Metric == AttemptDuration {
		queue := []attribute.KeyValue{keySystem.String("makegood"), keyOperationName.String("process"), keyAgentQueue.String("tasks-" + m.agents.Bound(s.Agent))}
		if s.Failed {
			// The outcome alone: kinds are whatever agents call them.
			queue = append(queue, keyError.String(string(s.Outcome)))
		}
		return queue
	}
	var all []attribute.KeyValue
	if s.Workflow != "" {
		all = append(all, keyWorkflow.String(m.workflows.Bound(s.Workflow)))
	}
	if s.Agent != "" {
		all = append(all, keyAgent.String(m.agents.Bound(s.Agent)))
	}
	if s.Step != "" {
		name := m.steps.Bound(s.Workflow + "\x00" + s.Step)
		if name != Other {
			name = s.Step
		}
		all = append(all, keyStep.String(name), keyUndo.Bool(s.Undo))
	}
	if s.Outcome != "" {
		all = append(all, keyOutcome.String(string(s.Outcome)))
	}
	if s.State != "" {
		all = append(all, keyState.String(string(s.State)))
	}
	return all
}

// Names are the values that an attribute has had, to bound the number that a metric has. The zero value has none, and
// may be used by many goroutines at once.
type Names struct {
	mu    sync.Mutex
	known map[string]bool
}

// Bound returns a name, or Other where there are limits.MaxMetricNames others.
func (n *Names) Bound(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
		return name
	case len(n.known) >= limits.MaxMetricNames:
		return Other
	}
	if n.known == nil {
		n.known = map[string]bool{}
	}
	n.known[name] = true
	return name
}

// Swept tells of a sweep: how long it took, and how many jobs it found overdue.
func (w *Watch) Swept(ctx context.Context, took time.Duration, overdue int) {
	if w.metrics == nil {
		return
	}
	for _, s := range []Sample{{Metric: Sweeps, Value: 1}, {Metric: SweepOverdue, Value: float64(overdue)}, {Metric: SweepDuration, Value: took.Seconds()}} {
		w.metrics.record(ctx, s)
	}
}
