package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// worker is an agent that says which job it works on, and works until its context ends while stuck.
type worker struct {
	began chan string
	stuck bool
}

func (worker) Name() string { return "worker" }

func (w worker) Handle(ctx context.Context, t makegood.Task) (json.RawMessage, error) {
	w.began <- t.Job
	if w.stuck {
		<-ctx.Done()
	}
	return nil, ctx.Err()
}

// runLeft leaves a job under way in a folder, as a run that was cut off does, and returns the arguments that go on with
// it: the input comes from standard input.
func runLeft(t *testing.T) []string {
	t.Helper()
	args := []string{"run", write(t, "one.yaml", "name: one\nsteps: [{name: work, agent: worker, undo: none}]\n"), "--input", "-", "--data", filepath.Join(t.TempDir(), "data")}
	ctx, stop := context.WithCancel(t.Context())
	w := worker{make(chan string, 9), true}
	ended := runBeside(ctx, w, strings.NewReader(`{"id":"left"}`), args...)
	<-w.began
	stop()
	if code, said := ended(); code != codeFailed {
		t.Fatalf("cut off, it ended with %d, %s", code, said)
	}
	return args
}

// runBeside begins a command, and returns a function that waits for its end.
func runBeside(ctx context.Context, w worker, stdin io.Reader, args ...string) (ended func() (code int, said string)) {
	root, out := newRoot("makegood", nil, []agent.Handler{w}), &bytes.Buffer{}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(out)
	code := make(chan int, 1)
	go func() { code <- execute(ctx, root, out) }()
	return func() (int, string) { return <-code, out.String() }
}

// A run that goes on is at work before it has read a line of its input, so however long that is. No line is submitted
// before all are right: the second is wrong here, and so there is no job of the first.
func TestARunGoesOnBeforeItReadsItsInput(t *testing.T) {
	args := runLeft(t)
	w := worker{began: make(chan string, 9)}
	input, lines := io.Pipe()
	ended := runBeside(t.Context(), w, input, args...)
	if job := <-w.began; job != "left" {
		t.Errorf("before a line was read, job %s was worked on, want the one that was left", job)
	}
	if _, err := io.WriteString(lines, `{"id":"new"}`+"\n{\n"); err != nil {
		t.Fatal(err)
	}
	_ = lines.Close()
	if code, said := ended(); code != codeUsage || !strings.Contains(said, "stdin:2: not strict JSON") {
		t.Errorf("got code %d, %s; want %d, and the line named", code, said, codeUsage)
	}
	if len(w.began) > 0 {
		t.Errorf("job %s was worked on", <-w.began)
	}

	code, said := runBeside(t.Context(), w, strings.NewReader(`{"id":"left"}`+"\n"+`{"id":"new"}`), append(args, "--json")...)()
	if !strings.HasPrefix(said, `{"jobs":2,"processed":2,`) || code != 0 {
		t.Errorf("got code %d, %s; want both jobs Processed", code, said)
	}
}

// All jobs of the file have ended, so there is no work to wait for; that one of them is of other content is said.
func TestALineThatHasChangedIsRefusedWhenAllJobsHaveEnded(t *testing.T) {
	args := runLeft(t)
	w := worker{began: make(chan string, 9)}
	if code, said := runBeside(t.Context(), w, strings.NewReader(`{"id":"left"}`), args...)(); code != 0 {
		t.Fatalf("got code %d, %s", code, said)
	}
	code, said := runBeside(t.Context(), w, strings.NewReader("\n"+`{"id":"left","total":1}`), args...)()
	if code != codeUsage || !strings.Contains(said, "stdin:2: ") || !strings.Contains(said, "left") {
		t.Errorf("got code %d, %s; want %d, and the line named", code, said, codeUsage)
	}
}

// An input that never ends does not keep a run from being stopped.
func TestARunThatReadsIsStopped(t *testing.T) {
	args := runLeft(t)
	ctx, stop := context.WithCancel(t.Context())
	w := worker{began: make(chan string, 9)}
	input, lines := io.Pipe()
	defer lines.Close()
	ended := runBeside(ctx, w, input, args...)
	<-w.began
	stop()
	if code, said := ended(); code != codeFailed || !strings.HasSuffix(said, "stopped\nThe input was not read to its end: no line was submitted\n") {
		t.Errorf("got code %d, %q; want %d", code, said, codeFailed)
	}
}
