// Package telemetry says where the traces and metrics of an engine go: to providers of OpenTelemetry. It needs
// OpenTelemetry's API and not its SDK, makes no provider, and sends nothing; package telemetry/export makes providers from
// the environment.
package telemetry

import (
	"context"
	"crypto/rand"
	"net/http"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	watch "github.com/makegood-dev/makegood/internal/telemetry"
)

// Telemetry is where traces and metrics go. The zero value: nowhere, and nothing is made for them.
type Telemetry struct {
	// Traces gets a span for each attempt, and for each thing that happened to a job. A provider of the SDK must make
	// its ids with IDs (sdktrace.WithIDGenerator): the engine says which a span has. Nil: there are no spans.
	Traces trace.TracerProvider
	// Sampled says whether the trace of a job is kept whose submitter did not say so: the same for the same trace, whoever
	// asks and when, since nothing of it is stored. Nil: all are. What the sampler of Traces drops is dropped besides.
	Sampled func(trace.TraceID) bool
	// Metrics gets the metrics; nil: none are recorded.
	Metrics metric.MeterProvider
	// Scrape, if set, answers GET /metrics beside the API, to whoever may ask that.
	Scrape http.Handler
}

// IDs makes the ids of spans: those that an engine asks for, and random ones for everybody else. It is an IDGenerator of
// OpenTelemetry's SDK. The zero value is ready, and may be used by many goroutines at once.
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
