//go:build sam

package sam_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
)

// stubborn is a workflow whose jobs end in front of a person.
const stubborn = `name: stubborn
onFailure: stop
steps:
  - {name: post, agent: hello, with: {text: "nobody reads this", refuse: true}, undo: none}
`

// pageWithin is how long a view of the stack may take to show what must come: the functions may have to start, on two cores.
const pageWithin = 3 * time.Minute

// page serves the page of the stack as makegood ui does, and does through it what a person would: each view answers, a job is
// submitted, one is cancelled, and one that stopped is repaired.
func (w *world) page() {
	w.t.Helper()
	if _, err := w.jobs.Publish(w.t.Context(), []byte(stubborn)); err != nil {
		w.t.Fatal(err)
	}
	b := w.browse()
	for path, want := range map[string]string{
		"": "Ended jobs are in no index here", "?state=Processed": "first", "?workflow=hello": "second", "jobs/first": "Time line", "jobs/second": "refused",
		"errors": "No job waits for a person", "agents": "hello", "schedules": "Schedules", "workflows": "workflows/hello", "workflows/hello": "Definitions", "welcome": "Welcome",
	} {
		b.sees(path, want)
	}
	b.send("workflows/hello/submit", "workflows/hello/submit", url.Values{"input": {`{"name":"Grace"}`}, "id": {"by-page"}})
	b.sees("jobs/by-page", "Processed")

	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04:05")
	b.send("workflows/hello/submit", "workflows/hello/submit", url.Values{"input": {`{"name":"Ada"}`}, "id": {"too-soon"}, "start": {tomorrow}})
	b.send("jobs/too-soon/ask/cancel", "jobs/too-soon/ask/cancel", url.Values{"reason": {"by the page"}, "then": {"do"}})
	w.wait("cancelled", []string{"too-soon"}, func(j makegood.Job) bool { return j.ProcessState == makegood.JobCancelled })

	// A workflow that the functions do not have is no entry of the page, and its jobs are as all others.
	if _, err := w.jobs.Submit(w.t.Context(), makegood.Submission{Workflow: "stubborn", ID: "stopped", Input: json.RawMessage(`{}`)}); err != nil {
		w.t.Fatal(err)
	}
	w.wait("in Error", []string{"stopped"}, func(j makegood.Job) bool { return j.ProcessState == makegood.JobError })
	b.sees("errors", "stubborn · post", "Resubmit 1")
	begun := b.send("repair?ask=cancel&state=Error&workflow=stubborn", "repairs", url.Values{"reason": {"nobody reads it"}})
	b.sees(begun, "1 granted", "through in")
	w.wait("cancelled", []string{"stopped"}, func(j makegood.Job) bool { return j.ProcessState == makegood.JobCancelled })
	b.sees("errors", "No job waits for a person")
}

// browser is who has the page of the stack open.
type browser struct {
	t   *testing.T
	url string
}

// browse starts makegood ui.
func (w *world) browse() *browser {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, w.command(), "ui", "--stack", stackName, "--addr", "127.0.0.1:0")
	command.Env = w.environment()
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		stop()
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		stop()
		_ = command.Wait() // It was killed.
		if w.t.Failed() {
			w.t.Logf("makegood ui said: %s", said.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), " at ")
	if err != nil || !found {
		w.t.Fatalf("makegood ui says %q, %v", line, err)
	}
	return &browser{t: w.t, url: address + "/"}
}

// get asks for a path.
func (b *browser) get(path string) (status int, text string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

func (b *browser) do(r *http.Request) (status int, text string) {
	b.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	*r.URL = *answer.Request.URL
	return answer.StatusCode, string(body)
}

// sees asks for a path until it shows all of the texts.
func (b *browser) sees(path string, texts ...string) {
	b.t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Second) {
		status, text := b.get(path)
		missing := ""
		for _, want := range texts {
			if !strings.Contains(text, want) {
				missing = want
			}
		}
		if status == http.StatusOK && missing == "" {
			b.t.Logf("/%s is there after %s", path, time.Since(begun).Round(time.Millisecond))
			return
		}
		if time.Since(begun) > pageWithin {
			b.t.Fatalf("/%s answers %d, without %q:\n%.8000s", path, status, missing, text)
		}
	}
}

// field is an input of a form that has a value already.
var field = regexp.MustCompile(`<input[^>]* name="([^"]*)"[^>]* value="([^"]*)"`)

// send fills the form of a page that is sent to an address in, sends it, and returns the path to which that led.
func (b *browser) send(path, to string, filled url.Values) string {
	b.t.Helper()
	status, text := b.get(path)
	_, form, found := strings.Cut(text, to+`">`)
	form, _, _ = strings.Cut(form, "</form>")
	if status != http.StatusOK || !found {
		b.t.Fatalf("/%s answers %d, and has no form for %s:\n%.8000s", path, status, to, text)
	}
	values := url.Values{}
	for _, f := range field.FindAllStringSubmatch(form, -1) {
		values.Set(f[1], html.UnescapeString(f[2]))
	}
	for name, value := range filled {
		values[name] = value
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+to, strings.NewReader(values.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if status, text := b.do(r); status != http.StatusOK {
		b.t.Fatalf("%s answers %d:\n%.8000s", to, status, text)
	}
	return strings.TrimPrefix(r.URL.Path, "/")
}
