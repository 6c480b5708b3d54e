//go:build kits || aws

package kits_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// patience is how long a test waits for what must come; it decides nothing.
const patience = 3 * time.Minute

// slept is how long an agent has slept, in milliseconds, that shows that another has said nothing.
const slept = 3000

// message is a message in JSON, as an agent would see it or say it.
type message = map[string]any

// given is a task that the scripted engine gives out, and what goes wrong with it.
type given struct {
	task message
	// leftMs is how long its claim holds.
	leftMs int
	// answer is how long the answer is on its way, and cut breaks it off half way, once.
	answer time.Duration
	cut    bool
}

// fault is what an answer is instead of what it should be: a status, or with cut a connection that breaks, before the
// request was heeded or, with heeded, after.
type fault struct {
	status      int
	cut, heeded bool
	// final: the answer says that another attempt would be told the same. after is how much of a payload goes before.
	final bool
	after int64
	// html: it is a page of somebody on the way. part and encoding are what the headers of a download say instead.
	html           bool
	part, encoding string
}

// ask is a request for tasks.
type ask struct {
	Instance, Request string
	Max, Wait         int
	authorization     string
}

// engine is an engine whose every answer is scripted. It holds no rule about jobs.
type engine struct {
	t      *testing.T
	server *httptest.Server

	mu sync.Mutex
	// changed is closed, and made anew, whenever something has happened.
	changed chan struct{}
	waiting []given
	// gave is what was given to a request, to be given to it again.
	gave map[string][]given
	asks []ask
	// polling is how many requests wait for tasks.
	polling int
	// said are the replies that were heeded, and heartbeats what was asked, by job.
	said       map[string][]message
	tried      map[string]int
	heartbeats map[string][]message
	// asked, replies and answers are what goes wrong next: with requests for tasks, with replies and heartbeats of a job.
	asked   []fault
	replies map[string][]fault
	answers map[string][]string
	payloads
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{
		t: t, changed: make(chan struct{}), gave: map[string][]given{}, said: map[string][]message{}, tried: map[string]int{},
		heartbeats: map[string][]message{}, replies: map[string][]fault{}, answers: map[string][]string{}, payloads: newPayloads(),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/agents/{agent}/tasks", e.tasks)
	mux.HandleFunc("POST /api/agents/{agent}/replies", e.reply)
	mux.HandleFunc("POST /api/agents/{agent}/heartbeats", e.heartbeat)
	mux.HandleFunc("PUT /api/agents/{agent}/payloads", e.writePayload)
	mux.HandleFunc("GET /api/agents/{agent}/payloads/{sha256}", e.readPayload)
	e.server = httptest.NewServer(mux)
	t.Cleanup(func() { e.server.CloseClientConnections(); e.server.Close() })
	return e
}

// happen changes what is known, and tells who waits.
func (e *engine) happen(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
	close(e.changed)
	e.changed = make(chan struct{})
}

// until waits until something is so. is is called with e.mu held.
func (e *engine) until(what string, is func() bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	if !e.wait(ctx, is) {
		e.t.Fatalf("%s: not after %s", what, patience)
	}
}

func (e *engine) wait(ctx context.Context, is func() bool) bool {
	for {
		e.mu.Lock()
		now, changed := is(), e.changed
		e.mu.Unlock()
		if now {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// give lets tasks be taken.
func (e *engine) give(tasks ...given) { e.happen(func() { e.waiting = append(e.waiting, tasks...) }) }

// answer is the reply that came for a job.
func (e *engine) answer(job string) message {
	e.t.Helper()
	var reply message
	e.until("a reply of "+job, func() bool {
		if len(e.said[job]) == 0 {
			return false
		}
		reply = e.said[job][0]
		return true
	})
	return reply
}

func (e *engine) count(job string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.said[job])
}

func (e *engine) tasks(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the agent was killed between the head of its request and the body
	}
	var a ask
	if json.Unmarshal(text, &a) != nil || a.Instance == "" || a.Max < 1 || a.Max > 10 || a.Wait < 0 || a.Wait > 20 || a.Request == "" {
		e.t.Errorf("a request for tasks: %+v", a)
	}
	a.authorization = r.Header.Get("Authorization")
	var f fault
	e.happen(func() {
		e.asks = append(e.asks, a)
		e.polling++
		if len(e.asked) > 0 {
			f, e.asked = e.asked[0], e.asked[1:]
		}
	})
	defer e.happen(func() { e.polling-- })
	if f.fails(w) {
		return
	}
	began := time.Now()
	// An answer that is on its way is no part of the time that the request was held.
	taken := e.take(r.Context(), a)
	held := time.Since(began)
	for i, g := range taken {
		time.Sleep(g.answer)
		if g.cut {
			e.happen(func() { e.gave[a.Request][i].cut = false })
			fault{cut: true}.fails(w)
			return
		}
	}
	tasks := []message{}
	for _, g := range taken {
		one := message{"task": g.task, "startedAt": "2026-11-20T10:00:01Z", "completeBy": "2026-11-20T10:00:31Z", "leftMs": g.leftMs, "later": "a field of a newer release"}
		if g.task["exclusive"] == true {
			one["lockedBy"] = lockedBy(g.task["job"])
		}
		tasks = append(tasks, one)
	}
	write(w, message{"heldMs": held.Milliseconds(), "tasks": tasks, "later": 1})
}

func lockedBy(job any) string { return fmt.Sprintf("outside:probe:%s", job) }

// take waits for tasks as an engine does; the same request gets the same tasks.
func (e *engine) take(ctx context.Context, a ask) (taken []given) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Wait)*time.Second+time.Millisecond)
	defer cancel()
	e.wait(ctx, func() bool {
		if again := e.gave[a.Request]; len(again) > 0 {
			taken = slices.Clone(again)
			return true
		}
		n := min(a.Max, len(e.waiting))
		if n == 0 || ctx.Err() != nil {
			return false
		}
		taken = slices.Clone(e.waiting[:n])
		e.gave[a.Request] = slices.Clone(taken)
		e.waiting = e.waiting[n:]
		return true
	})
	return taken
}

