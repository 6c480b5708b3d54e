package otlp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/makegood-dev/makegood/internal/otlp"
	"github.com/makegood-dev/makegood/internal/testkit/spansink"
)

func backend(t *testing.T) (*spansink.Sink, string) {
	t.Helper()
	var sink spansink.Sink
	server := httptest.NewServer(&sink)
	t.Cleanup(server.Close)
	return &sink, server.URL
}

func open(t *testing.T, endpoint string, log *slog.Logger) *otlp.Spans {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
	service, err := otlp.Describe(t.Context(), attribute.String("service.name", "prod-scheduler"))
	if err != nil {
		t.Fatal(err)
	}
	spans, err := otlp.Open(service, log)
	if err != nil || spans == nil {
		t.Fatalf("got %v, %v, want a provider", spans, err)
	}
	return spans
}

// all makes spans with all that a span may have.
func all(provider trace.TracerProvider) {
	ctx, root := provider.Tracer("agents", trace.WithInstrumentationVersion("1.2"), trace.WithSchemaURL("https://example.com/schema"), trace.WithInstrumentationAttributes(attribute.Bool("ours", true))).
		Start(context.Background(), "root", trace.WithSpanKind(trace.SpanKindServer))
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: 1, Remote: true})
	kinds := []trace.SpanKind{trace.SpanKindUnspecified, trace.SpanKindInternal, trace.SpanKindClient, trace.SpanKindProducer, trace.SpanKindConsumer}
	for _, kind := range kinds {
		_, span := provider.Tracer("engine").Start(ctx, kind.String(), trace.WithSpanKind(kind), trace.WithLinks(trace.Link{SpanContext: remote, Attributes: []attribute.KeyValue{attribute.Int("n", 1)}}))
		span.SetAttributes(attribute.Bool("b", true), attribute.Int("i", -7), attribute.Float64("f", 1.5), attribute.String("s", "text"),
			attribute.BoolSlice("bs", []bool{true, false}), attribute.IntSlice("is", []int{1, 2}), attribute.Float64Slice("fs", []float64{.5}), attribute.StringSlice("ss", []string{"x", ""}))
		span.AddEvent("claimed", trace.WithAttributes(attribute.Int("n", 2)))
		span.SetStatus(codes.Error, "no room")
		span.End()
	}
	_, far := provider.Tracer("engine").Start(trace.ContextWithRemoteSpanContext(context.Background(), remote), "far")
	far.SetStatus(codes.Ok, "")
	far.End()
	root.End()
}

// What is sent is what OpenTelemetry's own exporter sends of the same spans, byte for byte of its meaning.
func TestWhatIsSentIsWhatOpenTelemetrysExporterSends(t *testing.T) {
	ours, at := backend(t)
	theirs, there := backend(t)
	held := open(t, at, slog.Default())
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(there+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	same := &tracetest.InMemoryExporter{}
	held.Provider.RegisterSpanProcessor(sdktrace.NewSimpleSpanProcessor(same))
	all(held.Provider)
	held.Flush(t.Context())
	if err := exporter.ExportSpans(t.Context(), same.GetSpans().Snapshots()); err != nil {
		t.Fatal(err)
	}
	got, want := ours.Requests(), theirs.Requests()
	if len(got) != 1 || len(want) != 1 || len(ours.Spans()) != 7 {
		t.Fatalf("got %d and %d requests with %d spans, want one each, with 7", len(got), len(want), len(ours.Spans()))
	}
	for _, request := range want {
		// Whose spans come first is not said.
		scopes := request.GetResourceSpans()[0].GetScopeSpans()
		if scopes[0].GetScope().GetName() != "engine" {
			scopes[0], scopes[1] = scopes[1], scopes[0]
		}
	}
	if !proto.Equal(got[0], want[0]) {
		t.Errorf("got\n%s\nwant\n%s", prototext.Format(got[0]), prototext.Format(want[0]))
	}
}

// A collector that hangs is given up after FlushWithin, and then left alone for RestFor. What was to be sent is dropped, and said.
func TestACollectorThatHangsCostsOneFlushAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		asked := 0
		hangs := func(ctx context.Context) error { asked++; <-ctx.Done(); return ctx.Err() }
		spans := otlp.OpenOn(hangs, slog.New(slog.NewJSONHandler(&log, nil)))
		flush := func() time.Duration {
			_, span := spans.Provider.Tracer("test").Start(t.Context(), "work")
			span.End()
			begin := time.Now()
			spans.Flush(t.Context())
			return time.Since(begin)
		}
		if took := flush(); took != otlp.FlushWithin || asked != 1 {
			t.Errorf("the first flush: got %s and %d questions, want %s and one", took, asked, otlp.FlushWithin)
		}
		if took := flush(); took != 0 || asked != 1 {
			t.Errorf("the second: got %s and %d questions, want none", took, asked)
		}
		time.Sleep(otlp.RestFor)
		if took := flush(); took != otlp.FlushWithin || asked != 2 {
			t.Errorf("after its rest: got %s and %d questions, want %s and one more", took, asked, otlp.FlushWithin)
		}
		if said := strings.Count(log.String(), "spans were dropped"); said != 3 {
			t.Errorf("got the log %s, want each span that was dropped said", log.String())
		}
	})
}

