package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// ferry is a workflow whose agent runs in another process.
const ferry = `
name: ferry
steps:
  - {name: load, agent: harbour, timeout: 1m, retry: {attempts: 2, backoff: 10ms}, undo: {action: unload}}
  - {name: count, agent: clerk, exclusive: false, timeout: 1m}
`

const clerkToken = "s3cret"

// outside is an engine whose agents are played by the test.
type outside struct {
	t      *testing.T
	url    string
	client *client.Client
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	engine, err := embedded.Open(t.Context(), embedded.Config{Outside: []embedded.Outside{{Name: "harbour"}, {Name: "clerk", Token: clerkToken}}, Logger: logger})
	check(t, err)
	compiled, err := workflowfile.Parse("ferry.yaml", []byte(ferry))
	check(t, err)
	check(t, engine.Define(t.Context(), compiled))
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(t.Context()) }()
	t.Cleanup(func() { check(t, engine.Close()); check(t, <-ran) })
	w := &outside{t: t, url: listen(t, httpapi.Config{Jobs: control.New(engine.Parts()), Logger: logger, Outside: engine.Door()})}
	w.client, err = client.New(w.url)
	check(t, err)
	return w
}

// post sends a body, and returns the status of the answer, and the answer in into.
func (w *outside) post(path, token, body string, into any) (int, string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	check(w.t, err)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	check(w.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(w.t, err)
	if into != nil && response.StatusCode == http.StatusOK {
		check(w.t, json.Unmarshal(text, into))
	}
	return response.StatusCode, string(text)
}

type given struct {
	HeldMs int
	Tasks  []struct {
		Task struct {
			Job, Step, Action, Token, Key, Completion string
			Attempt                                   int
		}
		LockedBy              string
		StartedAt, CompleteBy time.Time
		LeftMs                int
	}
}

func (w *outside) take(agent, token, body string) given {
	w.t.Helper()
	var g given
	if status, text := w.post("/api/agents/"+agent+"/tasks", token, body, &g); status != http.StatusOK {
		w.t.Fatalf("take %s: got %d %s", body, status, text)
	}
	return g
}

func (w *outside) submit(id string) {
	w.t.Helper()
	_, err := w.client.Submit(w.t.Context(), makegood.Submission{Workflow: "ferry", ID: id, Input: json.RawMessage(`{}`)})
	check(w.t, err)
}

// reply replies to the task that was given, and returns what became of it.
func (w *outside) reply(agent, token string, g given, rest string) string {
	w.t.Helper()
	t := g.Tasks[0]
	body := fmt.Sprintf(`{"v":1,"job":%q,"step":%q,"attempt":%d,"token":%q,"lockedBy":%q,%s}`, t.Task.Job, t.Task.Step, t.Task.Attempt, t.Task.Token, t.LockedBy, rest)
	var taken struct{ Status, Reason string }
	if status, text := w.post("/api/agents/"+agent+"/replies", token, body, &taken); status != http.StatusOK {
		w.t.Fatalf("reply %s: got %d %s", body, status, text)
	}
	return taken.Status
}

func (w *outside) extend(g given, spoil func(body string) string) string {
	w.t.Helper()
	t := g.Tasks[0]
	body := fmt.Sprintf(`{"job":%q,"step":%q,"attempt":%d,"token":%q,"lockedBy":%q}`, t.Task.Job, t.Task.Step, t.Task.Attempt, t.Task.Token, t.LockedBy)
	if spoil != nil {
		body = spoil(body)
	}
	var taken struct {
		Status string
		LeftMs int
	}
	if status, text := w.post("/api/agents/harbour/heartbeats", "", body, &taken); status != http.StatusOK {
		w.t.Fatalf("heartbeat: got %d %s", status, text)
	}
	if held := taken.Status != "over"; held != (taken.LeftMs > 0) || taken.LeftMs > 60_000 {
		w.t.Errorf("a heartbeat answered with %s: %d ms are left, of a timeout of a minute", taken.Status, taken.LeftMs)
	}
	return taken.Status
}

// A job whose agents run in other processes is done by them: what one was given nobody else is, and its reply moves the
// job before it is answered.
func TestAgentsInOtherProcessesDoTheSteps(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","max":10,"wait":20}`)
	if len(g.Tasks) != 1 || g.Tasks[0].Task.Action != "load" || g.Tasks[0].Task.Key != "f-1/load/1" || !strings.HasPrefix(g.Tasks[0].LockedBy, "outside:h-1:") {
		t.Fatalf("got %+v, want the task of load, claimed", g)
	}
	if left := g.Tasks[0].LeftMs; left < 30_000 || left > 60_000 {
		t.Errorf("got %d ms left of a timeout of a minute", left)
	}
	if other := w.take("harbour", "", `{"instance":"h-2","wait":0}`); len(other.Tasks) != 0 {
		t.Errorf("another instance got %+v, too", other)
	}
	if status := w.extend(g, nil); status != "held" {
		t.Errorf("a heartbeat: got %s", status)
	}
	for status, spoil := range map[string]func(string) string{
		"over":  func(body string) string { return strings.Replace(body, g.Tasks[0].Task.Token, "1.AAAA", 1) },
		"over ": func(body string) string { return strings.Replace(body, "outside:h-1", "outside:h-2", 1) },
	} {
		if got := w.extend(g, spoil); got != strings.TrimSpace(status) {
			t.Errorf("the heartbeat of somebody else: got %s, want %s", got, status)
		}
	}
	for _, want := range []string{"applied", "duplicate"} {
		if got := w.reply("harbour", "", g, `"type":"StepSucceeded","output":{"crates":3}`); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if status := w.extend(g, nil); status != "over" {
		t.Errorf("a heartbeat after the reply: got %s", status)
	}
	counted := w.take("clerk", clerkToken, `{"instance":"c-1","wait":20}`)
	if len(counted.Tasks) != 1 || counted.Tasks[0].LockedBy != "" {
		t.Fatalf("got %+v, want the shared task, which nobody claims", counted)
	}
	if got := w.reply("clerk", clerkToken, counted, `"type":"StepSucceeded"`); got != "applied" {
		t.Errorf("got %s", got)
	}
	job, err := w.client.Wait(t.Context(), "f-1")
	check(t, err)
	if job.ProcessState != makegood.JobProcessed || string(job.Steps[0].Output) != `{"crates":3}` {
		t.Errorf("got %s, %s", job.ProcessState, job.Steps[0].Output)
	}
}

// Who holds an attempt of a job that was cancelled is told so by a heartbeat, and its undo comes after its reply.
func TestAHeartbeatTellsThatNobodyWantsTheResult(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	_, err := w.client.Request(t.Context(), "f-1", api.Request{Verb: makegood.VerbCancel})
	check(t, err)
	if status := w.extend(g, nil); status != "withdrawn" {
		t.Errorf("got %s, want withdrawn", status)
	}
	if got := w.reply("harbour", "", g, `"type":"StepFailed","error":{"message":"cut off","retryable":true,"applied":"unknown"}`); got != "applied" {
		t.Errorf("got %s", got)
	}
	undo := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	if len(undo.Tasks) != 1 || undo.Tasks[0].Task.Action != "unload" {
		t.Fatalf("got %+v, want the undo", undo)
	}
	if got := w.reply("harbour", "", undo, `"type":"StepSucceeded"`); got != "applied" {
		t.Errorf("got %s", got)
	}
	job, err := w.client.Wait(t.Context(), "f-1")
	check(t, err)
	if job.ProcessState != makegood.JobCancelled {
		t.Errorf("got %s", job.ProcessState)
	}
}

// An agent outside leaves its step to somebody else, and who has the completion token of its task completes it.
func TestAnAgentOutsideLeavesItsStepToWait(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	g := w.take("harbour", "", `{"instance":"h-1","wait":20}`)
	if got := w.reply("harbour", "", g, fmt.Sprintf(`"type":"StepWaiting","deadline":%q`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))); got != "applied" {
		t.Errorf("got %s", got)
	}
	job, err := w.client.Get(t.Context(), "f-1")
	check(t, err)
	if job.Steps[0].State != makegood.StepWaiting || g.Tasks[0].Task.Completion == "" {
		t.Errorf("got the step %s, and the completion token %q", job.Steps[0].State, g.Tasks[0].Task.Completion)
	}
}

// An answer that was lost is asked for again: the same request gets the same tasks, another does not.
func TestTheSameRequestIsGivenTheSameTasks(t *testing.T) {
	w := newOutside(t)
	w.submit("f-1")
	first := w.take("harbour", "", `{"instance":"h-1","wait":20,"request":"r-1"}`)
	again := w.take("harbour", "", `{"instance":"h-1","wait":20,"request":"r-1"}`)
	if len(first.Tasks) != 1 || len(again.Tasks) != 1 || again.Tasks[0].LockedBy != first.Tasks[0].LockedBy {
		t.Fatalf("got %+v, and then %+v", first, again)
	}
	for _, body := range []string{`{"instance":"h-1","request":"r-2"}`, `{"instance":"h-2","request":"r-1"}`, `{"instance":"h-1"}`} {
		if other := w.take("harbour", "", body); len(other.Tasks) != 0 {
			t.Errorf("%s got %+v", body, other)
		}
	}
}

// An agent that was cut off while it waited leaves nothing behind: the next task is another's at once.
func TestWhoIsGoneIsGivenNothing(t *testing.T) {
	w := newOutside(t)
	connection := &http.Transport{}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/api/agents/harbour/tasks", strings.NewReader(`{"instance":"h-1","wait":1}`))
		request.Header.Set("Content-Type", "application/json")
		if response, err := connection.RoundTrip(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	<-gone
	w.submit("f-1")
	if g := w.take("harbour", "", `{"instance":"h-2","wait":20}`); len(g.Tasks) != 1 {
		t.Errorf("got %+v", g)
	}
}

func TestWhatAnAgentMayNotSayIsRefused(t *testing.T) {
	w := newOutside(t)
	tasks, replies, extends := "/api/agents/harbour/tasks", "/api/agents/harbour/replies", "/api/agents/harbour/heartbeats"
	for _, c := range []struct {
		path, token, body string
		status            int
		says              string
	}{
		{tasks, "", `{}`, 400, "instance"},
		{tasks, "", `{"instance":"a b"}`, 400, "instance"},
		{tasks, "", `{"instance":"a","max":11}`, 400, "1 to 10"},
		{tasks, "", `{"instance":"a","max":-1}`, 400, "1 to 10"},
		{tasks, "", `{"instance":"a","wait":21}`, 400, "0 to 20 seconds"},
		{tasks, "", `{"instance":"a","wait":-1}`, 400, "0 to 20 seconds"},
		{tasks, "", `{"instance":"a","wait":0.5}`, 400, "wait: want a whole number"},
		{"/api/holds/agent/clerk/limit", "", `{"concurrency":"3"}`, 400, "concurrency: want a whole number"},
		{tasks, "", `{"instance":"a","request":"a b"}`, 400, "request"},
		{tasks, "", `{"instance":"a","agent":"b"}`, 400, "there is no field"},
		{tasks, "", `[`, 400, "JSON"},
		{tasks, "", strings.Repeat(" ", 20<<10), 413, "bytes"},
		{"/api/agents/nobody/tasks", "", `{"instance":"a"}`, 404, "runs outside"},
		{"/api/agents/clerk/tasks", "", `{"instance":"a"}`, 401, "has a token"},
		{"/api/agents/clerk/tasks", "wrong", `{"instance":"a"}`, 401, "has a token"},
		{"/api/agents/clerk/replies", "", `{}`, 401, "has a token"},
		{"/api/agents/clerk/heartbeats", "wrong", `{}`, 401, "has a token"},
		{replies, "", `{}`, 400, "version"},
		{replies, "", `{"v":1,"type":"DeadlinePassed","job":"j"}`, 400, "want the reply of an agent"},
		{replies, "", `{"v":1,"type":"Submitted","job":"j"}`, 400, "want the reply of an agent"},
		{replies, "", `{"v":1,"type":"StepSucceeded","job":"j"}`, 400, "step"},
		{replies, "", `{"v":1,"type":"StepFailed","job":"j","step":"s","attempt":1}`, 400, "error"},
		{replies, "", `{"v":2,"type":"StepFailed","job":"j"}`, 400, "version 2"},
		{replies, "", `{"v":1,"type":"StepSucceeded","job":"j","step":"s","attempt":1,"x":"` + strings.Repeat("x", limits.MaxMessageBytes) + `"}`, 413, "bytes"},
		{replies, "", `{"v":1,"type":"StepSucceeded","job":"j","step":"s","attempt":1}`, 200, "there is no job j"},
		{extends, "", `{"job":"j"}`, 400, "must name"},
		{extends, "", `{"job":"j j","step":"s","attempt":1,"token":"t","lockedBy":"l"}`, 400, "job"},
		{extends, "", `{"job":"j","step":"s","attempt":1,"token":"t","lockedBy":"l"}`, 200, "over"},
	} {
		status, text := w.post(c.path, c.token, c.body, nil)
		if status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %.80s: got %d %.200s, want %d and %q", c.path, c.body, status, text, c.status, c.says)
		}
	}
}

// brokenDoor is a door whose store fails.
type brokenDoor struct{ err error }

func (brokenDoor) Allow(string, string) error { return nil }

func (b brokenDoor) Take(context.Context, string, agentdoor.Ask) ([]agentdoor.Task, error) {
	return nil, b.err
}

func (b brokenDoor) Reply(context.Context, string) (machine.Verdict, error) {
	return machine.Verdict{}, b.err
}

func (b brokenDoor) Heartbeat(context.Context, string, job.Reply, json.RawMessage) (agentdoor.Standing, error) {
	return agentdoor.Standing{}, b.err
}
