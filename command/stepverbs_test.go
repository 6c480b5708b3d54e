package command

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const approvals = `
name: approvals
steps:
  - {name: approve, agent: approval, retry: {attempts: 3, backoff: 1h}, with: {choices: [approve, reject], question: "Is it so?", for: 2h}}
`

// waitingFor is a process with jobs whose step approve waits.
func waitingFor(t *testing.T, ids ...string) (engine *embedded.Engine, url string) {
	t.Helper()
	engine, err := embedded.Open(t.Context(), embedded.Config{})
	must(t, err)
	c, err := workflowfile.Parse("approvals.yaml", []byte(approvals))
	must(t, err)
	must(t, engine.Define(t.Context(), c))
	url = runs(t, engine)
	for _, id := range ids {
		_, _, err := engine.SubmitCurrent(t.Context(), "approvals", scheduler.Submission{ID: id, Input: json.RawMessage("{}")})
		must(t, err)
	}
	return engine, url
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants runs the command and wants a code, and a text on one of its outputs.
func wants(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	got, stdout, stderr := ask(t, args...)
	if got != code || !strings.Contains(stdout+stderr, text) {
		t.Errorf("%q: got %d, %s%s, want %d and %q", args, got, stdout, stderr, code, text)
	}
}

// A step that waits is completed, said to have failed, or made to wait longer from a terminal, and get shows until when it
// waits and who completed it.
func TestAStepIsCompletedFromATerminal(t *testing.T) {
	_, url := waitingFor(t, "a", "b", "c")
	at := func(args ...string) []string { return append(args, "--addr", url) }
	wants(t, 0, "approve  waiting, attempt 1, until 20", at("get", "a")...)
	wants(t, 0, "  approve asks  Is it so?\n    makegood answer a approve approve --addr "+url+"   one of approve, reject", at("get", "a")...)
	wants(t, 0, "approve", "__complete", "complete", "--addr", url, "a", "")
	wants(t, 0, "approve waiting until 2", at("heartbeat", "a", "approve", "--for", "72h")...)
	wants(t, codeUsage, "refused: step approve takes one of these answers, a text: \"approve\", \"reject\"", at("complete", "a", "approve", "--output", `"perhaps"`)...)
	wants(t, codeUsage, "refused: it is of round 2", at("complete", "a", "approve", "--round", "2")...)
	wants(t, 0, "a  approvals  Processed  [approve done]", at("complete", "a", "approve", "--output", `"approve"`, "--who", "anna")...)
	wants(t, 0, "Processed", at("complete", "a", "approve", "--output", `"approve"`)...)
	wants(t, codeUsage, "refused: step approve was completed by anna at", at("complete", "a", "approve", "--output", `"reject"`)...)
	wants(t, 0, "completed by anna", at("get", "a")...)
	wants(t, 0, "b  approvals  Processing, wanted Processed  [approve backoff]", at("fail", "b", "approve", "--reason", "nobody is there")...)
	wants(t, 0, "c  approvals  ", at("fail", "c", "approve", "--reason", "nobody is there", "--final", "--not-applied")...)
	wants(t, codeUsage, "there is no such job", at("complete", "nobody", "approve")...)
	code, stdout, _ := ask(t, at("complete", "a", "approve", "--output", `"approve"`, "--json")...)
	var job makegood.Job
	if err := json.Unmarshal([]byte(stdout), &job); code != 0 || err != nil || job.Steps[0].State != makegood.StepDone {
		t.Errorf("in JSON: got %d, %s, %v, want the job", code, stdout, err)
	}
}

// A token needs neither a job nor a step. It comes from the environment or standard input, so that no history has it, and
// what is printed says nothing but how the step stands.
func TestATokenIsKeptOutOfTheCommandLine(t *testing.T) {
	engine, url := waitingFor(t, "a", "b")
	token := func(id string) string {
		j, err := engine.Job(t.Context(), id)
		must(t, err)
		return machine.CompletionToken(j, "approve", false)
	}
	t.Setenv(tokenVariable, token("a"))
	wants(t, 0, "waiting until 2", "heartbeat", "--token", "-", "--addr", url)
	wants(t, 0, "done\n", "complete", "--token", "-", "--output", `"approve"`, "--addr", url)
	wants(t, 0, "done; it was so already\n", "complete", "--token", "-", "--output", `"approve"`, "--addr", url)
	wants(t, codeUsage, "with another answer", "complete", "--token", "-", "--output", `"reject"`, "--addr", url)
	t.Setenv(tokenVariable, "")
	wants(t, codeUsage, "standard input is empty", "complete", "--token", "-", "--addr", url)
	wants(t, codeUsage, "both to be read from standard input", "complete", "--token", "-", "--output", "-", "--addr", url)
	code, stdout, stderr := askWith(t, token("b")+"\n", "complete", "--token", "-", "--output", `"reject"`, "--json", "--addr", url)
	var stands api.Standing
	if err := json.Unmarshal([]byte(stdout), &stands); code != 0 || err != nil || stands.State != makegood.StepDone || strings.Contains(stdout, `"b"`) {
		t.Errorf("got %d, %s%s, want how the step stands", code, stdout, stderr)
	}
	wants(t, codeUsage, "no step has this completion token", "complete", "--token", token("a")[:len(token("a"))-4]+"AAAA", "--addr", url)
}

// Who is asked by makegood dev gets a link to its own page.
func TestDevServesTheLinksOfThoseWhoAreAsked(t *testing.T) {
	links := make(chan string, 1)
	boss := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var q struct{ Link string }
		if body, err := io.ReadAll(r.Body); err == nil && json.Unmarshal(body, &q) == nil && q.Link != "" {
			links <- q.Link
		}
	}))
	defer boss.Close()
	s := startDevWith(t, "name: x\nsteps: [{name: a, agent: approval, with: {choices: [approve, reject]}, waiting: {ask: boss}}]\n", "--reply", "boss="+boss.URL)
	wants(t, 0, "x-1", "submit", "x", "--id", "x-1", "--addr", s.url)
	link := <-links
	if !strings.HasPrefix(link, s.url+"/complete/c1.") {
		t.Fatalf("got the link %s, want one to %s", link, s.url)
	}
	for _, give := range []func() (*http.Response, error){
		func() (*http.Response, error) { return http.Get(link) },
		func() (*http.Response, error) {
			return http.PostForm(link, url.Values{"answer": {"approve"}, "name": {"anna"}})
		},
	} {
		answer, err := give()
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("got %s, want the page", answer.Status)
		}
	}
	wants(t, 0, "completed by anna (completion token)", "get", "x-1", "--addr", s.url)
	wants(t, codeUsage, "--public-url shop: want a URL", "dev", "--public-url", "shop")
}

