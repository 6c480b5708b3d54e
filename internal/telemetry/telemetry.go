// Package telemetry makes spans and metrics of what happens to jobs. Whoever saves a job tells of it here, once, when it is
// saved; nothing is kept for telemetry's sake, and no job waits for it: a provider of OpenTelemetry takes what it is given into
// memory, or drops it. The package decides nothing and writes nothing.
//
// # One trace a job
//
// The ids of the trace and of all its spans are made from what the job is (tracecontext.go), so that any process can
// name the span of an attempt, long before whoever ends it makes that span. A span is made when it has ended: none is
// open while a job waits. So what a process that dies was about to tell is lost, and nothing else: traces are told at
// most once.
//
// # What no span has
//
// Payloads, messages of errors, and the reasons that people give: they may quote what is nobody else's affair. They are in the
// job, under its id.
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

// Watch tells of what happens to jobs. The zero value, and nil, tells nobody.
type Watch struct {
	tracer  trace.Tracer // nil: no spans
	sampled func(trace.TraceID) bool
	strange strange
	metrics *metrics // nil: none
	tally   func(Sample)
}

// Providers are the places where spans and metrics go: those of telemetry.Telemetry, which says what each of them is.
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

// Tally has every sample handed to somebody else as well, before the first event; nil: to nobody.
func (w *Watch) Tally(to func(Sample)) *Watch {
	w.tally = to
	return w
}

// Tells reports whether it tells anybody of events.
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

// Traceparent is what the agent of an attempt is given: the attempt's own span, so that what it begins belongs there. Without
// spans of ours it is what the submitter brought; empty where they brought nothing.
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

// keeps reports whether the trace of a job is kept: as its submitter said, or as the user's sampling has it. It is the same
// whoever asks, and so is nowhere stored.
func (w *Watch) keeps(j job.Job) bool {
	if sc := Submitter(j); sc.IsValid() {
		return sc.IsSampled()
	}
	return w.sampled(TraceID(j))
}
