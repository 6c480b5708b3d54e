//go:build collector

package collector

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/testkit/address"
	"github.com/makegood-dev/makegood/internal/testkit/spansink"
	"github.com/makegood-dev/makegood/telemetry/export"
)

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	addr, err := address.Free()
	if err != nil {
		t.Fatal(err)
	}
	return addr
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
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after two minutes it is not so that %s", what)
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
var want = spansink.Booking("submit booking")

// A job with a retry, a wait and an undo is one trace behind a real collector: every span is there, under its parent.
func TestTheTraceOfAJobIsWholeInACollector(t *testing.T) {
	var there spansink.Sink
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
	within(t, "all spans have come", func() bool { lines, _ := there.Tree(); return len(lines) >= len(want) })
	got, traces := there.Tree()
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
	if job, err := eng.Wait(ctx, "b-1"); err != nil || job.ProcessState != makegood.JobUndone {
		t.Errorf("got %s, %v, want a booking that is undone", job.ProcessState, err)
	}
	stop()
	if err := errors.Join(<-ran, eng.Close()); err != nil {
		t.Error(err)
	}
}
