package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// order is a workflow of two steps. The agent does what the input says; see actor.
const order = `
name: order
steps:
  - {name: reserve, agent: actor, retry: {attempts: 1}, undo: {action: release}}
  - {name: charge, agent: actor, retry: {attempts: 1}}
`

// stop is a workflow that stops when its step is given up.
const stop = `
name: stop
onFailure: stop
steps:
  - {name: reserve, agent: actor, retry: {attempts: 1}, undo: {action: release}}
`

// lines is a workflow with a map that tolerates one failed item.
const lines = `
name: lines
steps:
  - {name: reserve, map: {over: "${ .input.lines }", tolerate: {items: 1}}, agent: actor, retry: {attempts: 1}, undo: {action: release}}
`

// voyage is a workflow whose agent runs in another process.
const voyage = `
name: voyage
steps:
  - {name: sail, agent: pilot, timeout: 1m}
`

// sign is a workflow that waits for a person, and sends where an agent leaves its step waiting.
const sign = `
name: sign
steps:
  - {name: sign, agent: approval, with: {choices: ["yes", "no"], question: "Sign ${ .job.id }?", for: 2h}}
`

// send is a workflow whose agent leaves its step waiting.
const send = `
name: send
steps:
  - {name: send, agent: actor, retry: {attempts: 2, backoff: 1h}, undo: {action: back}}
`

// actor does what the input of the job says: {"STEP": "fail"} gives up, "deny" does so and has done nothing, "hold" waits until
// the test's end, anything else succeeds with the input as its output.
type actor struct {
	mu    sync.Mutex
	tasks []makegood.Task
	open  chan struct{}
}

func (*actor) Name() string { return "actor" }

func (a *actor) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	a.mu.Lock()
	a.tasks = append(a.tasks, task)
	a.mu.Unlock()
	var script map[string]any
	_ = json.Unmarshal(task.Input, &script) // an input that is no script holds no orders
	switch script[task.Action] {
	case "fail":
		return nil, agent.Final(errFailed)
	case "deny":
		return nil, agent.Final(agent.NotApplied(errFailed))
	case "wait":
		return nil, agent.Wait(time.Now().Add(time.Hour))
	case "hold":
		select {
		case <-a.open:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return task.Input, nil
}

func (a *actor) count(action string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, task := range a.tasks {
		if task.Action == action {
			n++
		}
	}
	return n
}

type failure string

func (f failure) Error() string { return string(f) }

const errFailed = failure("the actor fails")

// world is an API over a real engine, on a real listener.
type world struct {
	queues embedded.Queues
	t      testing.TB
	engine *embedded.Engine
	actor  *actor
	url    string
	log    *logs
	client *client.Client
}

// bare answers what is asked of the jobs of an engine, and of nothing else that it has.
func bare(e *embedded.Engine) *control.Service {
	parts := e.Parts()
	parts.Totals = nil
	return control.New(control.Config{Reading: parts.Reading, Scheduler: parts.Scheduler, Submit: parts.Submit})
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, actor: &actor{open: make(chan struct{})}, log: &logs{}}
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	engine, err := embedded.Open(t.Context(), embedded.Config{
		Agents: []agent.Handler{w.actor}, Outside: []embedded.Outside{{Name: "pilot"}, {Name: "guarded", Token: "s3cret"}}, Logger: logger,
		WrapQueues: func(q embedded.Queues) embedded.Queues { w.queues = q; return q },
	})
	check(t, err)
	w.engine = engine
	for _, yaml := range []string{order, stop, lines, voyage, sign, send} {
		compiled, err := workflowfile.Parse("test.yaml", []byte(yaml))
		check(t, err)
		check(t, engine.Define(t.Context(), compiled))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	t.Cleanup(func() {
		close(w.actor.open)
		cancel()
		check(t, <-ran)
		check(t, engine.Close())
	})
	parts := engine.Parts()
	parts.Publish, parts.Logger = engine.Define, logger
	w.url = listen(t, httpapi.Config{Jobs: control.New(parts), Host: "127.0.0.1", Logger: logger, Outside: engine.Door()})
	w.client, err = client.New(w.url)
	check(t, err)
	return w
}

// listen serves an API until the test's end, and returns its URL.
func listen(t testing.TB, c httpapi.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- httpapi.Serve(ctx, l, httpapi.New(c), c.Logger) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		check(t, <-served)
	})
	return "http://" + l.Addr().String()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// submit submits a job that must be new.
func (w *world) submit(workflow, id, input string) {
	w.t.Helper()
	job, err := w.client.Submit(w.t.Context(), makegood.Submission{Workflow: workflow, ID: id, Input: json.RawMessage(input)})
	if err != nil || job.Existed {
		w.t.Fatalf("submit %s: existed %v, %v", id, job.Existed, err)
	}
}

// token is the completion token of a step of a job.
func (w *world) token(id, step string, undo bool) string {
	w.t.Helper()
	j, err := w.engine.Job(w.t.Context(), id)
	check(w.t, err)
	return machine.CompletionToken(j, step, undo)
}

// tokens are pairs for a replacer: TOKEN(ID), and the token of the job's step sign. That of nobody is another's, of a job
// that is not there.
func (w *world) tokens(ids ...string) (pairs []string) {
	w.t.Helper()
	for _, id := range ids {
		pairs = append(pairs, "TOKEN("+id+")", w.token(id, "sign", false))
	}
	code := pairs[1][strings.LastIndexByte(pairs[1], '.')+1:]
	return append(pairs, "TOKEN(nobody)", job.WriteCompletionToken("nobody", job.Place{Step: "sign", Round: 1}, code))
}

// until waits until a job is as wanted.
func (w *world) until(id string, is func(makegood.Job) bool) makegood.Job {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	for job, err := range w.client.Watch(ctx, id) {
		if err != nil {
			w.t.Fatalf("job %s is not as wanted: %v", id, err)
		}
		if is(job) {
			return job
		}
	}
	w.t.Fatalf("job %s ended before it was as wanted", id)
	return makegood.Job{}
}

func in(state makegood.ProcessState) func(makegood.Job) bool {
	return func(j makegood.Job) bool { return j.ProcessState == state }
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request; a body is declared as JSON. Headers are "Name: value".
func ask(t testing.TB, method, url, body string, headers ...string) reply {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, content)
	check(t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ": ")
		if !ok {
			continue
		}
		r.Header.Set(name, value)
		if value == "" {
			r.Header.Del(name)
		}
		if name == "Host" {
			r.Host = value
		}
	}
	stays := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := stays.Do(r)
	check(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(t, err)
	return reply{answer.StatusCode, answer.Header, text}
}

// problem is what an answer that is no success says.
func (r reply) problem(t testing.TB) httpapi.Problem {
	t.Helper()
	var p httpapi.Problem
	if err := json.Unmarshal(r.body, &p); err != nil {
		t.Fatalf("the answer is no problem: %v: %s", err, r.body)
	}
	return p
}
