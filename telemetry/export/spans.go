package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood/internal/otlp"
	"github.com/makegood-dev/makegood/telemetry"
)

// maxWaiting is how many spans may wait to be sent, with those that are being sent; further ones are dropped. About 2
// MB.
const maxWaiting = 2048

// spans is a provider that sends its spans to a collector over OTLP. Spans that cannot be sent in time are dropped,
// and counted; no caller waits for the collector.
type spans struct {
	Provider *sdktrace.TracerProvider
	// Sampled is telemetry.Telemetry's.
	Sampled func(trace.TraceID) bool
	gate    *gate
}

// openSpans makes the provider. It returns nil where no variable asks for spans, and an error where one asks for an
// unsupported feature. It makes no request to the collector, which may start later.
func openSpans(ctx context.Context, service *resource.Resource, logger *slog.Logger) (*spans, error) {
	wanted, err := otlp.Wanted("TRACES")
	if err != nil || !wanted {
		return nil, err
	}
	sampled, err := otlp.Sampling()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send spans: %w", err)
	}
	g := &gate{logger: logger}
	g.SpanProcessor = sdktrace.NewBatchSpanProcessor(counting{exporter, g}, sdktrace.WithMaxQueueSize(maxWaiting))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(g), sdktrace.WithIDGenerator(telemetry.IDs{}), sdktrace.WithResource(service))
	return &spans{provider, sampled, g}, nil
}

// Counts returns how many spans were sent, and how many were dropped: because too many waited, or because the
// collector did not take them.
func (s *spans) Counts() (sent, dropped int64) { return s.gate.sent.Load(), s.gate.dropped.Load() }

// gate admits no more spans than may wait, so that the processor behind it never drops one: it would do so uncounted.
type gate struct {
	sdktrace.SpanProcessor
	logger                 *slog.Logger
	waiting, sent, dropped atomic.Int64
}

// OnEnd takes a span, or drops it.
func (g *gate) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.waiting.Add(1) > maxWaiting {
		g.waiting.Add(-1)
		g.drop(1, errors.New("too many wait"))
		return
	}
	g.SpanProcessor.OnEnd(s)
}

func (g *gate) drop(n int, why error) {
	g.dropped.Add(int64(n))
	g.logger.Warn("spans were dropped", "spans", n, "error", why)
}

// counting counts sent and dropped spans. It keeps the collector's errors from the code that made the spans.
type counting struct {
	sdktrace.SpanExporter
	gate *gate
}

func (c counting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.gate.waiting.Add(-int64(len(spans)))
	if err != nil {
		c.gate.drop(len(spans), err)
		return nil
	}
	c.gate.sent.Add(int64(len(spans)))
	return nil
}
