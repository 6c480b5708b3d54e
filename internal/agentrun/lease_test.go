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
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// At the margin the context ends as one that ran out of time does, and so do those made from it;
// there is still time to say so.
func TestAtTheMarginWorkStopsAndIsStillReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			if ctx.Err() != context.DeadlineExceeded || context.Cause(child) != context.DeadlineExceeded {
				t.Errorf("the context ended with %v, one made from it because of %v, want %v", ctx.Err(), context.Cause(child), context.DeadlineExceeded)
			}
			return nil, ctx.Err()
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantFailure("pay", job.StepError{Message: "out of time: context deadline exceeded", Retryable: true, Kind: makegood.KindTimeout, Applied: makegood.AppliedUnknown})
		if got := time.Since(began); got != 9*time.Second {
			t.Errorf("reported after %v, want 9s", got)
		}
	})
}

func TestTheMarginOfAShortAttemptIsATenthOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != 9*time.Millisecond {
				t.Errorf("%v to go, there is a deadline: %t, want 9ms", time.Until(deadline), ok)
			}
			return nil, nil
		})
		w.handle(t.Context(), w.task("pay", func(task *makegood.Task) { task.Timeout = 10 * makegood.Millisecond }))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

// Law 8: what comes back past CompleteBy, or at it, is not told, be it a success or an error.
func TestPastCompleteByNothingIsSaid(t *testing.T) {
	for _, outcome := range []error{nil, errors.New("no"), agent.Final(errors.New("no"))} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			began := time.Now()
			w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
				<-release // deaf to its context
				return nil, outcome
			})
			time.AfterFunc(10*time.Second, func() { close(release) })
			w.wantFailed(w.handle(t.Context(), w.task("pay")))
			w.wantCounters(1, 0, 0, 0, 0, 1, 0)
			w.wantSilence()
			if got := time.Since(began); got != 10*time.Second {
				t.Errorf("ended after %v, want 10s", got)
			}
		})
	}
}

// Whoever stops the process should not wait for the end of an attempt of an hour.
func TestAnAgentThatDoesNotStopIsGivenUpByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		var stopped time.Time
		w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
			stopped = time.Now()
			stop()
			<-release // deaf to its context
			return nil, nil
		})
		task := w.task("pay")
		task.Timeout = makegood.Duration(limits.MaxTimeout)
		w.wantFailed(w.handle(ctx, task), "0")
		if took := time.Since(stopped); took != agentrun.StopPatience {
			t.Errorf("given up after %v, want %v", took, agentrun.StopPatience)
		}
		for _, want := range []string{"did not stop", "level=ERROR", "agent=" + task.Agent, "step=pay"} {
			if !strings.Contains(w.log.String(), want) {
				t.Errorf("the log has no %q: %s", want, w.log.String())
			}
		}
		w.wantSilence()
		close(release)
	})
}

// The machine slept: the monotonic clock has time left, the wall clock has not.
func TestAWallClockPastCompleteBySilencesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept time.Duration
		w := newWorld(t, nil)
		w.runner = w.newRunner(handler(func(context.Context, makegood.Task) (json.RawMessage, error) {
			slept = 10 * time.Second
			return nil, nil
		}), func() time.Time { return time.Now().Add(slept) })
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantCounters(1, 0, 0, 0, 0, 1, 0)
		w.wantSilence()
	})
}

// The claim was answered past CompleteBy, and meanwhile somebody set the wall clock back.
func TestAWallClockThatIsSetBackBuysNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back time.Duration
		w := newWorld(t, nil)
		w.runner = w.newRunner(handler(succeed), func() time.Time { return time.Now().Add(back) })
		w.table.answer = func(context.Context, string) {
			time.Sleep(10 * time.Second)
			back = -time.Hour
		}
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantCounters(1, 0, 0, 0, 0, 1, 0)
		w.wantSilence()
	})
}

// What an agent leaves running has at least a context that has ended.
func TestTheContextEndsWithTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			go func() {
				<-ctx.Done()
				close(ended)
			}()
			return nil, nil
		})
		w.handle(t.Context(), w.task("pay"))
		<-ended
		if spent := time.Since(w.outbox.began); spent != 0 {
			t.Errorf("the context ended after %v, want at once", spent)
		}
	})
}

