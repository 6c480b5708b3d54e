package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/stack"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// A list of an engine says how far a long attempt is, as it has reported last; and where it shows all jobs, it does not say that there are more.
func TestAListSaysHowFarAnAttemptIs(t *testing.T) {
	t.Setenv(stack.Variable, "")
	render := agent.Do("render", func(ctx context.Context, long bool) (string, error) {
		if !long {
			return "short", nil
		}
		if err := errors.Join(agent.Progress(ctx, map[string]int{"page": 3}), agent.Heartbeat(ctx)); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
	engine, err := embedded.Open(t.Context(), embedded.Config{Agents: []agent.Handler{agent.New("studio", render)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := workflowfile.Parse("film.yaml", []byte("name: film\nsteps: [{name: render, agent: studio, timeout: 1h, with: '${ .input }'}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Define(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	submit := func(id, input string) {
		if _, _, err := engine.SubmitCurrent(t.Context(), "film", scheduler.Submission{ID: id, Input: json.RawMessage(input)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range httpapi.MaxDetails - 1 {
		submit(fmt.Sprintf("short-%d", i), "false")
	}
	submit("long", "true")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: control.New(engine.Parts())}))
	t.Cleanup(func() {
		server.Close()
		stop()
		if err := errors.Join(<-ended, engine.Close()); err != nil {
			t.Error(err)
		}
	})
	var code int
	var stdout, stderr string
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(stdout, "REPORTED") && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		code, stdout, stderr = ask(t, "list", "--addr", server.URL)
	}
	if code != 0 || !strings.Contains(stdout, `  render {"page":3}`) {
		t.Errorf("got %d, %s%s, want what the attempt has reported", code, stdout, stderr)
	}
	if lines := strings.Count(stdout, "\n"); lines != httpapi.MaxDetails+1 || stderr != "" {
		t.Errorf("got %d lines and %q, want all %d jobs and no more", lines, stderr, httpapi.MaxDetails)
	}
	if _, stdout, stderr = ask(t, "list", "--limit", "20", "--addr", server.URL); strings.Count(stdout, "\n") != 21 || !strings.Contains(stderr, "20 shown, and there are more") {
		t.Errorf("--limit 20: got %s%s", stdout, stderr)
	}
	if _, stdout, _ = ask(t, "list", "--limit", "60", "--addr", server.URL); strings.Contains(stdout, "REPORTED") {
		t.Errorf("--limit 60: got %s", stdout)
	}
}
