package embedded_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
)

// One step that is done outside, and one that waits for it.
const ferryYAML = `
name: ferry
steps:
  - {name: load, agent: harbour, timeout: 30s, undo: {action: unload}}
  - {name: sail, agent: harbour, timeout: 30s}
`

// taken is a task that the test has taken, as an agent outside would read it.
type taken struct {
	agentdoor.Task
	said struct {
		Step, Token string
		Attempt     int
	}
}

// take takes the one task that waits for the harbour.
func (w *world) take(instance string) taken {
	w.t.Helper()
	tasks, err := w.engine.Door().Take(w.t.Context(), "harbour", agentdoor.Ask{Instance: instance, Max: 10, Wait: limits.MaxTaskWait})
	if err != nil || len(tasks) != 1 {
		w.t.Fatalf("got %v, %v, want one task", tasks, err)
	}
	got := taken{Task: tasks[0]}
	if err := json.Unmarshal([]byte(got.Body), &got.said); err != nil {
		w.t.Fatal(err)
	}
	return got
}

// replies tells an engine of success, and returns what became of that.
func (w *world) replies(id string, task taken) machine.Kind {
	w.t.Helper()
	verdict, err := w.engine.Door().Reply(w.t.Context(), fmt.Sprintf(`{"v":1,"type":"StepSucceeded","job":%q,"step":%q,"attempt":%d,"token":%q,"lockedBy":%q,"output":1}`,
		id, task.said.Step, task.said.Attempt, task.said.Token, task.Claim.LockedBy))
	if err != nil {
		w.t.Fatal(err)
	}
	return verdict.Kind
}

// The engine ends and starts again while an agent outside works: the attempt is not interrupted, its heartbeat moves what
// the new engine reads, and its reply is taken. What was never taken is sent again.
func TestARestartDoesNotInterruptAnAgentOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := embedded.Config{Dir: t.TempDir(), Outside: []embedded.Outside{{Name: "harbour"}}}
		w := open(t, c)
		compiled := w.define(ferryYAML)
		w.submit(compiled, "f-1", `{}`)
		loading := w.take("h-1")
		w.stop()

		w = open(t, c)
		w.until("f-1", func(j job.Job) bool { return j.Incarnation == 2 })
		stands, err := w.engine.Door().Heartbeat(t.Context(), "f-1", job.Reply{
			Step: "load", Attempt: loading.said.Attempt, Token: loading.said.Token, LockedBy: loading.Claim.LockedBy,
		}, nil)
		if err != nil || stands.Held != agentdoor.Mine || stands.CompleteBy.Before(loading.Claim.CompleteBy) {
			t.Errorf("a heartbeat to the next engine: got %+v, %v, want %s, and no less time than %s", stands, err, agentdoor.Mine, loading.Claim.CompleteBy)
		}
		if kind := w.replies("f-1", loading); kind != machine.Applied {
			t.Errorf("a reply to the next engine: %s, want it applied", kind)
		}
		w.stop()

		w = open(t, c)
		sailing := w.take("h-1")
		if sailing.said.Step != "sail" {
			t.Fatalf("got the task of %s, want that of sail", sailing.said.Step)
		}
		if kind := w.replies("f-1", sailing); kind != machine.Applied {
			t.Errorf("the reply to the last task: %s, want it applied", kind)
		}
		done := w.ends("f-1", makegood.JobProcessed)
		load := done.Steps[0].Forward
		if load.Attempt != 1 || load.Interruptions != 0 || load.FailureCount != 0 || load.Unknown {
			t.Errorf("got %+v, want one attempt, and nothing cut off", load)
		}
	})
}