func TestWhatIsSaidOfAStepIsCheckedBeforeAnybodyIsAsked(t *testing.T) {
	for want, args := range map[string][]string{
		"complete takes a JOB and a STEP, or --token, got 1 arguments": {"complete", "a"},
		"not both: the token says which step is meant":                 {"complete", "a", "b", "--token", "x"},
		"--early later: want keep":                                     {"complete", "a", "b", "--early", "later"},
		"narrow a JOB and a STEP":                                      {"fail", "--token", "x", "--reason", "y", "--round", "1"},
		"--round -1: want 1 or more":                                   {"heartbeat", "a", "b", "--round", "-1"},
		"fail needs a --reason":                                        {"fail", "a", "b"},
		"--output is not JSON":                                         {"complete", "a", "b", "--output", "{"},
		"--for -1h0m0s: want more than 0s":                             {"heartbeat", "a", "b", "--for", "-1h"},
		"none of the others can be":                                    {"heartbeat", "a", "b", "--for", "1h", "--until", "2026-01-01T00:00:00Z"},
		"--until tomorrow: want a time as in RFC 3339":                 {"heartbeat", "a", "b", "--until", "tomorrow"},
	} {
		wants(t, codeUsage, want, append(args, "--addr", "127.0.0.1:1")...)
	}
	if d, err := readDeadline(newHeartbeat(), "", 0, time.Now()); err != nil || !d.IsZero() {
		t.Errorf("got %s, %v, want no deadline", d, err)
	}
}
