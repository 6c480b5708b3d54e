//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
)

// signing is a step that is completed by a message, and an approval. Its steps' names are too long to be kept in the job.
const signing = `
name: signing
steps:
  - {name: prepare_whatever_is_to_be_signed_by_whoever_is_asked, agent: inventory, when: "${ false }"}
  - {name: reserve, agent: inventory}
  - name: sign
    agent: approval
    with: {choices: [approve, reject], question: "Sign ${ .job.id }?", for: 2h}
    waiting: {ask: listener}
`

// receive waits for a message that a queue gives, and takes it off.
func (w *world) receive(t *testing.T, name string, is func(body string) bool) string {
	t.Helper()
	for {
		records, err := w.queues.Receive(t.Context(), name, 1)
		if err != nil {
			t.Fatalf("receive from %s: %v", name, err)
		}
		for _, r := range records {
			if err := w.queues.Delete(t.Context(), name, r.ReceiptHandle); err != nil {
				t.Fatal(err)
			}
			if is(r.Body) {
				return r.Body
			}
		}
	}
}

// A step is completed by a message that carries its completion token, and nothing else that an agent has. Then somebody is
// asked, and answers by the link that they got: at the public door, a process of the function that is deployed.
func TestAnApprovalByLinkAndACompletionByMessage(t *testing.T) {
	w := newWorld(t)
	bootstrap := build(t, functions+"door")
	door := start(t, bootstrap, append(w.environment[:len(w.environment):len(w.environment)], "MAKEGOOD_DOOR=complete", "MAKEGOOD_REPLIES=listener="+repliesQueue)...)
	open := door.function.URL(standin.Region, nil)
	open.Public = true
	server := httptest.NewServer(open)
	defer server.Close()
	moves := start(t, build(t, functions+"scheduler"), append(w.environment[:len(w.environment):len(w.environment)],
		"MAKEGOOD_REPLIES=listener="+repliesQueue, "MAKEGOOD_LINKS="+server.URL+"/")...)
	defer w.feeds(t, map[string]*lambda{deployed.EventsQueue: moves})()

	compiled := w.define(t, []byte(signing))
	if _, _, err := w.scheduler.Submit(t.Context(), scheduler.Submission{ID: "s-1", Definition: compiled.Hash, Input: json.RawMessage(`1`)}); err != nil {
		t.Fatal(err)
	}
	var task struct{ Completion string }
	body := w.receive(t, deployed.TasksQueue("inventory"), func(string) bool { return true })
	if err := json.Unmarshal([]byte(body), &task); err != nil || task.Completion == "" {
		t.Fatalf("got the task %s, %v, want one with its completion token", body, err)
	}
	message, err := wire.EncodeEvent("s-1", job.StepCompleted{Place: job.Place{Token: task.Completion}, Output: wire.Inline(json.RawMessage(`{"reserved":7}`))})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.queues.Send(t.Context(), deployed.EventsQueue, queue.Message{Body: message})...); err != nil {
		t.Fatal(err)
	}

	var question struct{ Link, Question string }
	asked := w.receive(t, repliesQueue, func(body string) bool { return strings.Contains(body, `"Question"`) })
	if err := json.Unmarshal([]byte(asked), &question); err != nil || !strings.HasPrefix(question.Link, server.URL+"/complete/c1.") || question.Question != "Sign s-1?" {
		t.Fatalf("got the question %s, %v, want one with a link", asked, err)
	}
	if status, page := visit(t, http.Get, question.Link); status != http.StatusOK || !strings.Contains(page, "Sign s-1?") || !strings.Contains(page, `value="approve"`) {
		t.Errorf("got %d %s, want the question and its answers", status, page)
	}
	answer := func(with string) (int, string) {
		return visit(t, func(link string) (*http.Response, error) {
			return http.PostForm(link, url.Values{"answer": {with}, "name": {"anna"}, "request": {"r"}})
		}, question.Link)
	}
	for range 2 {
		if status, page := answer("approve"); status != http.StatusOK || !strings.Contains(page, "Your answer is stored") {
			t.Errorf("got %d %s, want it taken", status, page)
		}
	}
	if status, page := answer("reject"); status != http.StatusConflict || !strings.Contains(page, "answered with <strong>approve</strong>") {
		t.Errorf("another answer: got %d %s, want what stands", status, page)
	}
	j := w.end(t, "s-1")
	reserve, _ := j.Step("reserve")
	if j.ProcessState != makegood.JobProcessed || reserve.Forward.Completion == nil || reserve.Forward.Completion.By != wire.ByToken || string(reserve.Forward.Output.Inline) != `{"reserved":7}` {
		t.Errorf("got %s and %+v, want it processed, and reserve completed by token", j.ProcessState, reserve.Forward)
	}
	// The public door does nothing else, for whoever has no token.
	for _, path := range []string{"/api/jobs/s-1", "/api/jobs", "/api/workflows", "/healthz"} {
		if status, page := visit(t, http.Get, server.URL+path); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want it refused", path, status, page)
		}
	}
	c, err := client.New(server.URL, client.WithPatience(patience))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Completion(task.Completion[:len(task.Completion)-4]+"AAAA").Complete(t.Context(), nil); !errors.Is(err, api.ErrCompletionToken) {
		t.Errorf("a token that is made up: got %v", err)
	}
	if s, err := c.Completion(task.Completion).Complete(t.Context(), json.RawMessage(`{"reserved": 7}`)); err != nil || !s.Existed {
		t.Errorf("the same again: got %+v, %v", s, err)
	}
	for _, said := range []string{door.output(), moves.output()} {
		token := question.Link[strings.LastIndexByte(question.Link, '/')+1:]
		if strings.Contains(said, token) || strings.Contains(said, task.Completion) {
			t.Errorf("a log has a completion token: %s", said)
		}
	}
}

// visit opens a page.
func visit(t *testing.T, open func(string) (*http.Response, error), link string) (int, string) {
	t.Helper()
	answer, err := open(link)
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
