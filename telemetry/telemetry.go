// Package telemetry names the OpenTelemetry providers that take the traces and metrics of an engine. It needs
// OpenTelemetry's API and not its SDK, makes no provider, and makes no requests; package telemetry/export makes
// providers from the environment.
package telemetry

import (
	"context"
	"crypto/rand"
	"net/http"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	watch "github.com/makegood-dev/makegood/internal/telemetry"
)

// Telemetry holds the destinations of traces and metrics. With the zero value none are made.
type Telemetry struct {
	// Traces gets a span for each attempt, and for each thing that happened to a job. A provider of the SDK must make
	// its ids with IDs (sdktrace.WithIDGenerator): the engine says which a span has. Nil: there are no spans.
	Traces trace.TracerProvider
	// Sampled reports whether the trace of a job is kept if its submitter did not decide. It must give the same answer
	// for a trace at any time and in every process, since the answer is not stored. Nil: all are kept. The sampler of
	// Traces may drop more.
	Sampled func(trace.TraceID) bool
	// Metrics gets the metrics; nil: none are recorded.
	Metrics metric.MeterProvider
	// Scrape, if set, answers GET /metrics beside the API, for callers with the right to read metrics.
	Scrape http.Handler
}

// IDs makes the ids of spans: the engine's own for the spans of an engine, and random ones for all others. It is an
// IDGenerator of OpenTelemetry's SDK. The zero value is ready, and may be used by many goroutines at once.
type IDs struct{}

// NewIDs returns the ids of a span that begins a trace.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, span, ok := watch.SpanIDs(ctx); ok {
		return id, span
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails, says its documentation
	return id, randomSpan()
}

// NewSpanID returns the id of a span of a trace that others began.
func (IDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if _, span, ok := watch.SpanIDs(ctx); ok {
		return span
	}
	return randomSpan()
}

func randomSpan() (span trace.SpanID) {
	_, _ = rand.Read(span[:]) // never fails, says its documentation
	return span
}
