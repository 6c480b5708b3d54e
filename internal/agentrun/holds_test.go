package agentrun_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
)

// heldWorld is a world whose agent is asked whether it is paused.
func heldWorld(t *testing.T, calls *atomic.Int64, held func(agent, workflow string) (bool, error)) *world {
	w := newWorld(t, counted(calls))
	w.runner = agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{counted(calls)}, Claims: w.table, Queue: w.outbox, Tasks: "tasks-shop", Quarantine: "quarantine", Instance: "i-1",
		Held:   func(_ context.Context, t makegood.Task) (bool, error) { return held(t.Agent, t.Workflow) },
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	})
	return w
}

// A task of an agent that is paused is not claimed, its message is done with, and the Scheduler is told, under the token of the
// task: no failure, nothing that counts towards a dead letter.
func TestATaskOfAPausedAgentIsLetGo(t *testing.T) {
	var calls atomic.Int64
	var asked atomic.Value
	w := heldWorld(t, &calls, func(agent, workflow string) (bool, error) { asked.Store(agent + " " + workflow); return true, nil })
	w.wantFailed(w.handle(t.Context(), w.task("pay"), w.task("gift", shared)))
	w.wantCounters(0, 0, 0, 0, 0, 0, 0)
	if calls.Load() != 0 || len(w.table.tried) != 0 || asked.Load() != "shop w" {
		t.Errorf("got %d calls, %d claims, asked about %q, want none, none, shop w", calls.Load(), len(w.table.tried), asked.Load())
	}
	said := map[string]bool{}
	for _, e := range w.replies() {
		let, is := e.(job.StepHeld)
		said[let.Step] = is && let.Reply == job.Reply{Step: let.Step, Attempt: 3, Token: "1.t"}
	}
	if len(said) != 2 || !said["pay"] || !said["gift"] || w.runner.Stats().Held != 2 {
		t.Errorf("got %+v, held %d, want one word of each", w.replies(), w.runner.Stats().Held)
	}
}

// A word that could not be told leaves the message where it is.
func TestATaskThatIsLetGoComesAgainIfNobodyCouldBeTold(t *testing.T) {
	var calls atomic.Int64
	w := heldWorld(t, &calls, func(string, string) (bool, error) { return true, nil })
	w.outbox.refuse = func(int, string, queue.Message) error { return errDown }
	w.wantFailed(w.handle(t.Context(), w.task("pay")), "0")
	if calls.Load() != 0 || w.runner.Stats().Held != 0 {
		t.Errorf("got %d calls, held %d, want none", calls.Load(), w.runner.Stats().Held)
	}
}

// Where it cannot be known whether an agent is paused, it works: the Scheduler decides what is sent.
func TestWhereNothingIsKnownOfPausesAgentsWork(t *testing.T) {
	var calls atomic.Int64
	w := heldWorld(t, &calls, func(string, string) (bool, error) { return false, errors.New("no access") })
	w.wantFailed(w.handle(t.Context(), w.task("pay")))
	if calls.Load() != 1 || !strings.Contains(w.log.String(), "no access") {
		t.Errorf("got %d calls, and the log says %q", calls.Load(), w.log)
	}
}

// A task that is shared and whose time is over is dropped as ever, paused or not.
func TestALateTaskOfAPausedAgentIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		w := heldWorld(t, &calls, func(string, string) (bool, error) { return true, nil })
		task := w.task("gift", shared)
		time.Sleep(time.Hour)
		w.wantFailed(w.handle(t.Context(), task))
		w.wantCounters(0, 0, 0, 0, 0, 1, 0)
		w.wantSilence()
	})
}
