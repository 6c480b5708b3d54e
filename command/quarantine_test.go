package command

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// office is an engine that does not run, its API, and its queues.
type office struct {
	t      *testing.T
	dir    string
	engine *embedded.Engine
	queues embedded.Queues
	url    string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, dir: t.TempDir()}
	engine, err := embedded.Open(t.Context(), embedded.Config{Dir: o.dir, Agents: []agent.Handler{deaf{}}, WrapQueues: func(q embedded.Queues) embedded.Queues {
		o.queues = q
		return q
	}})
	must(t, err)
	c, err := workflowfile.Parse("x.yaml", []byte("name: x\nsteps: [{name: a, agent: deaf}]\n"))
	must(t, err)
	must(t, engine.Define(t.Context(), c))
	o.engine = engine
	server := httptest.NewServer(httpapi.New(httpapi.Config{Jobs: control.New(engine.Parts())}))
	o.url = server.URL
	t.Cleanup(func() {
		server.Close()
		must(t, engine.Close())
	})
	return o
}

// put puts a message into quarantine, as a handler does that got it from a queue.
func (o *office) put(from, body, reason string) {
	o.t.Helper()
	record := events.SQSMessage{MessageId: "m", Body: body, EventSourceARN: localqueue.ARN(from)}
	must(o.t, sqsbatch.Quarantine(o.t.Context(), o.queues, putaway.Quarantine, record, reason))
}

func (o *office) submission(id string) string {
	o.t.Helper()
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "x", ID: id, Input: json.RawMessage(`{}`)})
	must(o.t, err)
	return body
}

// task is that of a job's step, as its agent would get it.
func (o *office) task(job string) string {
	o.t.Helper()
	now := time.Now()
	body, err := wire.EncodeTask(makegood.Task{
		Job: job, Workflow: "x", Step: "a", Round: 1, Attempt: 1, Agent: "deaf", Action: "a", Input: json.RawMessage(`{}`),
		Key: job + "/a/1", SentAt: now, StartBy: now, Timeout: makegood.Second, ReplyTo: "events", Birth: "b", Token: "1.t", ClaimUntil: now,
	})
	must(o.t, err)
	return body
}

// ask runs a verb of quarantine against the process.
func (o *office) ask(code int, args ...string) (stdout, stderr string) {
	o.t.Helper()
	got, stdout, stderr := ask(o.t, append(append([]string{"quarantine"}, args...), "--addr", o.url)...)
	if got != code {
		o.t.Errorf("%v: got %d, %s%swant %d", args, got, stdout, stderr, code)
	}
	return stdout, stderr
}

func (o *office) left() int {
	o.t.Helper()
	page, err := o.engine.Parts().Quarantine.Page(o.t.Context(), "", putaway.Max)
	must(o.t, err)
	return len(page.Messages)
}