// An invocation that has little time left gives half of it at most, and nothing where there is none; one whose work has ended its
// context flushes all the same.
func TestAFlushTakesHalfOfWhatIsLeftAtMost(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		time.Minute: otlp.FlushWithin, 100 * time.Millisecond: 50 * time.Millisecond, -time.Second: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			var took time.Duration
			begin := time.Now()
			spans := otlp.OpenOn(func(ctx context.Context) error { <-ctx.Done(); took = time.Since(begin); return ctx.Err() }, slog.New(slog.DiscardHandler))
			_, span := spans.Provider.Tracer("test").Start(t.Context(), "work")
			span.End()
			ctx, cancel := context.WithDeadline(t.Context(), begin.Add(left))
			cancel()
			spans.Flush(ctx)
			if took != want {
				t.Errorf("with %s left: got a flush of %s, want %s", left, took, want)
			}
		})
	}
}

// More than MaxHeld spans are not kept, and nothing is asked where nothing waits.
func TestNoMoreThanMaxHeldSpansWait(t *testing.T) {
	sink, at := backend(t)
	var log bytes.Buffer
	spans := open(t, at, slog.New(slog.NewJSONHandler(&log, nil)))
	spans.Flush(t.Context())
	for range otlp.MaxHeld + 3 {
		_, span := spans.Provider.Tracer("test").Start(t.Context(), "work")
		span.End()
	}
	spans.Flush(t.Context())
	if got := len(sink.Spans()); got != otlp.MaxHeld || len(sink.Requests()) != 1 || !strings.Contains(log.String(), `"spans":3`) {
		t.Errorf("got %d spans in %d requests, and the log %s; want %d in one, and three dropped", got, len(sink.Requests()), log.String(), otlp.MaxHeld)
	}
}

// A collector that sends on elsewhere is not followed: what the headers hold is for it alone.
func TestNobodyIsFollowedElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("spans came to another server") }))
	t.Cleanup(elsewhere.Close)
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	var log bytes.Buffer
	spans := open(t, moved.URL, slog.New(slog.NewJSONHandler(&log, nil)))
	all(spans.Provider)
	if err := spans.Provider.ForceFlush(t.Context()); err != nil || !strings.Contains(log.String(), "307 Temporary Redirect") {
		t.Errorf("got %v and the log %s, want its status", err, log.String())
	}
	if err := spans.Provider.Shutdown(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What the collector refuses is dropped, and its answer said without what it quotes.
func TestARefusalIsSaid(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "key 12345 is no good", http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	var log bytes.Buffer
	spans := open(t, refusing.URL, slog.New(slog.NewJSONHandler(&log, nil)))
	all(spans.Provider)
	if err := spans.Provider.ForceFlush(t.Context()); err != nil {
		t.Errorf("got %v, want nobody to hear of it but the log", err)
	}
	if !strings.Contains(log.String(), "403 Forbidden") || strings.Contains(log.String(), "12345") {
		t.Errorf("got the log %s, want the status alone", log.String())
	}
	if err := spans.Provider.Shutdown(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Without a variable there is no provider; with one that is wrong there is an error.
func TestNothingIsMadeThatNobodyAskedFor(t *testing.T) {
	if spans, err := otlp.Open(resource.Empty(), slog.Default()); spans != nil || err != nil {
		t.Errorf("got %v, %v, want nothing", spans, err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")
	if spans, err := otlp.Open(resource.Empty(), slog.Default()); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") {
		t.Errorf("got %v, %v, want the variable named", spans, err)
	}
}
