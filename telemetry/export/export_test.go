package export_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/telemetry/export"
)

const note = `
name: note
steps:
  - {name: write, agent: post}
  - {name: think, agent: wait, with: {for: 1ms}}
  - {name: send, agent: post, retry: {attempts: 2, backoff: 1ms}}
`

// send lets a few notes through an engine whose telemetry goes to e, and returns the page of metrics; then all is closed.
func send(t *testing.T, e *export.Export, jobs int) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	post := agent.New("post", agent.Do("write", func(context.Context, any) (string, error) { return "Dear", nil }),
		agent.Do("send", func(ctx context.Context, _ any) (string, error) {
			if agent.TaskOf(ctx).Attempt == 1 {
				return "", agent.NotApplied(os.ErrDeadlineExceeded)
			}
			return "sent", nil
		}))
	eng, err := engine.Open(ctx, engine.Options{
		Workflows: fstest.MapFS{"note.yaml": {Data: []byte(note)}}, Agents: []agent.Handler{post}, Telemetry: e.Telemetry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	var ids []string
	for range jobs {
		job, err := eng.Submit(ctx, makegood.Submission{Workflow: "note", Input: json.RawMessage("null")})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, job.ID)
	}
	for _, id := range ids {
		if job, err := eng.Wait(ctx, id); err != nil || job.ProcessState != makegood.JobProcessed {
			t.Fatalf("got %s, %v, want a note that was sent", job.ProcessState, err)
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	page := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Host = "127.0.0.1"
	eng.Handler().ServeHTTP(page, request)
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	if page.Code != http.StatusOK {
		t.Fatalf("GET /metrics: got %d %s", page.Code, page.Body)
	}
	return page.Body.String()
}

func open(t *testing.T, env map[string]string) *export.Export {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	e, err := export.Open(t.Context(), export.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The page says what has happened, and every metric that the dashboard and the docs name is on it.
func TestThePageOfMetricsHasWhatTheDashboardShows(t *testing.T) {
	e := open(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"})
	page := send(t, e, 2)
	_ = e.Close(t.Context()) // Nobody takes the spans.
	for _, want := range []string{
		`makegood_jobs_submitted_total{makegood_workflow="note"} 2`,
		`makegood_jobs_ended_total{makegood_job_state="Processed",makegood_workflow="note"} 2`,
		`makegood_attempts_total{makegood_agent="post",makegood_outcome="failed",makegood_workflow="note"} 2`,
		`makegood_attempts_total{makegood_agent="post",makegood_outcome="succeeded",makegood_workflow="note"} 4`,
		`makegood_queue_duration_seconds_count{makegood_agent="post"} 6`,
		`messaging_process_duration_seconds_count{error_type="failed",messaging_destination_name="tasks-post",messaging_operation_name="process",messaging_system="makegood"} 2`,
		`makegood_step_duration_seconds_count{makegood_step="write",makegood_undo="false",makegood_workflow="note"} 2`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("got\n%s\nwant %s", page, want)
		}
	}
	named := regexp.MustCompile(`\b(?:makegood|messaging)_[a-z_]+`)
	dashboard, err := os.ReadFile("../grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &parsed); err != nil {
		t.Fatal(err)
	}
	labels := named.FindAllString(strings.Join(regexp.MustCompile(`\{[^}]*\}`).FindAllString(page, -1), " "), -1)
	shown := 0
	for _, p := range parsed.Panels {
		for _, target := range p.Targets {
			for _, name := range named.FindAllString(target.Expr, -1) {
				shown++
				// A counter that nothing has raised is not on the page, but for its kind.
				if !strings.Contains(page, "\n"+name+"{") && !strings.Contains(page, "\n"+name+" ") && !slices.Contains(labels, name) && !slices.Contains(silent, name) {
					t.Errorf("the dashboard shows %s, which the page has not", name)
				}
			}
		}
	}
	if shown < 20 {
		t.Errorf("the dashboard names %d metrics, want all of them", shown)
	}
}

// silent are metrics of what does not happen here.
var silent = []string{"makegood_jobs_stopped_total"}

// A collector that is not there, or never answers, delays no job; what it does not take is dropped, and counted.
func TestACollectorThatHangsDelaysNothing(t *testing.T) {
	var asked atomic.Int64
	done := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	defer close(done)
	e := open(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": hanging.URL, "OTEL_BSP_SCHEDULE_DELAY": "1", "OTEL_METRICS_EXPORTER": "none"})
	page := send(t, e, 450)
	if !regexp.MustCompile(`makegood_telemetry_spans_total\{makegood_outcome="dropped"\} [1-9]`).MatchString(page) || !strings.Contains(page, `makegood_telemetry_spans_total{makegood_outcome="sent"} 0`) {
		t.Errorf("got\n%s\nwant spans that were dropped, and counted", page)
	}
	if asked.Load() == 0 {
		t.Error("the collector was not asked")
	}
}

// What the environment asks for and is not here is said, by the variable's name.
func TestWhatIsNotHereIsRefusedByItsName(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "zipkin", "OTEL_METRICS_EXPORTER": "console", "OTEL_TRACES_SAMPLER": "jaeger_remote",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
			e, err := export.Open(t.Context(), export.Options{})
			if err == nil {
				t.Fatalf("got an export, %v, want an error", e)
			}
			if !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want the name of the variable", err)
			}
		})
	}
}

// A program that sends its telemetry where OTEL_EXPORTER_OTLP_ENDPOINT says, and shows its metrics at /metrics.
func Example() {
	exported, err := export.Open(context.Background(), export.Options{Service: "shop"})
	if err != nil {
		slog.Error("telemetry", "error", err)
		return
	}
	defer func() { _ = exported.Close(context.Background()) }()
	eng, err := engine.Open(context.Background(), engine.Options{Telemetry: exported.Telemetry()})
	if err != nil {
		slog.Error("open", "error", err)
		return
	}
	defer func() { _ = eng.Close() }()
	// Output:
}