// An agent that is deaf to its context is left alone at CompleteBy; that costs its neighbours nothing.
func TestADeafAgentIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		w := newWorld(t, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			if task.Step == "deaf" {
				<-release
			}
			return nil, nil
		})
		w.wantFailed(w.handle(t.Context(), w.task("deaf"), w.task("pay")))
		w.wantCounters(2, 0, 0, 1, 0, 1, 0)
		if got := w.outbox.sent; len(got) != 1 || got[0].at != 50*time.Millisecond {
			t.Errorf("got %+v, want the neighbour's reply after 50ms", got)
		}
	})
}

// On Lambda the invocation may end before CompleteBy: work stops a second earlier, and an agent that
// does not is left alone half a second later, so that its neighbours' replies get out.
func TestTheEndOfTheInvocationEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		began := time.Now()
		w := newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			if task.Step == "deaf" {
				<-release
			}
			if deadline, _ := ctx.Deadline(); deadline.Sub(began) != 4*time.Second {
				t.Errorf("the context ends after %v, want 4s", deadline.Sub(began))
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		w.wantFailed(w.handle(ctx, w.task("deaf"), w.task("pay")))
		w.wantCounters(2, 0, 0, 0, 1, 1, 0)
		w.wantFailure("pay", job.StepError{Message: "out of time: context deadline exceeded", Retryable: true, Kind: makegood.KindTimeout, Applied: makegood.AppliedUnknown})
		if got := time.Since(began); got != 4500*time.Millisecond {
			t.Errorf("ended after %v, want 4.5s", got)
		}
	})
}

// The embedded engine is stopped: what was done is told, but being stopped is no failure.
func TestBeingStoppedIsNotReportedAsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			time.AfterFunc(time.Second, stop)
			<-ctx.Done()
			switch task.Step {
			case "done":
				return nil, nil
			case "refused":
				return nil, agent.Final(errors.New("no such account"))
			}
			return nil, ctx.Err()
		})
		w.wantFailed(w.handle(ctx, w.task("cut"), w.task("done"), w.task("refused")), "0")
		w.wantCounters(3, 0, 0, 1, 1, 0, 0)
		if got := w.handle(ctx, w.task("later")); len(got) != 1 || len(w.table.tried) != 3 {
			t.Errorf("after the stop: failed %q and %d claims, want one and 3", got, len(w.table.tried))
		}
	})
}

// Three heartbeats carry an attempt of 10 s over 25 s. Context, claim and CompleteBy move together.
func TestAHeartbeatMovesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := domain.Instant(time.Now())
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			for range 3 {
				time.Sleep(8 * time.Second)
				if err := agent.Heartbeat(child); err != nil {
					t.Fatalf("heartbeat after %v: %v", time.Since(began), err)
				}
				want := domain.Instant(time.Now().Add(10 * time.Second))
				if got := w.table.slot("j/pay").CompleteBy; !got.Equal(want) || !agentctx.CompleteBy(ctx).Equal(want) {
					t.Errorf("CompleteBy is stored as %v, told as %v, want %v", got, agentctx.CompleteBy(ctx), want)
				}
				if got, _ := child.Deadline(); !got.Equal(want.Add(-time.Second)) {
					t.Errorf("the context's deadline is %v, want a second before %v", got, want)
				}
			}
			<-child.Done()
			if spent := time.Since(began); spent != 33*time.Second {
				t.Errorf("the context ended after %v, want 33s", spent)
			}
			return nil, nil
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

// The Scheduler looks when the CompleteBy that it saw has passed, so none may move it back. The simulation found that one of an agent whose clock was set back did (seed 800).
func TestAHeartbeatNeverMovesCompleteByBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back time.Duration
		w := newWorld(t, nil)
		w.runner = w.newRunner(handler(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			first := w.table.slot("j/pay").CompleteBy
			back = -time.Hour
			if err := agent.Heartbeat(ctx); err != nil {
				t.Errorf("heartbeat: %v", err)
			}
			if got := w.table.slot("j/pay").CompleteBy; !got.Equal(first) {
				t.Errorf("got CompleteBy %v, want %v as before", got, first)
			}
			return nil, nil
		}), func() time.Time { return time.Now().Add(back) })
		w.handle(t.Context(), w.task("pay"))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

