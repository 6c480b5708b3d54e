package onhttp_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/onhttp"
)

// press is a workflow of one agent outside: what it writes in one step it reads in the next.
const press = `
name: press
steps:
  - {name: write, agent: press, timeout: 10m, retry: {attempts: 3, backoff: 10ms, max: 10ms}}
  - {name: read, agent: press, timeout: 10m, retry: {attempts: 3, backoff: 10ms, max: 10ms}, with: {report: "${ .steps.write.output }", job: "${ .job.id }"}}
`

// printing is an engine with the agent outside, and what is between them.
type printing struct {
	t   *testing.T
	dir string
	at  string

	mu     sync.Mutex
	eng    *engine.Engine
	stop   func()
	faults []func(http.Handler, http.ResponseWriter, *http.Request)
	asked  []string
}

// taken is what the step read gets.
type taken struct {
	Report json.RawMessage `json:"report"`
	Job    string          `json:"job"`
}

type (
	writes func(ctx context.Context) (any, error)
	reads  func(ctx context.Context, p makegood.Payload) (any, error)
)

// print runs the workflow with these two actions, and returns how the job ended.
func (p *printing) print(write writes, read reads) makegood.Job {
	p.t.Helper()
	if _, err := p.engine().Submit(p.t.Context(), makegood.Submission{Workflow: "press", ID: "p-1", Input: json.RawMessage(`{}`)}); err != nil {
		p.t.Fatal(err)
	}
	p.run(agent.New("press",
		agent.Do("write", func(ctx context.Context, _ any) (any, error) { return write(ctx) }),
		agent.Do("read", func(ctx context.Context, in taken) (any, error) {
			if read == nil {
				return nil, nil
			}
			var ref makegood.Payload
			if err := json.Unmarshal(in.Report, &ref); err != nil {
				return nil, agent.Final(err)
			}
			return read(ctx, ref)
		}),
	))
	for {
		// An engine that is started anew is asked anew.
		job, err := p.engine().Wait(p.t.Context(), "p-1")
		if err == nil || p.t.Context().Err() != nil {
			return job
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// run runs an agent until the test's end.
func (p *printing) run(a *agent.Agent) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- onhttp.RunPausing(ctx, a, onhttp.Options{URL: "http://" + p.at, Token: "s3cret", Logger: slog.New(slog.DiscardHandler)}, 5*time.Millisecond)
	}()
	p.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
}

func newPrinting(t *testing.T) *printing {
	t.Helper()
	p := &printing{t: t, dir: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.at = l.Addr().String()
	p.start(l)
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *printing) engine() *engine.Engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.eng
}

// start opens the engine, and serves its agents.
func (p *printing) start(l net.Listener) {
	p.t.Helper()
	eng, err := engine.Open(context.Background(), engine.Options{
		Dir: p.dir, Workflows: fstest.MapFS{"press.yaml": {Data: []byte(press)}}, Outside: []engine.Outside{{Name: "press", Token: "s3cret"}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	server := httptest.NewUnstartedServer(p.between(eng.AgentHandler()))
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eng = eng
	p.stop = func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := errors.Join(<-ran, eng.Close()); err != nil {
			p.t.Error(err)
		}
	}
}

// restart ends the engine under whatever goes on, and starts another over the same folder.
func (p *printing) restart() {
	p.t.Helper()
	p.stop()
	l, err := net.Listen("tcp", p.at)
	// A connection of another process may have the port meanwhile.
	for until := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(until); l, err = net.Listen("tcp", p.at) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	p.start(l)
}

// between stands between an agent and its engine: what is in faults is done to the next requests about payloads.
func (p *printing) between(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/payloads") {
			next.ServeHTTP(w, r)
			return
		}
		p.mu.Lock()
		asked := r.Method
		if part := r.Header.Get("Range"); part != "" {
			asked += " " + part
		}
		p.asked = append(p.asked, asked)
		serve := func(next http.Handler, w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) }
		if len(p.faults) > 0 {
			serve, p.faults = p.faults[0], p.faults[1:]
		}
		p.mu.Unlock()
		serve(next, w, r)
	})
}

// breaks is a line that breaks after a megabyte, in either direction.
func breaks(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		panic(http.ErrAbortHandler)
	}
	next.ServeHTTP(&short{ResponseWriter: w, left: 1 << 20}, r)
}

// short breaks off when it has written so much.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b[:min(len(b), s.left)])
	if s.left -= n; s.left == 0 {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func unavailable(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// noise is what no compression makes small.
func noise(n int) []byte {
	text := make([]byte, n)
	_, _ = rand.Read(text)
	return text
}

// only can be read once.
type only struct{ io.Reader }

// same is an action that checks that a payload is what was written.
func same(text []byte) reads {
	return func(ctx context.Context, p makegood.Payload) (any, error) {
		r, err := agent.OpenPayload(ctx, p)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		got, err := io.ReadAll(r)
		if err == nil && !bytes.Equal(got, text) {
			err = agent.Final(errors.New("it is another"))
		}
		return len(got), err
	}
}

func write(from func() io.Reader) writes {
	return func(ctx context.Context) (any, error) { return agent.WritePayload(ctx, "text/plain", from()) }
}

func (p *printing) done(job makegood.Job) {
	p.t.Helper()
	for _, s := range job.Steps {
		if s.State != makegood.StepDone {
			p.t.Errorf("step %s is %s: %+v", s.Name, s.State, s.Error)
		}
	}
	p.left()
}

// left checks that nothing is left of what broke off, soon after the engine has seen that.
func (p *printing) left() {
	p.t.Helper()
	var left []string
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		var err error
		if left, err = filepath.Glob(filepath.Join(p.dir, "payloads", "incoming", "*")); err != nil {
			p.t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
	}
	p.t.Errorf("left behind: %v", left)
}
