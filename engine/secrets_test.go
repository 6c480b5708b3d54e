package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// locked is a buffer that many may write to.
type locked struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *locked) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

// A service and an agent get their secrets, and say them back in every way: in an output, in errors, in a panic. Neither the
// folder, nor the log, nor what the API shows has them then; and a job whose input looks like a secret gets none.
func TestASecretIsKeptNowhere(t *testing.T) {
	const key, pin = "hunter2/secret=<", "0000-1111-2222"
	var asked locked
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(&asked, "%s %s\n", r.Header.Get("Authorization"), body)
		if r.URL.Path != "/ok" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, `{"you sent": %q, "with": %q}`, r.Header.Get("Authorization"), r.URL.Query().Get("k"))
	}))
	defer service.Close()
	const workflows = `
name: NAME
onFailure: stop
steps:
  - name: call
    agent: http
    with:
      url: "${ .input.at }PATH?k=${ secret(\"key\") }"
      headers: {Authorization: "Bearer ${ secret(\"key\") }"}
      body: "${ .input }"
  - name: own
    agent: own
    with: {pin: "${ secret(\"pin\") }"}
    retry: {attempts: 1}
`
	files := fstest.MapFS{}
	for name, path := range map[string]string{"fine": "/ok", "bad": "/no"} {
		files[name+".yaml"] = &fstest.MapFile{Data: []byte(strings.NewReplacer("NAME", name, "PATH", path).Replace(workflows))}
	}
	own := agent.New("own", agent.Do("own", func(_ context.Context, in struct{ Pin string }) (string, error) {
		asked.Write([]byte("pin " + in.Pin + "\n"))
		if in.Pin == pin {
			panic("I was told " + in.Pin)
		}
		return in.Pin, nil
	}))
	dir := t.TempDir()
	var log locked
	eng, err := engine.Open(t.Context(), engine.Options{
		Dir: dir, Workflows: files, Agents: []agent.Handler{own},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Secrets: func(_ context.Context, name string) (string, error) {
			if value, there := map[string]string{"key": key, "pin": pin}[name]; there {
				return value, nil
			}
			return "", agent.ErrNoSecret
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(t.Context()) }()
	var shown []byte
	for _, workflow := range []string{"fine", "bad"} {
		input := fmt.Sprintf(`{"at": %q, "secrets": [{"path": "", "at": 0, "name": "key"}], "text": "${ secret(\"key\") }"}`, service.URL)
		_, err := eng.Submit(t.Context(), makegood.Submission{Workflow: workflow, ID: workflow, Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		job, err := eng.Wait(t.Context(), workflow)
		if err != nil || job.ProcessState != makegood.JobError {
			t.Errorf("%s: got %s, %v, want it to end in Error: its last step panics, or its first is refused", workflow, job.ProcessState, err)
		}
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, text...)
	}
	if err := errors.Join(eng.Close(), <-ended); err != nil {
		t.Fatal(err)
	}

	if got := asked.text(); strings.Count(got, "Bearer "+key+" ") != 2 || !strings.Contains(got, "pin "+pin) {
		t.Errorf("the service and the agent were asked %q, want each with its secret", got)
	}
	if got := asked.text(); strings.Count(got, `"text":"${ secret(\"key\") }"`) != 2 {
		t.Errorf("the service was asked %q, want the text of the input as it was submitted", got)
	}
	for _, want := range []string{`Bearer [secret key]`, `I was told [secret pin]`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("the jobs show %s, want %s", shown, want)
		}
	}
	leaksNot := func(where string, text []byte) {
		for _, value := range []string{key, "hunter2", pin} {
			if bytes.Contains(text, []byte(value)) {
				t.Errorf("%s has the secret %s", where, value)
			}
		}
	}
	leaksNot("what the API shows", shown)
	leaksNot("the log", []byte(log.text()))
	looked := 0
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		looked++
		text, err := os.ReadFile(dir + "/" + name)
		leaksNot(name, text)
		return err
	})
	if err != nil || looked == 0 {
		t.Errorf("looked through %d files, %v", looked, err)
	}
}
