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
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// heldTask is a task that somebody else has claimed, and what was said of it.
type heldTask struct {
	agentrun.Held
	t        *testing.T
	said     []job.Event
	progress []string
}

func newHeld(t *testing.T, change ...func(*makegood.Task)) *heldTask {
	h := &heldTask{t: t}
	now := domain.Instant(time.Now())
	h.Task = makegood.Task{
		Job: "j", Workflow: "w", Step: "pay", Round: 1, Attempt: 2, Agent: "shop", Action: "pay", Input: json.RawMessage(`{}`), Key: "k",
		SentAt: now, StartBy: now, Timeout: 10 * makegood.Second, ReplyTo: "events", Birth: "b", Token: "1.t", ClaimUntil: now,
	}
	for _, c := range change {
		c(&h.Task)
	}
	// The engine's clock is an hour late, and nobody looks at it.
	h.Claim = job.Claim{Attempt: 2, LockedBy: "outside:x", StartedAt: now.Add(-time.Hour), CompleteBy: now.Add(10*time.Second - time.Hour)}
	h.Expires = time.Now().Add(domain.Silence(h.Task).Std())
	h.Heartbeat = func(_ context.Context, progress json.RawMessage) (time.Duration, error) {
		h.progress = append(h.progress, string(progress))
		return 10 * time.Second, nil
	}
	h.Reply = func(_ context.Context, body string) error {
		_, event, err := wire.DecodeEvent(body)
		h.said = append(h.said, event)
		return err
	}
	return h
}

// does has a task done without any store or queue.
func (h *heldTask) does(do handler) error {
	h.t.Helper()
	return agentrun.New(agentrun.Config{Handlers: []agent.Handler{do}}).Do(h.t.Context(), h.Held)
}

func TestATaskThatWasClaimedElsewhereIsDoneUnderItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t)
		err := h.does(func(context.Context, makegood.Task) (json.RawMessage, error) { return json.RawMessage(`1`), nil })
		if err != nil || len(h.said) != 1 {
			t.Fatalf("got %v, %v, want one reply", h.said, err)
		}
		done, ok := h.said[0].(job.StepSucceeded)
		want := job.Reply{Step: "pay", Attempt: 2, Token: "1.t", LockedBy: "outside:x", StartedAt: h.Claim.StartedAt}
		if !ok || done.Reply != want {
			t.Errorf("got %+v, want a success of %+v", h.said[0], want)
		}
	})
}

// What came when its time was over is not begun, and nothing is said of it; within the margin it is said that nothing was.
func TestATaskThatCameTooLateIsNotBegun(t *testing.T) {
	for left, said := range map[time.Duration]int{-time.Second: 0, 500 * time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(t)
			h.Expires = time.Now().Add(left)
			err := h.does(func(context.Context, makegood.Task) (json.RawMessage, error) {
				t.Error("it was begun")
				return nil, nil
			})
			if err != nil || len(h.said) != said {
				t.Fatalf("%v left: got %v, %v, want %d replies", left, h.said, err, said)
			}
			for _, event := range h.said {
				if failed, ok := event.(job.StepFailed); !ok || failed.Error.Applied != makegood.AppliedNo {
					t.Errorf("got %+v, want a failure that was not applied", event)
				}
			}
		})
	}
}

// A heartbeat gives as much time as who keeps the claim says, and never more than the attempt has in all.
func TestAHeartbeatIsKeptWhereTheClaimIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t, func(task *makegood.Task) { task.Heartbeat, task.Timeout = 10*makegood.Second, 25*makegood.Second })
		began := time.Now()
		var ended error
		err := h.does(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			for range 4 {
				select {
				case <-time.After(7 * time.Second):
				case <-ctx.Done():
				}
				if ended = agent.Progress(ctx, "on"); ended != nil {
					return nil, ended
				}
				if by := agentctx.CompleteBy(ctx); by.After(began.Add(25 * time.Second)) {
					t.Errorf("CompleteBy is %v after it began", by.Sub(began))
				}
			}
			return nil, nil
		})
		if err != nil || !errors.Is(ended, agent.ErrOver) || len(h.progress) != 3 || h.progress[0] != `"on"` {
			t.Errorf("got %v, %v, heartbeats %q, want three and the end", err, ended, h.progress)
		}
	})
}

