package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/job"
)

// long makes a task of one that may take six hours, and be silent for a minute.
func long(task *makegood.Task) {
	task.Timeout, task.Heartbeat = 6*makegood.Hour, makegood.Minute
}

// An agent works for six hours in parts of 20 s. Each heartbeat lets it be silent for a minute, and the last ones end with
// the timeout.
func TestAnAttemptLivesByItsHeartbeatsUntilItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		var w *world
		w = newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			began = time.Now()
			for ctx.Err() == nil {
				silence := time.Until(agentctx.CompleteBy(ctx))
				if left := time.Until(began.Add(task.Timeout.Std())); silence > min(time.Minute, left) {
					t.Fatalf("after %v silence may last %v, want %v at most", time.Since(began), silence, min(time.Minute, left))
				}
				if stored := w.table.slot("j/pay").CompleteBy; !stored.Equal(agentctx.CompleteBy(ctx)) {
					t.Fatalf("CompleteBy is %v, and stored as %v", agentctx.CompleteBy(ctx), stored)
				}
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
					if err := agent.Heartbeat(ctx); err != nil {
						t.Fatalf("heartbeat after %v: %v", time.Since(began), err)
					}
				}
			}
			return nil, context.Cause(ctx)
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay", long)))
		if lasted := time.Since(began); lasted != 6*time.Hour-time.Second {
			t.Errorf("it went on for %v, want 6h but for the margin", lasted)
		}
		w.wantFailure("pay", job.StepError{Message: "out of time: context deadline exceeded", Retryable: true, Applied: makegood.AppliedUnknown, Kind: "timeout"})
	})
}

// One that falls silent ends a minute later, not hours.
func TestSilencePastTheHeartbeatEndsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			time.Sleep(40 * time.Second)
			if err := agent.Heartbeat(ctx); err != nil {
				t.Errorf("heartbeat: %v", err)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		w.handle(t.Context(), w.task("pay", long))
		if lasted := time.Since(began); lasted != 99*time.Second {
			t.Errorf("it ended after %v, want 1m40s but for the margin", lasted)
		}
	})
}

// A loop over a million rows heartbeats at each. That is a write every ten seconds, and at most four while it may be silent.
func TestHeartbeatsInALoopAreFewWrites(t *testing.T) {
	for _, c := range []struct {
		heartbeat makegood.Duration
		writes    int
	}{
		{makegood.Minute, 60}, {20 * makegood.Second, 120}, {makegood.Hour, 60},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
				for range 6000 {
					time.Sleep(100 * time.Millisecond)
					if err := agent.Heartbeat(ctx); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
			w.handle(t.Context(), w.task("pay", long, func(task *makegood.Task) { task.Heartbeat = c.heartbeat }))
			if w.wantCounters(1, 0, 0, 1, 0, 0, 0); w.table.heartbeats != c.writes {
				t.Errorf("heartbeat %v: %d writes in ten minutes, want %d", c.heartbeat, w.table.heartbeats, c.writes)
			}
		})
	}
}

// The table is away for a while. What was not written is no heartbeat: the next one is written at once.
func TestAHeartbeatThatFailedIsNotHeldAgainstTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			time.Sleep(30 * time.Second)
			if err := agent.Heartbeat(ctx); !errors.Is(err, errDown) {
				t.Errorf("the first heartbeat: %v, want %v", err, errDown)
			}
			if err := agent.Heartbeat(ctx); err != nil {
				t.Errorf("the second heartbeat: %v", err)
			}
			if left := time.Until(agentctx.CompleteBy(ctx)); left != time.Minute {
				t.Errorf("%v left, want a minute", left)
			}
			return nil, nil
		})
		w.table.faults = []string{"", "unwritten"}
		w.handle(t.Context(), w.task("pay", long))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

// One call takes five hours, and the table is away for some of it.
func TestKeepAliveHeartbeatsForWorkThatCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			stop := agent.KeepAlive(ctx)
			defer stop()
			select {
			case <-time.After(5 * time.Hour):
				return json.RawMessage(`"rendered"`), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		w.table.faults = []string{"", "", "unwritten", "lost", "unwritten"}
		w.handle(t.Context(), w.task("pay", long))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
		if n := w.table.heartbeats; n < 880 || n > 910 {
			t.Errorf("%d heartbeats in five hours, want one each 20 s", n)
		}
	})
}

// The job is cancelled meanwhile. The call ends with its context, which says why.
func TestKeepAliveEndsWorkThatIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			defer agent.KeepAlive(ctx)()
			time.Sleep(time.Hour)
			w.table.unwanted("j/pay")
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, agent.ErrWithdrawn) {
				t.Errorf("the context ended because of %v, want withdrawn", cause)
			}
			return nil, agent.NotApplied(context.Cause(ctx))
		})
		w.handle(t.Context(), w.task("pay", long))
		w.wantFailure("pay", job.StepError{Message: agent.ErrWithdrawn.Error(), Retryable: true, Applied: makegood.AppliedNo})
	})
}
