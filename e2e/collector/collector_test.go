//go:build collector

package collector

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/telemetry/export"
)

// sink is where the collector sends what it has collected: a backend of traces.
type sink struct {
	mu    sync.Mutex
	spans []*tracepb.Span
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = plain
	}
	data, err := io.ReadAll(body)
	var request collectorpb.ExportTraceServiceRequest
	if err = errors.Join(err, proto.Unmarshal(data, &request)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.spans = append(s.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// tree is what came, oldest first, each span with its parent and its outcome.
func (s *sink) tree() (lines []string, traces map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, traces := map[string]string{"": ""}, map[string]bool{}
	for _, span := range s.spans {
		names[string(span.SpanId)] = span.Name
		traces[fmt.Sprintf("%x", span.TraceId)] = true
	}
	spans := slices.Clone(s.spans)
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int { return int(int64(a.EndTimeUnixNano) - int64(b.EndTimeUnixNano)) })
	for _, span := range spans {
		line := span.Name
		if parent, known := names[string(span.ParentSpanId)]; !known {
			line += " under somebody who is not there"
		} else if parent != "" {
			line += " under " + parent
		}
		for _, a := range span.Attributes {
			if a.Key == "makegood.outcome" {
				line += ", " + a.Value.GetStringValue()
			}
		}
		for _, link := range span.Links {
			line += ", see " + names[string(link.SpanId)]
		}
		lines = append(lines, line)
	}
	return lines, traces
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start starts the collector before a sink, and returns where it listens.
func start(t *testing.T, to string) string {
	t.Helper()
	program := os.Getenv("MAKEGOOD_COLLECTOR")
	if program == "" {
		t.Fatal("there is no collector: make collector installs one and says where it is")
	}
	at, dir := free(t), t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, program, "start", "--pid-file", filepath.Join(dir, "pid"), "--log-file", filepath.Join(dir, "log"),
		"--otlp-http-endpoint", at, "--otlp-grpc-endpoint", free(t), "--exporter", "otlp", "--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", to)
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = process.Wait() })
	within(t, "the collector listens", func() bool {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	return "http://" + at
}

// within waits until something is so.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 30 s it is not so that %s", what)
		}
	}
}

const booking = `
name: booking
steps:
  - {name: charge, agent: desk, undo: {action: refund}, retry: {attempts: 2, backoff: 1ms}}
  - {name: think, agent: wait, with: {for: 1ms}}
  - {name: ticket, agent: desk, undo: none}
`

// want is the trace of a booking whose charge needs two attempts, which waits, and whose ticket is refused.
var want = []string{
	"submit booking",
	"charge under submit booking, failed",
	"charge under submit booking, succeeded",
	"end of wait think under submit booking, timeout",
	"ticket under submit booking, failed",
	"turn under submit booking",
	"undo charge under submit booking, succeeded",
	"end booking under submit booking",
}

// A job with a retry, a wait and an undo is one trace behind a real collector: every span is there, under its parent.
func TestTheTraceOfAJobIsWholeInACollector(t *testing.T) {
	var there sink
	backend := httptest.NewServer(&there)
	defer backend.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", start(t, backend.URL))
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	exported, err := export.Open(t.Context(), export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	book(t, exported)
	if err := exported.Close(t.Context()); err != nil {
		t.Error(err)
	}
	within(t, "all spans have come", func() bool { lines, _ := there.tree(); return len(lines) >= len(want) })
	got, traces := there.tree()
	slices.Sort(got)
	expected := slices.Sorted(slices.Values(want))
	if !slices.Equal(got, expected) || len(traces) != 1 {
		t.Errorf("got %d traces with\n%q\nwant one with\n%q", len(traces), got, expected)
	}
}

// book takes a booking to its end.
func book(t *testing.T, exported *export.Export) {
	t.Helper()
	desk := agent.New("desk",
		agent.Do("charge", func(ctx context.Context, _ json.RawMessage) (string, error) {
			if agent.TaskOf(ctx).Attempt == 1 {
				return "", agent.NotApplied(errors.New("busy"))
			}
			return "paid", nil
		}).Undo("refund", func(context.Context, json.RawMessage, *string) error { return nil }),
		agent.Do("ticket", func(context.Context, json.RawMessage) (string, error) { return "", agent.Final(errors.New("sold out")) }))
	ctx, stop := context.WithCancel(t.Context())
	eng, err := engine.Open(ctx, engine.Options{
		Workflows: fstest.MapFS{"booking.yaml": {Data: []byte(booking)}}, Agents: []agent.Handler{desk}, Telemetry: exported.Telemetry(),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	if _, err := eng.Submit(ctx, makegood.Submission{Workflow: "booking", ID: "b-1", Input: json.RawMessage("null")}); err != nil {
		t.Fatal(err)
	}
	if job, err := eng.Wait(ctx, "b-1"); err != nil || job.ProcessState != makegood.Undone {
		t.Errorf("got %s, %v, want a booking that is undone", job.ProcessState, err)
	}
	stop()
	if err := errors.Join(<-ran, eng.Close()); err != nil {
		t.Error(err)
	}
}
