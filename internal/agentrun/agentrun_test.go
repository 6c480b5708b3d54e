package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
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
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

func succeed(context.Context, makegood.Task) (json.RawMessage, error) {
	return json.RawMessage(`{"ok":true}`), nil
}

func TestAnAttemptIsClaimedWorkedOnAndRepliedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := domain.Instant(time.Now())
		var w *world
		w = newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			claim := w.table.slot("j/pay")
			if claim.Attempt != 3 || !claim.StartedAt.Equal(began) || !claim.CompleteBy.Equal(began.Add(10*time.Second)) {
				t.Errorf("while it works the claim is %+v, want attempt 3 from %v for 10s", claim, began)
			}
			if deadline, _ := ctx.Deadline(); !deadline.Equal(began.Add(9 * time.Second)) {
				t.Errorf("the context ends at %v, want a second before CompleteBy", deadline)
			}
			if got := agentctx.CompleteBy(ctx); !got.Equal(claim.CompleteBy) {
				t.Errorf("CompleteBy %v, want %v", got, claim.CompleteBy)
			}
			if got := agent.TaskOf(ctx); got.Key != "j/pay/1" {
				t.Errorf("task %+v, want the one of key j/pay/1", got)
			}
			return json.RawMessage(` {"ok":true} `), nil
		})
		w.wantFailed(w.handle(t.Context(), w.task("pay")))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)

		replies := w.replies()
		want := job.StepSucceeded{Reply: w.saidBy("pay"), Output: wire.Inline([]byte(`{"ok":true}`))}
		if len(replies) != 1 || fmt.Sprint(replies[0]) != fmt.Sprint(want) {
			t.Errorf("got replies %+v, want %+v", replies, want)
		}
		if instance, nonce, _ := strings.Cut(want.LockedBy, ":"); instance != "i-1" || len(nonce) < 26 {
			t.Errorf("LockedBy %q, want i-1 and 128 random bits", want.LockedBy)
		}
		if got := w.outbox.sent[0]; got.Group != "j" || got.at != 0 {
			t.Errorf("got reply %+v, want one of group j, sent at once", got)
		}
	})
}

func TestNoOutputIsNull(t *testing.T) {
	w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, nil })
	w.handle(t.Context(), w.task("pay"))
	if got, want := fmt.Sprint(w.replies()), fmt.Sprint([]job.Event{job.StepSucceeded{Reply: w.saidBy("pay")}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFailureIsRepliedWithWhatIsKnownOfIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle handler
		want   job.StepError
	}{
		{"plain", fails(errors.New("no answer")), job.StepError{Message: "no answer", Retryable: true, Applied: makegood.AppliedUnknown}},
		{"final", fails(agent.Final(agent.NotApplied(errors.New("no such thing")))), job.StepError{Message: "no such thing", Applied: makegood.AppliedNo}},
		{"wait", fails(agent.RetryAfter(time.Minute, errors.New("busy"))), job.StepError{Message: "busy", Retryable: true, Applied: makegood.AppliedUnknown, RetryAfter: makegood.Minute}},
		{"control characters", fails(errors.New("\x00\x1b\uFFFE")), job.StepError{Message: "\x00\x1b\uFFFD", Retryable: true, Applied: makegood.AppliedUnknown}},
		{"panic", func(context.Context, makegood.Task) (json.RawMessage, error) { panic("boom") }, job.StepError{Message: "panic: boom (at agentrun/agentrun_test.go:83)", Retryable: true, Kind: makegood.KindPanic, Applied: makegood.AppliedUnknown}},
		{"exit", func(context.Context, makegood.Task) (json.RawMessage, error) { runtime.Goexit(); return nil, nil }, job.StepError{Message: "the agent ended its goroutine", Retryable: true, Applied: makegood.AppliedUnknown}},
		{"output that is no JSON", gives(`{"a":`), job.StepError{Message: "the output is not JSON in UTF-8", Applied: makegood.AppliedUnknown}},
		{"output that is no UTF-8", gives("\"\xff\""), job.StepError{Message: "the output is not JSON in UTF-8", Applied: makegood.AppliedUnknown}},
		{"output too large", gives(`"` + strings.Repeat("a", makegood.MaxPayloadBytes-1) + `"`), job.StepError{Message: "the output has 262145 bytes, the limit is 262144", Applied: makegood.AppliedUnknown}},
		{"output too deep", gives(strings.Repeat("[", 501) + strings.Repeat("]", 501)), job.StepError{Message: "the output is nested deeper than 500 (byte 501)", Applied: makegood.AppliedUnknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.handle)
			w.wantFailed(w.handle(t.Context(), w.task("pay")))
			w.wantFailure("pay", c.want)
			w.wantCounters(1, 0, 0, 0, 1, 0, 0)
		})
	}
}

