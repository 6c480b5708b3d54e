// Package telemetry makes spans and metrics from the events of jobs. The process that saves a job reports it here,
// once, after the save; no state is stored for telemetry, and no job waits for it: an OpenTelemetry provider takes
// each item into memory, or drops it. The package makes no decisions and writes no jobs.
//
// # One trace a job
//
// The ids of the trace and of all its spans are derived from the job (tracecontext.go), so any process can name the
// span of an attempt, long before the process that ends the attempt makes that span. A span is made when it has
// ended: none is open while a job waits. So a process that dies loses only the spans that it was about to report:
// traces are reported at most once.
//
// # Content left out of spans
//
// Payloads, error messages, and the reasons that people give: they may quote confidential data. They are in the job,
// under its id.
package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood/internal/job"
)

// scope names what makes our spans and metrics.
const scope = "github.com/makegood-dev/makegood"

// Watch reports the events of jobs. The zero value, and nil, report none.
type Watch struct {
	tracer  trace.Tracer // nil: no spans
	sampled func(trace.TraceID) bool
	strange strange
	metrics *metrics // nil: none
	tally   func(Sample)
}

// Providers are the destinations of spans and metrics: those of telemetry.Telemetry, which describes each.
type Providers struct {
	Traces  trace.TracerProvider
	Sampled func(trace.TraceID) bool
	Metrics metric.MeterProvider
}

// New makes a Watch.
func New(to Providers, logger *slog.Logger) *Watch {
	w := &Watch{sampled: to.Sampled, strange: strange{logger: logger}}
	if to.Traces != nil {
		w.tracer = to.Traces.Tracer(scope)
	}
	if to.Metrics != nil {
		w.metrics = newMetrics(to.Metrics.Meter(scope))
	}
	if w.sampled == nil {
		w.sampled = func(trace.TraceID) bool { return true }
	}
	return w
}

// Tally also passes every sample to a function, set before the first event; nil: none.
func (w *Watch) Tally(to func(Sample)) *Watch {
	w.tally = to
	return w
}

// Tells reports whether events are reported anywhere.
func (w *Watch) Tells() bool { return w.tracer != nil || w.metrics != nil || w.tally != nil }

// Happened tells of events that have changed a job, in their order, once that is saved.
func (w *Watch) Happened(ctx context.Context, all []job.Happened) {
	if !w.Tells() {
		return
	}
	for _, h := range all {
		s := observe(h)
		if w.metrics != nil || w.tally != nil {
			w.count(ctx, samples(h, s))
		}
		if w.tracer != nil {
			w.trace(ctx, h, s)
		}
	}
}

func (w *Watch) count(ctx context.Context, all []Sample) {
	for _, s := range all {
		if w.metrics != nil {
			w.metrics.record(ctx, s)
		}
		if w.tally != nil {
			w.tally(s)
		}
	}
}

// Traceparent is the trace context for the agent of an attempt: the attempt's own span, so that its work belongs
// there. Without own spans it is the submitter's; empty if the submitter sent none.
func (w *Watch) Traceparent(j job.Job, d job.Dispatch) string {
	if sc := w.attempt(j, d.Step, d.Attempt); sc.IsValid() {
		return WriteTraceparent(sc)
	}
	return ""
}

// attempt is the span of an attempt, or, where we make no spans, that of the submitter.
func (w *Watch) attempt(j job.Job, step string, attempt int) trace.SpanContext {
	if w.tracer == nil {
		return Submitter(j)
	}
	return w.context(j, AttemptSpan(j, step, attempt))
}

// Context is ctx with the job's trace, for log lines.
func (w *Watch) Context(ctx context.Context, j job.Job) context.Context {
	if w.tracer == nil {
		if sc := Submitter(j); sc.IsValid() {
			return trace.ContextWithRemoteSpanContext(ctx, sc)
		}
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, w.context(j, RoundSpan(j, j.Round)))
}

// context is a span of a job's trace.
func (w *Watch) context(j job.Job, span trace.SpanID) trace.SpanContext {
	return SpanContext(TraceID(j), span, w.keeps(j))
}

// keeps reports whether the trace of a job is kept: as its submitter said, or as the user's sampling has it. Every
// process gets the same answer, so it is not stored.
func (w *Watch) keeps(j job.Job) bool {
	if sc := Submitter(j); sc.IsValid() {
		return sc.IsSampled()
	}
	return w.sampled(TraceID(j))
}
