package telemetry_test

import (
	"context"
	"log/slog"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/telemetry"
)

var _ sdktrace.IDGenerator = telemetry.IDs{}

// Whoever shares a provider with an engine gets ids of their own.
func TestOthersGetRandomIDs(t *testing.T) {
	ctx := context.Background()
	first, span := telemetry.IDs{}.NewIDs(ctx)
	second, other := telemetry.IDs{}.NewIDs(ctx)
	third := telemetry.IDs{}.NewSpanID(ctx, first)
	if !first.IsValid() || first == second || !span.IsValid() || span == other || third == span || third == other {
		t.Errorf("got %s %s, %s %s and %s, want ids that differ", first, span, second, other, third)
	}
}

// An engine whose traces go to a provider of the program's own.
func Example() {
	traces := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(telemetry.IDs{})) // and an exporter: sdktrace.WithBatcher
	defer func() { _ = traces.Shutdown(context.Background()) }()
	eng, err := engine.Open(context.Background(), engine.Options{Telemetry: telemetry.Telemetry{Traces: traces}})
	if err != nil {
		slog.Error("open", "error", err)
		return
	}
	defer func() { _ = eng.Close() }()
	// Output:
}