func fails(err error) handler {
	return func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, err }
}

func gives(output string) handler {
	return func(context.Context, makegood.Task) (json.RawMessage, error) { return json.RawMessage(output), nil }
}

func TestAnOutputOfExactlyTheLimitIsTaken(t *testing.T) {
	for _, output := range []string{`"` + strings.Repeat("a", makegood.MaxPayloadBytes-2) + `"`, strings.Repeat("[", 500) + strings.Repeat("]", 500)} {
		w := newWorld(t, gives(output))
		w.handle(t.Context(), w.task("pay"))
		w.wantCounters(1, 0, 0, 1, 0, 0, 0)
	}
}

// One panics, one is poison, one fails and one is slow; the others do not notice.
func TestNoRecordHarmsItsNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			switch task.Step {
			case "panics":
				panic("boom")
			case "fails":
				return nil, errors.New("no")
			case "slow":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		})
		bodies := []string{"{poison}"}
		for _, step := range []string{"panics", "fails", "slow", "a", "b"} {
			body, err := wire.EncodeTask(w.task(step))
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, body)
		}
		w.wantFailed(w.handleBodies(t.Context(), bodies...))
		w.wantCounters(5, 0, 0, 2, 3, 0, 1)
	})
}

func TestWhatCanNeverBeUnderstoodGoesIntoQuarantineWithItsReason(t *testing.T) {
	for name, c := range map[string]struct{ body, reason string }{
		"no task":       {`{"v":1,"type":"Submitted"}`, "Submitted"},
		"foreign agent": {"", `a task for agent \"bank\", but here run only: shop`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, succeed)
			if c.body == "" {
				c.body, _ = wire.EncodeTask(w.task("pay", func(task *makegood.Task) { task.Agent = "bank" }))
			}
			w.wantFailed(w.handleBodies(t.Context(), c.body))
			w.wantCounters(0, 0, 0, 0, 0, 0, 1)
			if got := w.outbox.sent; len(got) != 1 || got[0].queue != "quarantine" || !strings.Contains(got[0].Body, c.reason) {
				t.Errorf("got %+v, want one message in quarantine with %s", got, c.reason)
			}
			if got := w.table.slot("j/pay"); got.Attempt != 0 {
				t.Errorf("claimed %+v, want no claim", got)
			}
		})
	}
}

func TestPoisonThatCannotBePutAwayIsDeliveredAgain(t *testing.T) {
	w := newWorld(t, succeed)
	w.outbox.refuse = func(int, string, queue.Message) error { return errDown }
	w.wantFailed(w.handleBodies(t.Context(), "{poison}"), "0")
	w.wantCounters(0, 0, 0, 0, 0, 0, 0)
}

func TestPayloadsAreNotLogged(t *testing.T) {
	w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
		return json.RawMessage(`"secret"`), nil
	})
	secret := func(task *makegood.Task) { task.Input = json.RawMessage(`"secret"`) }
	w.handle(t.Context(), w.task("pay", secret))
	w.runner = w.newRunner(handler(fails(errors.New("secret is no number"))), nil)
	w.handle(t.Context(), w.task("ship", secret))
	w.runner = w.newRunner(handler(func(context.Context, makegood.Task) (json.RawMessage, error) { panic("secret") }), nil)
	w.handle(t.Context(), w.task("mail", secret))
	if got := w.log.String(); strings.Contains(got, "secret") || strings.Count(got, "job=j workflow=w step=") != 4 {
		t.Errorf("got this log, want four entries that name job, workflow and step, and no secret:\n%s", got)
	}
}

func TestTwoAgentsOfOneNamePanic(t *testing.T) {
	defer func() {
		if got, want := recover(), `agentrun: two agents are called "shop"`; got != want {
			t.Errorf("got panic %v, want %s", got, want)
		}
	}()
	agentrun.New(agentrun.Config{Claims: &table{}, Queue: &outbox{}, Handlers: []agent.Handler{handler(succeed), handler(succeed)}})
}

// A Runner that lacks something could only fail later, with a task in its hands.
func TestAConfigurationThatLacksSomethingIsRefused(t *testing.T) {
	for name, config := range map[string]agentrun.Config{"Claims": {Queue: &outbox{}}, "Queue": {Claims: &table{}}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("without %s: got a Runner, want a panic", name)
				}
			}()
			agentrun.New(config)
		})
	}
}