// What is in quarantine of a process is listed, shown, replayed by a filter and dropped, with the words that a stack has.
func TestTheQuarantineOfAProcessIsShownReplayedAndDropped(t *testing.T) {
	o := newOffice(t)
	_, _, err := o.engine.SubmitCurrent(t.Context(), "x", scheduler.Submission{ID: "out", Input: []byte(`{}`)})
	must(t, err)
	o.put("events", o.submission("j"), "there was no workflow x")
	o.put("events", "not JSON", "invalid character")
	o.put("tasks-deaf", o.task("gone"), "a task for nobody")
	o.put("tasks-deaf", o.task("out"), "a task for nobody")

	out, _ := o.ask(0, "list")
	for _, want := range []string{"ID  FROM        WHAT ", "1   events      Submit of job j", "2   events      8 bytes", "4   tasks-deaf  Task of job out, step a, attempt 1", "there was no workflow x"} {
		if !strings.Contains(out, want) {
			t.Errorf("list: got\n%swant it to say %q", out, want)
		}
	}
	if out, stderr := o.ask(0, "list", "--limit", "1", "--queue", "tasks-deaf", "--json"); strings.Count(out, "\n") != 1 || !strings.Contains(out, `"job":"gone"`) ||
		strings.Contains(out, `"body":`) || !strings.Contains(stderr, "1 shown, and there are more") {
		t.Errorf("list of one: got %s%s", out, stderr)
	}
	if code, folder, stderr := ask(t, "quarantine", "list", "--data", o.dir); code != 0 || folder != out {
		t.Errorf("of the folder: got %d, %s%swant\n%s", code, folder, stderr, out)
	}
	for id, want := range map[string]string{"1": "replay: sent, to events", "2": "replay: refused, it would not be understood", "3": "replay: over, there is no job gone", "4": "replay: asked, attempt 1 of step a is out"} {
		if out, _ := o.ask(0, "get", id); !strings.Contains(out, want) {
			t.Errorf("get %s: got\n%swant %q", id, out, want)
		}
		if code, out, stderr := ask(t, "quarantine", "get", id, "--data", o.dir); code != 0 || !strings.Contains(out, want) {
			t.Errorf("get %s of the folder: got %d\n%s%swant %q", id, code, out, stderr, want)
		}
	}
	if _, stderr := o.ask(codeUsage, "get", "9"); !strings.Contains(stderr, "there is no message 9 in quarantine") {
		t.Errorf("get 9: got %s", stderr)
	}

	if _, stderr := o.ask(codeOtherwise, "replay", "--all", "--dry-run"); !strings.Contains(stderr, "it would be: 1 sent, 1 asked, 1 over, 1 refused") || o.left() != 4 {
		t.Errorf("foreseen: got %s, %d left", stderr, o.left())
	}
	if _, stderr := o.ask(codeUsage, "replay", "--all"); !strings.Contains(stderr, "--yes") || o.left() != 4 {
		t.Errorf("without --yes: got %s, %d left", stderr, o.left())
	}
	if _, stderr := o.ask(codeOtherwise, "replay", "--all", "--yes"); !strings.Contains(stderr, "1 sent, 1 asked, 1 over, 1 refused") || o.left() != 1 {
		t.Errorf("replayed: got %s, %d left", stderr, o.left())
	}
	if _, err := o.engine.Job(t.Context(), "j"); err != nil {
		t.Errorf("what was submitted is not stored: %v", err)
	}
	if _, stderr := o.ask(codeUsage, "drop", "2", "9"); !strings.Contains(stderr, "1 of 2 are not in quarantine, and no message was touched") {
		t.Errorf("one is missing: got %s", stderr)
	}
	keep := filepath.Join(t.TempDir(), "dropped.jsonl")
	if out, stderr := o.ask(0, "drop", "2", "--keep", keep); !strings.Contains(out, "2  8 bytes: dropped, invalid character") || o.left() != 0 {
		t.Errorf("dropped: got %s%s, %d left", out, stderr, o.left())
	}
	if kept, err := os.ReadFile(keep); err != nil || !strings.Contains(string(kept), `"body":"not JSON"`) {
		t.Errorf("kept: got %s, %v", kept, err)
	}
	if out, _ := o.ask(0, "list"); out != "nothing\n" {
		t.Errorf("at the end: got %s", out)
	}
}

// A replay and a drop of what is not there any more are no errors: an earlier try did it.
func TestWhatIsNotInQuarantineAnyMoreWasDealtWith(t *testing.T) {
	o := newOffice(t)
	c, err := client.New(o.url)
	must(t, err)
	d := quarantineDesk{quarantineReader: c, writer: c}
	if outcome, err := d.Replay(t.Context(), putaway.Message{ID: "1"}); err != nil || outcome.Result != putaway.Over {
		t.Errorf("replay: got %v, %v, want it to be over", outcome, err)
	}
	if err := d.Drop(t.Context(), putaway.Message{ID: "1"}); err != nil {
		t.Errorf("drop: got %v", err)
	}
	if _, err := c.ReplayQuarantined(t.Context(), "1"); !errors.Is(err, api.ErrNoMessage) {
		t.Errorf("the client: got %v, want that there is no such message", err)
	}
}

// What cannot be dealt with now stays: who asked for the replay has gone.
func TestAReplayThatDoesNotComeToAnEndLeavesTheMessage(t *testing.T) {
	shelf := newOffice(t)
	shelf.put("events", shelf.submission("j"), "why")
	s := shelf.engine.Parts().Quarantine
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outcome, err := s.Replay(ctx, "1"); err == nil || shelf.left() != 1 {
		t.Errorf("got %v, %v, %d left, want an error and the message", outcome, err, shelf.left())
	}
}

// An engine in one process has no dead letters, and says what there is instead.
func TestAnEngineInOneProcessHasNoDeadLetters(t *testing.T) {
	for _, args := range [][]string{{"list"}, {"get", "1", "--data", t.TempDir()}, {"replay", "--all", "--yes"}, {"drop", "1"}} {
		code, out, stderr := ask(t, append([]string{"dead-letters"}, args...)...)
		if code != codeUsage || out != "" || !strings.Contains(stderr, "has no dead letters") || !strings.Contains(stderr, "quarantine") {
			t.Errorf("%v: got %d, %s%s", args, code, out, stderr)
		}
	}
}