// The job is cancelled while the attempt runs. It learns of it at its heartbeat, has the time to
// stop tidily, and what it says then is told.
func TestAWithdrawnAttemptIsStoppedAndStillReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			time.Sleep(8 * time.Second)
			w.table.unwanted("j/pay")
			err := agent.Heartbeat(ctx)
			if !errors.Is(err, agent.ErrWithdrawn) || context.Cause(ctx) != agent.ErrWithdrawn || ctx.Err() != context.Canceled {
				t.Errorf("heartbeat: %v, context: %v because of %v, want withdrawn", err, ctx.Err(), context.Cause(ctx))
			}
			if again := agent.Heartbeat(ctx); !errors.Is(again, agent.ErrWithdrawn) || w.table.heartbeats != 1 {
				t.Errorf("the second heartbeat: %v after %d calls of the store, want withdrawn after one", again, w.table.heartbeats)
			}
			time.Sleep(8 * time.Second)
			return nil, agent.NotApplied(err)
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantFailure("pay", job.StepError{Message: agent.ErrWithdrawn.Error(), Retryable: true, Applied: makegood.AppliedNo})
	})
}

// An unwanted attempt cannot go past the end that was set for it, however many heartbeats it sends.
func TestAWithdrawnAttemptEndsWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		began := time.Now()
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			w.table.unwanted("j/pay")
			time.Sleep(8 * time.Second)
			if err := agent.Heartbeat(ctx); !errors.Is(err, agent.ErrWithdrawn) {
				t.Errorf("heartbeat: %v, want withdrawn", err)
			}
			if got := agentctx.CompleteBy(ctx); got.Sub(domain.Instant(began)) != 10*time.Second {
				t.Errorf("CompleteBy is %v after the claim, want 10s", got.Sub(began))
			}
			time.Sleep(3 * time.Second)
			return nil, nil
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("ended after %v, want 10s", got)
		}
		w.wantSilence()
		time.Sleep(time.Minute) // virtual: the agent that was left alone comes to its end
	})
}

// The attempt was given up by the Supervisor; another holds the step. Nothing is said any more.
func TestAReplacedAttemptIsStoppedAndSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			w.table.heldBy("j/pay", "i-2:x", 4)
			if err := agent.Heartbeat(ctx); err != agent.ErrOver || context.Cause(ctx) != agent.ErrOver {
				t.Errorf("heartbeat: %v, cause: %v, want over", err, context.Cause(ctx))
			}
			return nil, nil
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantCounters(1, 0, 0, 0, 0, 1, 0)
		w.wantSilence()
	})
}

// A heartbeat that cannot be written changes nothing: the deadline stays, and the next may succeed.
func TestAHeartbeatThatFailsLeavesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			for _, fault := range []string{"unwritten", "lost"} {
				w.table.faults = []string{fault}
				if err := agent.Heartbeat(ctx); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "job j, step pay, attempt 3") {
					t.Errorf("%s: got %v, want the store's error, with the attempt's name", fault, err)
				}
				if deadline, _ := ctx.Deadline(); deadline.Sub(began) != 9*time.Second || ctx.Err() != nil {
					t.Errorf("%s: the deadline is after %v, %v, want 9s", fault, deadline.Sub(began), ctx.Err())
				}
			}
			return nil, agent.Heartbeat(ctx)
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

func TestAHeartbeatAfterTheEndIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			<-ctx.Done()
			err := agent.Heartbeat(ctx)
			if !errors.Is(err, agent.ErrOver) || !errors.Is(err, context.DeadlineExceeded) || w.table.heartbeats != 0 {
				t.Errorf("got %v after %d calls of the store, want that the attempt is over, and none", err, w.table.heartbeats)
			}
			return nil, err
		})
		w.handle(t.Context(), w.task("pay"))
		w.wantCounters(1, 0, 0, 0, 1, 0, 0)
	})
}

// The store answers a heartbeat when the margin has begun. The context has ended and stays so, but
// CompleteBy has moved, and so has the time in which to reply.
func TestAHeartbeatAnsweredTooLateStillMovesCompleteBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			w.table.answer = func(context.Context, string) { time.Sleep(9500 * time.Millisecond) }
			if err := agent.Heartbeat(ctx); !errors.Is(err, agent.ErrOver) {
				t.Errorf("got %v, want over", err)
			}
			return nil, nil
		})
		w.handle(t.Context(), w.task("pay", func(task *makegood.Task) { task.Timeout = 10 * makegood.Second }))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	})
}

// Nobody claims a shared attempt, so there is nothing that a heartbeat could move. To say so at once
// and finally is better than to let the step run out of time at every attempt.
func TestASharedAttemptHasNoHeartbeat(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
		return nil, agent.Heartbeat(ctx)
	})
	w.handle(t.Context(), w.task("pay", shared))
	w.wantFailure("pay", job.StepError{
		Message: "the step is not exclusive, so its attempts are not claimed, and their CompleteBy cannot move", Applied: makegood.AppliedUnknown,
	})
}
