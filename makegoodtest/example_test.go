package makegoodtest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// What the agent below asks of a bank; in production this is a client of the bank's API.
type bank interface {
	Charge(ctx context.Context, key string) error
	Refund(ctx context.Context, forwardKey string) error
}

// fakeBank is a bank for tests.
type fakeBank struct{ *makegoodtest.Fake }

func (b fakeBank) Charge(ctx context.Context, key string) error { return b.Do(ctx, "charge", key) }

func (b fakeBank) Refund(ctx context.Context, forwardKey string) error {
	return b.Undo(ctx, "refund", forwardKey)
}

// payments is an agent of one's own.
func payments(b bank) *agent.Agent {
	return agent.New("payments", agent.Do("charge", func(ctx context.Context, amount int) (string, error) {
		return "charged", b.Charge(ctx, agent.TaskOf(ctx).Key)
	}).Undo("refund", func(ctx context.Context, amount int, _ *string) error {
		return b.Refund(ctx, agent.TaskOf(ctx).Undo.ForwardKey)
	}))
}

// purchase is a payment at a new bank for every run.
func purchase() makegoodtest.Case {
	return makegoodtest.Case{
		YAML:  []byte("name: purchase\nsteps:\n  - {name: charge, agent: payments, undo: {action: refund}}\n"),
		Input: 100,
		Services: func() makegoodtest.Services {
			b := fakeBank{makegoodtest.NewFake("bank").LoseAnswers("charge", 1)}
			return makegoodtest.Services{
				Agents: []agent.Handler{payments(b)},
				Ledger: b.Ledger,
				Check: func(job makegoodtest.Job) error {
					if n := b.Stands("charge"); n != 1 && job.ProcessState == makegood.JobProcessed {
						return fmt.Errorf("the card was charged %d times", n)
					}
					return nil
				},
			}
		},
	}
}

// To the end, once: the first answer of the bank is lost, so there are two attempts.
func purchaseIsPaid(t *testing.T) {
	job := makegoodtest.Run(t, purchase())
	if job.ProcessState != makegood.JobProcessed || job.Order() != "charge charge" {
		t.Errorf("got %s after %s", job.ProcessState, job.Order())
	}
}

// With the engine killed at every call, and every call failed.
func purchaseIsPaidOnce(t *testing.T) { makegoodtest.CrashEverywhere(t, purchase()) }

// On ten bad days.
func purchaseIsPaidOnBadDays(t *testing.T) { makegoodtest.Chaos(t, purchase(), 10) }

// Through its time by hand.
func purchaseIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := makegoodtest.Start(t, purchase())
		job.AdvanceTime(time.Minute)
		if err := job.Request(makegood.VerbUndo); err != nil {
			t.Fatal(err)
		}
		if end := job.Wait(); end.ProcessState != makegood.JobUndone {
			t.Errorf("got %s, want Undone", end.ProcessState)
		}
	})
}

// A workflow of one's own: in its test file these are four functions whose names begin with Test.
func Example() {
	_ = []func(*testing.T){purchaseIsPaid, purchaseIsPaidOnce, purchaseIsPaidOnBadDays, purchaseIsUndone}
}
