//go:build aws && linux

package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/command"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

// film is a job of one long step. Its agent may be silent for six seconds: a busy machine may hold it up.
const film = `
name: film
steps:
  - name: render
    agent: payments
    timeout: 6h
    heartbeat: 6s
    retry: {backoff: 10ms, max: 10ms}
`

// outsideFolder says where the agent outside writes what it does, and where it is told to finish; it is set in the process
// that this test starts of itself.
const outsideFolder = "MAKEGOOD_TEST_OUTSIDE"

// TestRunAgentOutside is no test: it is the process of an agent that other tests start, and kill.
func TestRunAgentOutside(t *testing.T) {
	folder := os.Getenv(outsideFolder)
	if folder == "" {
		return
	}
	render := func(ctx context.Context, _ json.RawMessage) (string, error) {
		task := agent.TaskOf(ctx)
		wrote(folder, "begin %s#%d", task.Key, task.Attempt)
		if err := agent.Progress(ctx, map[string]int{"attempt": task.Attempt}); err != nil {
			return "", err
		}
		defer agent.KeepAlive(ctx)()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := os.Stat(filepath.Join(folder, "finish "+task.Job)); err == nil {
				return fmt.Sprint("rendered by attempt ", task.Attempt), nil
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				wrote(folder, "ended %s#%d: %v", task.Key, task.Attempt, context.Cause(ctx))
				return "", context.Cause(ctx)
			}
		}
	}
	os.Args = []string{"films", "agent", "payments", "--concurrency", "3", "--grace", "20s", "--health", "127.0.0.1:0"}
	command.Main(nil, agent.New("payments", agent.Do("render", render)))
}

// outsideRole is what an agent outside runs as: it may what docs/long-steps.md shows.
const outsideRole = "outside"

// wrote appends a line to what the agents did.
func wrote(folder, format string, args ...any) {
	file, err := os.OpenFile(filepath.Join(folder, "ledger"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, format+"\n", args...); err != nil {
		panic(err)
	}
}

// outside is a stack whose agent payments runs outside of Lambda.
type outside struct {
	*world
	t      *testing.T
	folder string
	film   *workflowfile.Compiled
}

func newOutside(t *testing.T) *outside {
	w := newWorld(t)
	compiled, err := workflowfile.Parse("film.yaml", []byte(film))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/long-steps.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.NewReplacer("films-prod", w.judge.Policies.Stack, "studio", "payments").Replace(string(page))
	if err := w.judge.Policies.Shown(outsideRole, shown, "### What the credentials must allow"); err != nil {
		t.Fatal(err)
	}
	if err := w.store.PutDefinition(t.Context(), compiled.Workflow.Name, compiled.Hash, compiled.Definition); err != nil {
		t.Fatal(err)
	}
	moves, sweeps := start(t, build(t, functions+"scheduler"), w.environment...), start(t, build(t, functions+"supervisor"), w.environment...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.feed(ctx, deployed.EventsQueue, moves); err != nil {
			t.Errorf("feed: %v", err)
		}
	})
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if a, err := sweeps.call([]byte("{}")); err != nil || a.kind != "response" {
				t.Errorf("a sweep answers %+v, %v", a, err)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return &outside{w, t, t.TempDir(), compiled}
}

// starts starts a process of the agent.
func (o *outside) starts() *exec.Cmd {
	o.t.Helper()
	output := &lockedBuffer{}
	process := exec.Command(os.Args[0], "-test.run", "^TestRunAgentOutside$")
	process.Env, process.Stdout, process.Stderr = append(slices.Clone(o.environment), outsideFolder+"="+o.folder, iam.Key(outsideRole)), output, output
	if err := process.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		_ = process.Process.Kill() // It has ended, or it ends now.
		_ = process.Wait()
		if o.t.Failed() {
			o.t.Logf("a process of the agent said:\n%s", output)
		}
	})
	return process
}

func (o *outside) submits(id string) {
	o.t.Helper()
	if _, _, err := o.scheduler.Submit(o.t.Context(), scheduler.Submission{ID: id, Definition: o.film.Hash, Input: json.RawMessage(`{}`)}); err != nil {
		o.t.Fatal(err)
	}
}

