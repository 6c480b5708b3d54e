package httpagent

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// newAgent makes an agent that may connect to this machine.
func newAgent(t *testing.T) *Agent { return newAgentWith(t, Policy{AllowPrivate: true}) }

func newAgentWith(t *testing.T, policy Policy) *Agent {
	t.Helper()
	a, err := New(policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// listen lets handle have every connection to the address that it gives.
func listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				handle(c)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// readRequest reads one request with its body from a connection; false: there is none.
func readRequest(r *bufio.Reader) bool {
	request, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	var body json.RawMessage
	_ = json.NewDecoder(request.Body).Decode(&body)
	return request.Body.Close() == nil
}

type fields map[string]any

func taskOf(t *testing.T, with fields) makegood.Task {
	t.Helper()
	in, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	return makegood.Task{Job: "j", Step: "call", Round: 1, Attempt: 4, Agent: makegood.HTTPAgent, Action: "call", Key: "j/call/1", Input: in}
}

func undoOf(t *testing.T, with fields, outcome makegood.Outcome) makegood.Task {
	task := taskOf(t, with)
	task.Key += "/undo"
	task.Undo = &makegood.UndoTask{ForwardKey: "j/call/1", Outcome: outcome}
	return task
}

// lease is an attempt that ends at a time.
type lease struct{ completeBy time.Time }

func (l lease) CompleteBy() time.Time                         { return l.completeBy }
func (lease) Heartbeat(context.Context) error                 { return nil }
func (lease) Progress(context.Context, json.RawMessage) error { return nil }

func call(t *testing.T, a *Agent, task makegood.Task) (string, error) {
	t.Helper()
	ctx := agentctx.NewContext(t.Context(), task, lease{time.Date(2026, 11, 20, 9, 30, 0, 250e6, time.FixedZone("CET", 3600))})
	output, err := a.Handle(ctx, task)
	return string(output), err
}

// kind says of a failure what the Scheduler reads in it: "final no", "retryable unknown".
func kind(err error) string {
	if err == nil {
		return "success"
	}
	failure := agent.Failure(err)
	if failure.Retryable {
		return "retryable " + string(failure.Applied)
	}
	return "final " + string(failure.Applied)
}

func wantKind(t *testing.T, err error, want string) {
	t.Helper()
	if got := kind(err); got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

// counter counts requests.
type counter struct{ atomic.Int64 }

func (c *counter) handler(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c.Add(1)
		w.WriteHeader(status)
	}
}
