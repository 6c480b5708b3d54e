package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/limits"
)

const transfer = `
name: transfer
steps:
  - {name: send, agent: bank}
`

// bank leaves its steps waiting, and keeps their completion tokens.
type bank struct {
	mu     sync.Mutex
	tokens map[string]string
}

func (b *bank) handler() agent.Handler {
	return agent.New("bank", agent.Do("send", func(ctx context.Context, _ json.RawMessage) (string, error) {
		task := agent.TaskOf(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tokens[task.Job] = task.Completion
		return "", agent.Wait(time.Now().Add(time.Hour))
	}))
}

func (b *bank) token(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens[id]
}

// waitsAt waits until the first step of a job waits.
func waitsAt(t *testing.T, jobs api.Jobs, id string) {
	t.Helper()
	for job, err := range jobs.Watch(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if job.Steps[0].State == makegood.StepWaiting {
			return
		}
	}
	t.Fatalf("job %s ended before it waited", id)
}

// What somebody outside says of a step is the same in the process and over HTTP, and so is why it is refused.
func TestAStepIsCompletedInTheProcessAsOverHTTP(t *testing.T) {
	b := &bank{tokens: map[string]string{}}
	dir := t.TempDir()
	r := run(t, engine.Options{Dir: dir, Workflows: fstest.MapFS{"t.yaml": {Data: []byte(transfer)}}, Agents: []agent.Handler{b.handler()}})
	defer r.close(t)
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	over, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	type door struct {
		api.Jobs
		byToken func(string) api.Completion
	}
	at := api.StepRef{Step: "send"}
	var said [2][]string
	for i, d := range []door{{r, r.Completion}, {over, over.Completion}} {
		id, other := []string{"here", "there"}[i], []string{"here-2", "there-2"}[i]
		for _, id := range []string{id, other} {
			if _, err := d.Submit(t.Context(), makegood.Submission{Workflow: "transfer", ID: id, Input: json.RawMessage("1")}); err != nil {
				t.Fatal(err)
			}
			waitsAt(t, d, id)
		}
		say := func(_ any, err error) {
			refused, invalid := new(api.RefusedError), new(api.InvalidError)
			switch {
			case errors.As(err, &refused):
				said[i] = append(said[i], "refused: "+refused.Reason)
			case errors.As(err, &invalid):
				said[i] = append(said[i], "invalid: "+invalid.Message)
			case errors.Is(err, api.ErrNotFound), errors.Is(err, api.ErrCompletionToken):
				said[i] = append(said[i], errors.Unwrap(err).Error())
			default:
				t.Errorf("door %d: got %v, want one of the errors of api.Jobs", i, err)
			}
		}
		if j, err := d.Heartbeat(t.Context(), id, at, time.Now().Add(48*time.Hour)); err != nil || j.Steps[0].CompleteBy == nil || time.Until(*j.Steps[0].CompleteBy) < 47*time.Hour {
			t.Errorf("heartbeat: got %+v, %v, want it to wait two days", j.Steps, err)
		}
		say(d.Complete(t.Context(), id, api.StepRef{Step: "send", Round: 7}, nil))
		say(d.Complete(t.Context(), id, api.StepRef{Step: "send", Round: -7}, nil))
		say(d.Complete(t.Context(), id, api.StepRef{Step: "nosuch"}, nil))
		say(d.Complete(t.Context(), id, api.StepRef{Step: "No Such"}, nil))
		say(d.Complete(t.Context(), "nobody", at, nil))
		say(d.Fail(t.Context(), id, at, makegood.StepError{}))
		say(d.Fail(t.Context(), id, at, makegood.StepError{Message: strings.Repeat("x", limits.MaxReasonBytes+1)}))
		say(d.Complete(t.Context(), id, at, json.RawMessage(`"`+strings.Repeat("x", makegood.MaxPayloadBytes)+`"`)))
		j, err := d.Complete(t.Context(), id, at, json.RawMessage(`{"to": "bank"}`))
		if err != nil || j.ProcessState != makegood.JobProcessed {
			t.Errorf("complete: got %+v, %v, want it processed", j, err)
		}
		if j, err = d.Get(t.Context(), id); err != nil || string(j.Steps[0].Output) != `{"to":"bank"}` {
			t.Errorf("get: got %s, %v, want the output", j.Steps[0].Output, err)
		}
		holder := d.byToken(b.token(other))
		if s, err := holder.Heartbeat(t.Context(), time.Time{}); err != nil || s.State != makegood.StepWaiting {
			t.Errorf("heartbeat by token: got %+v, %v", s, err)
		}
		if s, err := holder.Fail(t.Context(), makegood.StepError{Message: "closed"}); err != nil || s.State != makegood.StepFailed {
			t.Errorf("fail by token: got %+v, %v, want it failed", s, err)
		}
		say(d.byToken("no token").Complete(t.Context(), nil))
		say(d.byToken(b.token(other)[:30]+b.token(other)[31:]).Complete(t.Context(), nil))
		forged := b.token(other)[:len(b.token(other))-2] + "AA"
		if forged == b.token(other) {
			forged = forged[:len(forged)-2] + "BA"
		}
		say(d.byToken(forged).Complete(t.Context(), nil))
	}
	if got, want := strings.Join(said[1], "\n"), strings.Join(said[0], "\n"); got != want {
		t.Errorf("over HTTP:\n%s\nin the process:\n%s", got, want)
	}
}

const contract = `
name: contract
steps:
  - name: sign
    agent: approval
    with: {choices: [approve, reject], question: "Sign ${ .input.title }?", for: 2h}
    waiting: {ask: boss}
`

// Whoever is asked gets a link, whose page answers, and leads nowhere else. Opened it changes nothing, pressed twice it is
// one answer, and another one, or one that is too late, is told what stands.
func TestAnApprovalByLink(t *testing.T) {
	asked := make(chan engine.Question, 10)
	server := httptest.NewUnstartedServer(nil)
	defer server.Close()
	r := run(t, engine.Options{
		Workflows: fstest.MapFS{"c.yaml": {Data: []byte(contract)}},
		Notify: engine.Notify{
			Questions: map[string]func(context.Context, engine.Question) error{"boss": func(_ context.Context, q engine.Question) error { asked <- q; return nil }},
			AnswerURL: "http://" + server.Listener.Addr().String() + "/answers/",
		},
	})
	defer r.close(t)
	server.Config.Handler = http.StripPrefix("/answers", r.CompletionHandler())
	server.Start()
	link := func(id string) string {
		t.Helper()
		if _, err := r.Submit(t.Context(), makegood.Submission{Workflow: "contract", ID: id, Input: json.RawMessage(`{"title":"<b>it</b>"}`)}); err != nil {
			t.Fatal(err)
		}
		for q := range asked {
			if q.Job == id {
				return q.Link
			}
		}
		return ""
	}
	visit := func(link string, form url.Values) (int, string) {
		t.Helper()
		answer, err := http.Get(link)
		if form != nil {
			answer.Body.Close()
			answer, err = http.PostForm(link, form)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	first, late := link("first"), link("late")
	want := func(link string, form url.Values, status int, text string) {
		t.Helper()
		if got, page := visit(link, form); got != status || !strings.Contains(page, text) {
			t.Errorf("%v: got %d %s, want %d and %q", form, got, page, status, text)
		}
	}
	want(first, nil, http.StatusOK, "Sign &lt;b&gt;it&lt;/b&gt;?")
	approve, reject := url.Values{"answer": {"approve"}, "name": {"anna"}, "request": {"r"}}, url.Values{"answer": {"reject"}, "name": {"anna"}, "request": {"r"}}
	want(first, approve, http.StatusOK, "Your answer is stored")
	want(first, approve, http.StatusOK, "Your answer is stored")
	want(first, reject, http.StatusConflict, "answered with <strong>approve</strong>")
	if j, err := r.Wait(t.Context(), "first"); err != nil || j.ProcessState != makegood.JobProcessed || !strings.HasPrefix(string(j.Steps[0].Output), `{"answer":"approve","by":"anna (completion token)","at":"`) {
		t.Errorf("got %+v, %v, want it approved", j, err)
	}
	if _, err := r.Request(t.Context(), "late", api.Request{Verb: makegood.VerbCancel}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	want(late, approve, http.StatusConflict, "the job is Cancelled")
	for _, elsewhere := range []string{"/api/jobs/first", "/api/jobs"} {
		if status, page := visit(server.URL+"/answers"+elsewhere, nil); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want nothing but answers", elsewhere, status, page)
		}
	}
}

func TestALinkBeginsWithAURL(t *testing.T) {
	for _, text := range []string{"shop.example", "ftp://shop.example", "https://", "https://shop.example?x=1", "https://a:b@shop.example", "://"} {
		_, err := engine.Open(t.Context(), engine.Options{Notify: engine.Notify{AnswerURL: text}})
		if err == nil || !strings.Contains(err.Error(), "Options.Notify.AnswerURL: ") {
			t.Errorf("%s: got %v, want it refused", text, err)
		}
	}
}
