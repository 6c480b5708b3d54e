package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
)

// What is reported in a loop is written now and then, and what was said since with the next heartbeat.
func TestTheLastProgressIsWrittenWithTheNextHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			claim := func() string { return w.table.slot("j/pay").Progress.Value }
			time.Sleep(11 * time.Second)
			for page := range 5 {
				if err := agent.Progress(ctx, page); err != nil {
					return nil, err
				}
				time.Sleep(time.Second)
			}
			if claim() != "0" || w.table.heartbeats != 1 {
				t.Errorf("stored is %q after %d writes, want the first of five after one", claim(), w.table.heartbeats)
			}
			time.Sleep(6 * time.Second)
			if err := agent.Heartbeat(ctx); err != nil {
				return nil, err
			}
			stored := w.table.slot("j/pay").Progress
			if stored.Value != "4" || !stored.At.Equal(time.Now().Add(-7*time.Second)) {
				t.Errorf("stored is %+v, want the last, and when it was reported", stored)
			}
			return nil, nil
		})
		w.handle(t.Context(), w.task("pay", long))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

// A step that says no heartbeat may report, too. Each of its heartbeats is a write as before, its reports are not.
func TestProgressNeedsNoHeartbeatInTheWorkflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			for page := range 30 {
				time.Sleep(time.Second)
				if err := agent.Progress(ctx, map[string]int{"page": page + 1}); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		w.handle(t.Context(), w.task("pay"))
		if w.wantCounters(1, 0, 0, 1, 0, 0, 0); w.table.heartbeats != 10 || w.table.slot("j/pay").Progress.Value != `{"page":30}` {
			t.Errorf("%d writes, and stored is %q", w.table.heartbeats, w.table.slot("j/pay").Progress.Value)
		}
	})
}

// What cannot be kept is refused before anything is written, by whoever reports it.
func TestProgressThatCannotBeKeptIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			for _, bad := range []struct {
				value any
				says  string
			}{
				{strings.Repeat("x", makegood.MaxProgressBytes-1), "progress: 513 bytes as JSON, the limit is 512"},
				{func() {}, "progress: json: unsupported type: func()"},
			} {
				err := agent.Progress(ctx, bad.value)
				if err == nil || err.Error() != bad.says || agent.Failure(err).Retryable {
					t.Errorf("got %v, want %q, final", err, bad.says)
				}
			}
			return nil, agent.Progress(ctx, strings.Repeat("x", makegood.MaxProgressBytes-2))
		})
		w.handle(t.Context(), w.task("pay"))
		if w.wantCounters(1, 0, 0, 1, 0, 0, 0); w.table.heartbeats != 1 {
			t.Errorf("%d writes, want one", w.table.heartbeats)
		}
	})
}

// Whoever reports hears that nobody wants the result, and the report is kept.
func TestProgressHearsThatTheAttemptIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			w.table.unwanted("j/pay")
			err := agent.Progress(ctx, "half")
			if !errors.Is(err, agent.ErrWithdrawn) || ctx.Err() == nil {
				t.Errorf("got %v, context %v, want withdrawn", err, ctx.Err())
			}
			return nil, err
		})
		w.handle(t.Context(), w.task("pay"))
		if got := w.table.slot("j/pay").Progress.Value; got != `"half"` {
			t.Errorf("stored is %q", got)
		}
	})
}

// What is reported is told and kept without the secrets of its task.
func TestProgressIsKeptWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			time.Sleep(11 * time.Second)
			return nil, agent.Progress(ctx, map[string]any{"asked": task.Input})
		})
		w.secret = "hunter22"
		task := w.task("pay", long, func(task *makegood.Task) {
			task.Input = json.RawMessage(`{"key":""}`)
			task.Secrets = []makegood.TaskSecret{{Name: "key", Path: "/key"}}
		})
		w.handle(t.Context(), task)
		if got := w.table.slot("j/pay").Progress.Value; got != `{"asked":{"key":"[secret key]"}}` {
			t.Errorf("stored is %s", got)
		}
	})
}