// The engine is started again, three times for 15 s each: heartbeats are said again until it answers, and the answer is told
// when it is back. An agent that heartbeats does not notice, nor does one that is kept alive.
func TestAKeeperThatIsStartedAgainCostsNoAttempt(t *testing.T) {
	for name, does := range map[string]func(context.Context) error{
		"heartbeats": func(ctx context.Context) error {
			for range 100 {
				time.Sleep(time.Second)
				if err := agent.Heartbeat(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		"kept alive": func(ctx context.Context) error {
			defer agent.KeepAlive(ctx)()
			time.Sleep(100 * time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t, func(task *makegood.Task) { task.Timeout, task.Heartbeat = makegood.Hour, 30*makegood.Second })
				began, tries := time.Now(), 0
				away := func() bool { return time.Since(began)%(40*time.Second) > 25*time.Second }
				h.Heartbeat = func(context.Context, json.RawMessage) (time.Duration, error) {
					if tries++; away() {
						return 0, errDown
					}
					return 30 * time.Second, nil
				}
				reply := h.Reply
				h.Reply = func(ctx context.Context, body string) error {
					if away() {
						return errDown
					}
					return reply(ctx, body)
				}
				err := h.does(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) { return nil, does(ctx) })
				if err != nil || len(h.said) != 1 {
					t.Fatalf("got %v, %v, want one reply", h.said, err)
				}
				if _, ok := h.said[0].(job.StepSucceeded); !ok || tries > 60 {
					t.Errorf("got %+v after %d heartbeats, want a success", h.said[0], tries)
				}
			})
		})
	}
}

// The engine stays away: the work is told to stop when its time is up, and a heartbeat that is refused for good is not said again.
func TestAHeartbeatIsSaidAgainOnlyWhileThereIsTime(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		over   bool
		took   time.Duration
	}{"away": {errDown, true, 9 * time.Second}, "refused": {queue.Refused("no such thing"), false, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t)
				h.Heartbeat = func(context.Context, json.RawMessage) (time.Duration, error) { return 0, c.answer }
				began := time.Now()
				err := h.does(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
					err := agent.Heartbeat(ctx)
					if took := time.Since(began); err == nil || errors.Is(err, agent.ErrOver) != c.over || took != c.took {
						t.Errorf("got %v after %v, want %v after %v", err, took, c.answer, c.took)
					}
					return nil, err
				})
				if err != nil || len(h.said) != 1 {
					t.Errorf("got %v, %v, want a failure that is told", h.said, err)
				}
			})
		})
	}
}

// Who is told that the attempt is another's says nothing; who is told that nobody wants the result may.
func TestWhatAKeeperSaysOfAClaimIsHeeded(t *testing.T) {
	for answer, said := range map[error]int{store.ErrTaken: 0, store.ErrWithdrawn: 1} {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(t)
			h.Heartbeat = func(context.Context, json.RawMessage) (time.Duration, error) { return 5 * time.Second, answer }
			err := h.does(func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) { return nil, agent.Heartbeat(ctx) })
			if err != nil || len(h.said) != said {
				t.Errorf("%v: got %v, %v, want %d replies", answer, h.said, err, said)
			}
		})
	}
}

func TestATaskOfAnAgentThatIsNotHereIsAnError(t *testing.T) {
	h := newHeld(t, func(task *makegood.Task) { task.Agent = "elsewhere" })
	if err := h.does(nil); err == nil || len(h.said) > 0 {
		t.Errorf("got %v, want an error", err)
	}
}