// finishes lets the work of a job come to its end.
func (o *outside) finishes(id string) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.folder, "finish "+id), nil, 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// ledger is what the agents did, in order.
func (o *outside) ledger() []string {
	o.t.Helper()
	text, err := os.ReadFile(filepath.Join(o.folder, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// until waits until something holds.
func (o *outside) until(what string, holds func() bool) {
	o.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			o.t.Fatalf("after %v not yet: %s; the ledger is %q", 2*patience, what, o.ledger())
		}
	}
}

func (o *outside) began(line string) {
	o.t.Helper()
	o.until(line, func() bool { return slices.Contains(o.ledger(), line) })
}

// A process is killed in the middle of its work. The next attempt runs on another process; nothing runs twice under one
// attempt, and what is reported is seen while it runs.
func TestAnAgentOutsideLambdaThatIsKilledIsReplaced(t *testing.T) {
	o := newOutside(t)
	first := o.starts()
	o.submits("f-1")
	o.began("begin f-1/render/1#1")
	o.until("its progress", func() bool {
		j, err := o.store.Load(t.Context(), "f-1")
		if err != nil {
			t.Fatal(err)
		}
		held, err := o.scheduler.Held(t.Context(), j)
		return err == nil && held["render"].Reported().Value == `{"attempt":1}`
	})
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o.starts()
	o.began("begin f-1/render/1#2")
	o.finishes("f-1")
	j := o.end(t, "f-1")
	step, _ := j.Step("render")
	if j.ProcessState != makegood.JobProcessed || string(step.Forward.Output.Inline) != `"rendered by attempt 2"` || step.Forward.FailureCount != 1 {
		t.Errorf("got %s (%s) with %s after %d failures, want it rendered by attempt 2 after one", j.ProcessState, j.Reason, step.Forward.Output.Inline, step.Forward.FailureCount)
	}
	if got, want := o.ledger(), []string{"begin f-1/render/1#1", "begin f-1/render/1#2"}; !slices.Equal(got, want) {
		t.Errorf("the agents did %q, want %q", got, want)
	}
}

// SIGTERM: what runs comes to its end, and what was sent meanwhile waits for the next process.
func TestAnAgentOutsideLambdaDrains(t *testing.T) {
	o := newOutside(t)
	first := o.starts()
	o.submits("f-1")
	o.began("begin f-1/render/1#1")
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	o.finishes("f-1")
	if err := first.Wait(); err != nil {
		t.Errorf("the process ended with %v, want exit code 0", err)
	}
	if j := o.end(t, "f-1"); j.ProcessState != makegood.JobProcessed || j.FailureCount != 0 {
		t.Errorf("f-1: got %s after %d failures, want Processed after none", j.ProcessState, j.FailureCount)
	}
	o.submits("f-2")
	o.finishes("f-2")
	o.starts()
	if j := o.end(t, "f-2"); j.ProcessState != makegood.JobProcessed || j.FailureCount != 0 {
		t.Errorf("f-2: got %s after %d failures, want Processed after none", j.ProcessState, j.FailureCount)
	}
}

// The job is cancelled while its agent works. The agent hears of it by its next heartbeat, and stops.
func TestAnAgentOutsideLambdaIsWithdrawn(t *testing.T) {
	o := newOutside(t)
	o.starts()
	o.submits("f-1")
	o.began("begin f-1/render/1#1")
	if _, _, err := o.scheduler.Request(t.Context(), "f-1", job.Requested{Verb: makegood.VerbCancel, Request: "r1"}); err != nil {
		t.Fatal(err)
	}
	j := o.end(t, "f-1")
	want := []string{"begin f-1/render/1#1", "ended f-1/render/1#1: " + agent.ErrWithdrawn.Error()}
	if got := o.ledger(); j.ProcessState != makegood.JobCancelled || !slices.Equal(got, want) {
		t.Errorf("got %s, and the agent did %q, want Cancelled, and %q", j.ProcessState, got, want)
	}
}

// A message that comes twice, and one that comes late, run nothing.
func TestAMessageThatComesTwiceRunsOnceOutsideLambda(t *testing.T) {
	o := newOutside(t)
	o.submits("f-1")
	tasks := deployed.TasksQueue("payments")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	records, err := o.queues.Receive(ctx, tasks, 1)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %d tasks, %v", len(records), err)
	}
	for range 2 {
		if errs := o.queues.Send(t.Context(), tasks, queueMessage(records[0].Body)); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
	}
	if err := o.queues.Return(t.Context(), tasks, 0, records[0].ReceiptHandle); err != nil {
		t.Fatal(err)
	}
	o.starts()
	o.began("begin f-1/render/1#1")
	o.until("the queue is empty", func() bool {
		depth, err := o.queues.Depth(t.Context(), tasks)
		return err == nil && depth.Waiting+depth.InFlight == 0
	})
	o.finishes("f-1")
	j := o.end(t, "f-1")
	found, err := o.store.Look(t.Context(), store.Slot{Agent: "payments", Job: "f-1", Birth: j.Birth, Step: "render"}, 1, time.Now(), time.Now())
	if err != nil || found.Claim.Attempt != 1 {
		t.Errorf("the claim is %+v, %v", found, err)
	}
	if got, want := o.ledger(), []string{"begin f-1/render/1#1"}; !slices.Equal(got, want) {
		t.Errorf("the agent did %q, want %q", got, want)
	}
}