// Nobody claims a step that is not exclusive, and still an engine that starts knows which of its tasks it gave to another process:
// the undo is handed out when the attempt that runs there has replied, and not beside it. A second restart changes nothing.
func TestARestartDoesNotTakeASharedAttemptOutsideForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := embedded.Config{Dir: t.TempDir(), Outside: []embedded.Outside{{Name: "harbour"}}}
		w := open(t, c)
		compiled := w.define(`
name: ferry
steps:
  - {name: load, agent: harbour, exclusive: false, timeout: 30m, undo: {action: unload}}
  - {name: sail, agent: harbour, exclusive: false}
`)
		w.submit(compiled, "f-1", `{}`)
		loading := w.take("h-1")
		w.stop()

		for run := 2; run <= 3; run++ {
			w = open(t, c)
			w.until("f-1", func(j job.Job) bool { return j.Incarnation == run })
			if run == 2 {
				w.request("f-1", makegood.VerbCancel)
			}
			load := stepOf(t, w.stored("f-1", func(j job.Job) bool { return j.ProcessState == makegood.JobUndoing }), "load")
			if load.Forward.State != job.Dispatched || load.Undo.State != job.NotStarted {
				t.Fatalf("in run %d, while an agent outside works on attempt 1: got it %s and its undo %s, want it out, and nothing undone", run, load.Forward.State, load.Undo.State)
			}
			if run == 2 {
				w.stop()
			}
		}
		if kind := w.replies("f-1", loading); kind != machine.Applied {
			t.Errorf("the reply of the attempt that went on: %s, want it applied", kind)
		}
		undoing := w.take("h-1")
		if undoing.said.Attempt != 2 || undoing.Claim.LockedBy != "" {
			t.Errorf("got attempt %d, held by %q, want the undo as attempt 2, held by nobody", undoing.said.Attempt, undoing.Claim.LockedBy)
		}
		w.replies("f-1", undoing)
		w.ends("f-1", makegood.JobCancelled)
	})
}

// An agent outside that fell silent, and whose attempt was closed for that, reads and writes no payloads, and an upload that began
// before and ends after it leaves nothing.
func TestWhoFellSilentOutsideReadsAndWritesNoPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, embedded.Config{Outside: []embedded.Outside{{Name: "harbour"}}})
		w.submit(w.define(ferryYAML), "f-1", `{}`)
		loading := w.take("h-1")
		mine := agentdoor.Attempt{Agent: "harbour", Job: "f-1", Reply: job.Reply{
			Step: "load", Attempt: loading.said.Attempt, Token: loading.said.Token, LockedBy: loading.Claim.LockedBy,
		}}
		door := w.engine.Door()
		written, err := door.WritePayload(t.Context(), mine, "text/plain", strings.NewReader("in time"))
		if err != nil {
			t.Fatal(err)
		}
		slow, end := io.Pipe()
		go func() {
			_, _ = end.Write([]byte("begun in time"))
			time.Sleep(time.Until(loading.Claim.CompleteBy) + time.Minute)
			_ = end.Close()
		}()
		if _, err := door.WritePayload(t.Context(), mine, "text/plain", slow); !errors.Is(err, agentdoor.ErrOver) {
			t.Errorf("an upload that ended too late: got %v, want %v", err, agentdoor.ErrOver)
		}
		if _, err := door.WritePayload(t.Context(), mine, "text/plain", strings.NewReader("too late")); !errors.Is(err, agentdoor.ErrOver) {
			t.Errorf("an upload that began too late: got %v, want %v", err, agentdoor.ErrOver)
		}
		if _, err := door.OpenPayload(t.Context(), mine, written, 0, -1); !errors.Is(err, agentdoor.ErrOver) {
			t.Errorf("a download: got %v, want %v", err, agentdoor.ErrOver)
		}
		left := makegood.Payload{SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("begun in time"))), Bytes: 13, By: "harbour"}
		if _, err := w.engine.OpenPayload(t.Context(), "f-1", left, 0, -1); !errors.Is(err, payload.ErrNotFound) {
			t.Errorf("what ended too late: got %v, want %v", err, payload.ErrNotFound)
		}
	})
}

// While an engine ends, nobody waits for tasks any more.
func TestAnEngineThatEndsLetsNobodyWaitForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, embedded.Config{Outside: []embedded.Outside{{Name: "harbour"}}})
		waits := make(chan error, 1)
		go func() {
			_, err := w.engine.Door().Take(t.Context(), "harbour", agentdoor.Ask{Instance: "h-1", Max: 1, Wait: limits.MaxTaskWait})
			waits <- err
		}()
		w.stop()
		select {
		case err := <-waits:
			if err == nil {
				t.Error("got no error, want to hear that the engine ends")
			}
		case <-time.After(limits.MaxTaskWait / 2):
			t.Error("still waiting")
		}
	})
}
