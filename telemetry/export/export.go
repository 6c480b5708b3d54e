// Package export makes the providers of an engine's telemetry from the variables that OpenTelemetry's SDKs read
// (OTEL_*): spans and metrics over OTLP (http/protobuf), and a page for Prometheus. The engine never waits for a
// collector.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/makegood-dev/makegood/internal/otlp"
	"github.com/makegood-dev/makegood/telemetry"
)

// closeWithin is how long Close tries to send the remaining spans and metrics.
const closeWithin = 3 * time.Second

// Options add to the settings of the environment.
type Options struct {
	// Service is the service.name of all that is sent, unless OTEL_SERVICE_NAME names another. Default: makegood.
	Service string
	// Logger gets a line for dropped telemetry. Nil: slog.Default().
	Logger *slog.Logger
}

// Export holds the providers. Close it after the engine that uses them has stopped.
type Export struct {
	spans   *spans // nil: no spans are wanted
	metrics *sdkmetric.MeterProvider
	scrape  http.Handler
}

// Open reads the environment. Without any variable there are no spans, and metrics are there for Prometheus alone. An
// error names the variable that asks for an unsupported feature. Open makes no request to a collector.
func Open(ctx context.Context, o Options) (*Export, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Service = cmp.Or(o.Service, "makegood")
	service, err := otlp.Describe(ctx, attribute.String("service.name", o.Service))
	if err != nil {
		return nil, err
	}
	e := &Export{}
	if e.spans, err = openSpans(ctx, service, o.Logger); err != nil {
		return nil, err
	}
	if err := e.openMetrics(ctx, service, o.Logger); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

// openMetrics makes the metrics: for scrapes, and for a collector, if one is named.
func (e *Export) openMetrics(ctx context.Context, service *resource.Resource, logger *slog.Logger) error {
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("metrics for Prometheus: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(reader), sdkmetric.WithResource(service)}
	wanted, err := otlp.Wanted("METRICS")
	if err != nil {
		return err
	}
	if wanted {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return fmt.Errorf("send metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(forgiving{exporter, logger})))
	}
	e.metrics = sdkmetric.NewMeterProvider(options...)
	e.scrape = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return e.countSpans()
}

// countSpans makes a metric of what became of spans.
func (e *Export) countSpans() error {
	if e.spans == nil {
		return nil
	}
	_, err := e.metrics.Meter("github.com/makegood-dev/makegood/telemetry/export").Int64ObservableCounter("makegood.telemetry.spans",
		metric.WithUnit("{span}"), metric.WithDescription("Spans that were sent, and that were dropped."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			sent, dropped := e.spans.Counts()
			o.Observe(sent, metric.WithAttributes(attribute.String("makegood.outcome", "sent")))
			o.Observe(dropped, metric.WithAttributes(attribute.String("makegood.outcome", "dropped")))
			return nil
		}))
	return err
}

// Telemetry is what an engine is given.
func (e *Export) Telemetry() telemetry.Telemetry {
	t := telemetry.Telemetry{Metrics: e.metrics, Scrape: e.scrape}
	if e.spans != nil {
		t.Traces, t.Sampled = e.spans.Provider, e.spans.Sampled
	}
	return t
}

// Close sends the remaining spans and metrics, for 3 seconds at most, and drops the rest.
func (e *Export) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	var errs []error
	if e.spans != nil {
		errs = append(errs, e.spans.Provider.Shutdown(ctx))
	}
	if e.metrics != nil {
		errs = append(errs, e.metrics.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// forgiving logs a failed export instead of returning its error.
type forgiving struct {
	sdkmetric.Exporter
	logger *slog.Logger
}

// Export sends metrics; what a collector has not taken, the next sending holds.
func (f forgiving) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	if err := f.Exporter.Export(ctx, all); err != nil {
		f.logger.Warn("metrics were not sent", "error", err)
	}
	return nil
}