func (e *engine) reply(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the test is over and its agent killed, or the network broke: no reply has come
	}
	var m message
	var sent struct{ Output json.RawMessage }
	if err := errors.Join(json.Unmarshal(text, &m), json.Unmarshal(text, &sent)); err != nil {
		e.t.Errorf("a reply: %v", err)
		return
	}
	job, _ := m["job"].(string)
	if len(sent.Output) > makegood.MaxPayloadBytes {
		e.t.Errorf("%s: an output of %d bytes as it was sent: an engine refuses it for good", job, len(sent.Output))
	}
	var f fault
	e.happen(func() {
		e.tried[job]++
		if len(e.replies[job]) > 0 {
			f, e.replies[job] = e.replies[job][0], e.replies[job][1:]
		}
		if f == (fault{}) || f.heeded {
			e.said[job] = append(e.said[job], m)
		}
	})
	if !f.fails(w) {
		write(w, message{"status": "applied", "later": true})
	}
}

func (e *engine) heartbeat(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // as with a reply
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		e.t.Errorf("a heartbeat: %v", err)
		return
	}
	job, _ := m["job"].(string)
	answer := "held"
	e.happen(func() {
		e.heartbeats[job] = append(e.heartbeats[job], m)
		if len(e.answers[job]) > 0 {
			answer, e.answers[job] = e.answers[job][0], e.answers[job][1:]
		}
	})
	switch answer {
	case "error":
		fault{status: http.StatusServiceUnavailable}.fails(w)
	case "cut":
		fault{cut: true}.fails(w)
	case "over":
		write(w, message{"status": "over"})
	default:
		write(w, message{"status": answer, "completeBy": "2026-11-20T10:00:31Z", "leftMs": 5000})
	}
}

// fails writes what the fault says instead of an answer, and reports whether there was one.
func (f fault) fails(w http.ResponseWriter) bool {
	switch {
	case f.cut:
		panic(http.ErrAbortHandler)
	case f.html:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, "<html>as scripted</html>")
		return true
	case f.status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.status)
		_ = json.NewEncoder(w).Encode(message{"error": "as scripted", "final": f.final})
		return true
	}
	return false
}

func write(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// task is a task of an action; rest changes it.
func task(job, action string, input any, rest ...message) given {
	m := message{
		"v": 1, "type": "Task", "job": job, "workflow": "suite", "step": "s", "round": 1, "attempt": 2, "agent": "probe", "action": action,
		"input": input, "key": job + "/s/1", "sentAt": "2026-11-20T10:00:00Z", "startBy": "2026-11-20T10:10:00Z", "timeoutMs": 60_000,
		"exclusive": true, "replyTo": "events", "birth": "6b1f0c9a41d2e37f", "claimUntil": "2026-12-04T10:00:00.123Z",
		"token": "1." + strings.ToUpper(job), "completion": "c." + job, "later": message{"of": "a newer release"},
	}
	for _, r := range rest {
		for name, value := range r {
			m[name] = value
		}
	}
	g := given{task: m}
	g.leftMs, _ = m["timeoutMs"].(int)
	return g
}

func wants(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// failed checks a reply that tells a failure. says is what its message holds.
func failed(t *testing.T, reply message, retryable bool, applied string, retryAfter float64, says ...string) {
	t.Helper()
	failure, _ := reply["error"].(message)
	text, _ := failure["message"].(string)
	after, _ := failure["retryAfterMs"].(float64)
	if reply["type"] != "StepFailed" || failure["retryable"] != retryable || failure["applied"] != applied || after != retryAfter {
		t.Errorf("got %v, want a failure, retryable %v, applied %s, retryAfterMs %v", reply, retryable, applied, retryAfter)
	}
	for _, part := range says {
		if !strings.Contains(text, part) {
			t.Errorf("got the message %.200q, want it to speak of %q", text, part)
		}
	}
}

// slowedDown fails unless a reply asks for 2.5 s without calls.
func slowedDown(t *testing.T, reply message) {
	t.Helper()
	failed(t, reply, true, "unknown", 2500, "429")
	failure, _ := reply["error"].(message)
	wants(t, failure["slowDown"], true)
	wants(t, failure["kind"], "busy")
}

// answerFor is the i-th answer of the reply to a batch; one that tells a failure has the type of a reply that does.
func answerFor(t *testing.T, e *engine, job string, i int) message {
	t.Helper()
	reply := e.answer(job)
	answers, _ := reply["output"].([]any)
	if reply["type"] != "StepSucceeded" || i >= len(answers) {
		t.Fatalf("got %v, want a success with an answer %d", reply, i)
	}
	answer, _ := answers[i].(message)
	if answer["error"] != nil {
		answer["type"] = "StepFailed"
	}
	return answer
}
