package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Other stands in metrics for the names beyond makegood.MaxMetricNames.
const Other = "other"

// keyAgentQueue and keyOperationName are of OpenTelemetry's conventions for messaging.
const (
	keyAgentQueue    = attribute.Key("messaging.destination.name")
	keyOperationName = attribute.Key("messaging.operation.name")
	keySystem        = attribute.Key("messaging.system")
)

// bounds are the buckets of durations, in seconds: from what an agent in the process takes to what a person does.
func bounds() metric.HistogramOption {
	return metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6*3600, 24*3600, 7*24*3600)
}

// metrics are the instruments, and the names that they have been given.
type metrics struct {
	submitted, ended, stopped, attempts, swept, overdue metric.Int64Counter
	job, step, process, queue, wait, lateness, sweep    metric.Float64Histogram

	workflows, agents, steps names
}

// newMetrics makes the instruments. What a meter refuses is an instrument that does nothing.
func newMetrics(meter metric.Meter) *metrics {
	counter := func(name, unit, says string) metric.Int64Counter {
		made, _ := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(says))
		return made
	}
	seconds := func(name, says string) metric.Float64Histogram {
		made, _ := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(says), bounds())
		return made
	}
	return &metrics{
		submitted: counter("makegood.jobs.submitted", "{job}", "Jobs that were stored."),
		ended:     counter("makegood.jobs.ended", "{job}", "Jobs that came to an end, by it."),
		stopped:   counter("makegood.jobs.stopped", "{job}", "Jobs that came into Error, and wait for a person."),
		attempts:  counter("makegood.attempts", "{attempt}", "Attempts that ended, by their outcome."),
		swept:     counter("makegood.sweeps", "{sweep}", "Sweeps of the Supervisor."),
		overdue:   counter("makegood.sweep.overdue", "{job}", "Jobs that sweeps found overdue."),
		job:       seconds("makegood.job.duration", "From a job's birth to its end."),
		step:      seconds("makegood.step.duration", "From the first claim of a step, or of its undo, until it was done."),
		process:   seconds("messaging.process.duration", "From the claim of an attempt until its end was known."),
		queue:     seconds("makegood.queue.duration", "How long an attempt waited for its agent."),
		wait:      seconds("makegood.wait.duration", "How long a step waited for somebody or something outside."),
		lateness:  seconds("makegood.lateness", "How long after its time something that was due was acted on."),
		sweep:     seconds("makegood.sweep.duration", "How long a sweep took."),
	}
}

// record counts what an event has brought about.
func (m *metrics) record(ctx context.Context, h job.Happened, s seen) {
	workflow := keyWorkflow.String(m.workflows.bound(h.After.Workflow))
	if s.born {
		m.submitted.Add(ctx, 1, metric.WithAttributes(workflow))
	}
	if s.stopped {
		m.stopped.Add(ctx, 1, metric.WithAttributes(workflow))
	}
	if s.finished {
		with := metric.WithAttributes(workflow, keyState.String(string(h.After.ProcessState)))
		m.ended.Add(ctx, 1, with)
		m.job.Record(ctx, seconds(h.After.CreatedAt, h.At), with)
	}
	for _, a := range s.attempts {
		m.attempt(ctx, h, a, workflow)
	}
	for _, w := range s.waits {
		m.wait.Record(ctx, seconds(w.began, h.At), metric.WithAttributes(workflow, keyOutcome.String(string(w.outcome))))
	}
	for _, done := range s.steps {
		if done.began.IsZero() {
			continue
		}
		name := m.steps.bound(h.After.Workflow + "\x00" + done.step)
		if name != Other {
			name = done.step
		}
		m.step.Record(ctx, seconds(done.began, h.At), metric.WithAttributes(workflow, keyStep.String(name), keyUndo.Bool(done.undo)))
	}
	if due, is := h.Event.(job.DeadlinePassed); is && !due.Key.IsZero() {
		m.lateness.Record(ctx, seconds(due.Key, h.At))
	}
}

func (m *metrics) attempt(ctx context.Context, h job.Happened, a attempt, workflow attribute.KeyValue) {
	agent := m.agents.bound(a.agent)
	m.attempts.Add(ctx, 1, metric.WithAttributes(workflow, keyAgent.String(agent), keyOutcome.String(string(a.outcome))))
	if a.claimed.IsZero() {
		return
	}
	claimed := between(a.opened, a.claimed, h.At)
	queue := []attribute.KeyValue{keySystem.String("makegood"), keyOperationName.String("process"), keyAgentQueue.String("tasks-" + agent)}
	m.queue.Record(ctx, seconds(a.opened, claimed), metric.WithAttributes(keyAgent.String(agent)))
	if failure := a.failure(); failure != "" {
		// The outcome alone: kinds are whatever agents call them.
		queue = append(queue, keyError.String(string(a.outcome)))
	}
	m.process.Record(ctx, seconds(claimed, h.At), metric.WithAttributes(queue...))
}

// names are the values that an attribute has had, so that a metric has no more of them than it may.
type names struct {
	mu    sync.Mutex
	known map[string]bool
}

// bound returns a name, or Other where there are too many.
func (n *names) bound(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
		return name
	case len(n.known) >= makegood.MaxMetricNames:
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
	w.metrics.swept.Add(ctx, 1)
	w.metrics.overdue.Add(ctx, int64(overdue))
	w.metrics.sweep.Record(ctx, took.Seconds())
}
