// Package otlp reads the variables of OpenTelemetry (OTEL_*): whether a signal is wanted, where it goes, which traces
// are kept, and the service that sends. It makes no span.
//
// It also holds the spans of a process that is frozen between two pieces of work, and sends them over OTLP when it is
// told to. It runs no goroutine beside its caller, and a slow or absent collector costs little: FlushWithin once in
// RestFor. Its sender has a hundred lines: OpenTelemetry's for OTLP over HTTP links gRPC, and doubles a function's
// program.
package otlp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/telemetry"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// MaxHeld is how many spans may wait for a Flush; further spans are dropped. About 2 MB.
	MaxHeld = 2048
	// FlushWithin is how long a Flush takes at most; what a collector has not taken by then is dropped.
	FlushWithin = 500 * time.Millisecond
	// RestFor is how long a collector that did not take spans is not asked again; what ends meanwhile is dropped.
	RestFor = 30 * time.Second
)

// Spans is a provider that holds its spans until they are sent.
type Spans struct {
	Provider *sdktrace.TracerProvider
	// Sampled is telemetry.Telemetry's.
	Sampled func(trace.TraceID) bool
	holder  *holder
}

// Open makes the provider. It returns nil if no variable asks for spans, and an error if they ask for an unsupported
// exporter. It makes no request to the collector yet.
func Open(service *resource.Resource, logger *slog.Logger) (*Spans, error) {
	wanted, err := Wanted("TRACES")
	if err != nil || !wanted {
		return nil, err
	}
	sampled, err := Sampling()
	if err != nil {
		return nil, err
	}
	to, err := SpansTo()
	if err != nil {
		return nil, err
	}
	h := &holder{send: newSender(to, service).send, logger: logger, now: time.Now}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(h), sdktrace.WithIDGenerator(telemetry.IDs{}), sdktrace.WithResource(service))
	return &Spans{provider, sampled, h}, nil
}

// Flush sends the spans that have ended, for FlushWithin and for half of the rest of ctx at most. Refused spans are
// dropped and logged; the caller gets no error.
func (s *Spans) Flush(ctx context.Context) { s.holder.flush(ctx) }

// holder keeps spans that have ended. It is what a provider hands them to.
type holder struct {
	send   func(context.Context, []sdktrace.ReadOnlySpan) error
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	ended []sdktrace.ReadOnlySpan
	// tooMany is how many were not kept, rests until when the collector is not asked.
	tooMany int
	rests   time.Time
}

// OnStart has no effect: a span is kept when it has ended.
func (h *holder) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps a span, or drops it.
func (h *holder) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) == MaxHeld {
		h.tooMany++
		return
	}
	h.ended = append(h.ended, s)
}

// ForceFlush sends the held spans: code of an agent may ask its provider for it.
func (h *holder) ForceFlush(ctx context.Context) error {
	h.flush(ctx)
	return nil
}

// Shutdown sends the held spans.
func (h *holder) Shutdown(ctx context.Context) error { return h.ForceFlush(ctx) }

func (h *holder) flush(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	spans, tooMany := h.ended, h.tooMany
	h.ended, h.tooMany = nil, 0
	if tooMany > 0 {
		h.drop(ctx, tooMany, errors.New("too many wait"))
	}
	if len(spans) == 0 {
		return
	}
	if h.now().Before(h.rests) {
		h.drop(ctx, len(spans), errors.New("the collector did not take the last ones"))
		return
	}
	within := FlushWithin
	if end, ok := ctx.Deadline(); ok {
		within = min(within, end.Sub(h.now())/2)
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := h.send(sending, spans); err != nil {
		h.rests = h.now().Add(RestFor)
		h.drop(ctx, len(spans), err)
	}
}

func (h *holder) drop(ctx context.Context, n int, why error) {
	h.logger.WarnContext(ctx, "spans were dropped", "spans", n, "error", why)
}
