package deployed

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"

	"github.com/makegood-dev/makegood/internal/otlp"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
)

// holdSpans makes the exporter of spans, if the variables of OpenTelemetry (OTEL_*) ask for one; else nil. Mistakes in
// these variables are logged and stop no function: a job is worth more than its trace.
func holdSpans(ctx context.Context, p parts, log *slog.Logger) *otlp.Spans {
	service, err := otlp.Describe(ctx,
		attribute.String("service.name", p.function), attribute.String("service.namespace", p.stack),
		attribute.String("cloud.provider", "aws"), attribute.String("cloud.platform", "aws_lambda"), attribute.String("cloud.region", p.region),
		attribute.String("faas.name", p.function))
	if err == nil {
		var held *otlp.Spans
		if held, err = otlp.Open(service, log); err == nil {
			return held
		}
	}
	log.ErrorContext(ctx, "no spans are sent", "error", err)
	return nil
}

// watch makes the receiver of the Scheduler's reports about jobs.
func (s *stack) watch() *watch.Watch {
	var t watch.Providers
	if s.spans != nil {
		t = watch.Providers{Traces: s.spans.Provider, Sampled: s.spans.Sampled}
	}
	return watch.New(t, s.log).Tally(s.meter.sample)
}

// sendSpans sends the spans that ended in this invocation: after it the process may be frozen, and never wake again.
func (s *stack) sendSpans(ctx context.Context) {
	if s.spans != nil {
		s.spans.Flush(ctx)
	}
}

// lendSpans gives the code of agents the provider where OpenTelemetry's libraries look for it: spans below their task
// are sent with the rest.
func (s *stack) lendSpans() {
	if s.spans != nil {
		otel.SetTracerProvider(s.spans.Provider)
		otel.SetTextMapPropagator(propagation.TraceContext{})
	}
}
