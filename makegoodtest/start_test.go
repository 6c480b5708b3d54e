package makegoodtest_test

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
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/makegoodtest"
)

// trip is a workflow of two steps, at an agent that does what do says.
func trip(change func(*makegood.Workflow), do func(ctx context.Context, service *makegoodtest.Fake) error) makegoodtest.Case {
	w := makegood.Workflow{Name: "trip", Steps: []makegood.Step{
		{Name: "flight", Agent: "travel", Undo: &makegood.Undo{Action: "cancel_flight"}},
		{Name: "hotel", Agent: "travel", Undo: &makegood.Undo{None: true}},
	}}
	if change != nil {
		change(&w)
	}
	return makegoodtest.Case{Workflow: w, Services: func() makegoodtest.Services {
		service := makegoodtest.NewFake("travel")
		return makegoodtest.Services{
			Ledger: service.Ledger,
			Agents: []agent.Handler{agent.New("travel",
				agent.Do("flight", func(ctx context.Context, _ any) (string, error) {
					return "seat 1A", service.Do(ctx, "flight", agent.TaskOf(ctx).Key)
				}),
				agent.Undo("cancel_flight", func(ctx context.Context, _ any, _ *string) error {
					return service.Undo(ctx, "cancel_flight", agent.TaskOf(ctx).Undo.ForwardKey)
				}),
				agent.Do("hotel", func(ctx context.Context, _ any) (any, error) { return nil, do(ctx, service) }),
			)},
			Check: func(job makegoodtest.Job) error {
				if n := service.Stands("flight"); job.ProcessState == makegood.JobCancelled && n != 0 {
					return errors.New("a flight is left of a trip that was cancelled")
				}
				return nil
			},
		}
	}}
}

func book(ctx context.Context, service *makegoodtest.Fake) error {
	return service.Do(ctx, "hotel", agent.TaskOf(ctx).Key)
}

// full is a hotel that has no room before some time has passed.
func full(d time.Duration) func(context.Context, *makegoodtest.Fake) error {
	var since time.Time
	return func(ctx context.Context, service *makegoodtest.Fake) error {
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < d {
			return agent.NotApplied(errors.New("the hotel is full"))
		}
		return book(ctx, service)
	}
}

// Hours of waiting pass in no time, and the job is there with its steps, attempts and outputs.
func TestAJobThatWaitsForHoursEndsAtOnce(t *testing.T) {
	waits := func(w *makegood.Workflow) {
		w.OnFailure = makegood.OnFailure{Action: makegood.FailureWait, Wait: 30 * makegood.Minute}
		w.Steps[1].Retry.Attempts = 1
	}
	began := time.Now()
	job := makegoodtest.Run(t, trip(waits, full(80*time.Minute)))
	if took := time.Since(began); took > 10*time.Minute {
		t.Errorf("it took %s", took)
	}
	if job.ProcessState != makegood.JobProcessed || job.Order() != "flight hotel hotel hotel hotel" || job.FailureCount != 3 {
		t.Errorf("got %s after %s with %d failures", job.ProcessState, job.Order(), job.FailureCount)
	}
	last := job.Attempts[len(job.Attempts)-1]
	if last.At < 90*time.Minute || last.At > 91*time.Minute || last.Answer != "done" || last.Key != "job/hotel/1" || last.Life != 1 {
		t.Errorf("the last attempt is %+v, want one after an hour and a half", last)
	}
	if got := string(job.Output("flight")); got != `"seat 1A"` {
		t.Errorf("output of flight: got %s", got)
	}
	if got := string(job.Output("hotel")); got != "null" {
		t.Errorf("output of hotel: got %s", got)
	}
}

// An output that does not fit into the job is given as well.
func TestALargeOutputIsGiven(t *testing.T) {
	large := strings.Repeat("x", 2*limits.MaxInlineBytes)
	c := makegoodtest.Case{
		YAML:  []byte("name: copy\nsteps:\n  - {name: copy, agent: copier}\n"),
		Input: large,
		Services: func() makegoodtest.Services {
			return makegoodtest.Services{Agents: []agent.Handler{agent.New("copier",
				agent.Do("copy", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }))}}
		},
	}
	if got := string(makegoodtest.Run(t, c).Output("copy")); got != `"`+large+`"` {
		t.Errorf("got %.20s and so on, of %d bytes", got, len(got))
	}
}

// Time stands still until the test lets it go on.
func TestAdvanceTimeGoesExactlySoFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retries := func(w *makegood.Workflow) {
			w.Steps[1].Retry = makegood.Retry{Attempts: 100, Backoff: makegood.Second, Max: makegood.Second}
		}
		job := makegoodtest.Start(t, trip(retries, full(time.Hour)))
		if got := job.Job(); got.ProcessState != makegood.JobProcessing || got.Order() != "flight hotel" {
			t.Errorf("at first: got %s after %s", got.ProcessState, got.Order())
		}
		time.Sleep(0)
		if got := job.Job(); got.Order() != "flight hotel" {
			t.Errorf("time did not stand still: %s", got.Order())
		}
		job.AdvanceTime(5 * time.Second)
		got := job.Job()
		if n := len(got.Attempts); n < 5 {
			t.Errorf("after five seconds there are %d attempts, want at least 5", n)
		}
		for _, a := range got.Attempts {
			if a.At > 5*time.Second {
				t.Errorf("attempt %d began %s after the start", a.Attempt, a.At)
			}
		}
		if err := job.Request(makegood.VerbCancel); err != nil {
			t.Fatal(err)
		}
		if end := job.Wait(); end.ProcessState != makegood.JobCancelled || !strings.HasSuffix(end.Order(), "cancel_flight") {
			t.Errorf("got %s after %s", end.ProcessState, end.Order())
		}
	})
}

// A killed engine goes on where it was, and the new life is distinguished.
func TestAKilledEngineIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, service *makegoodtest.Fake) error {
			if agent.TaskOf(ctx).Attempt == 1 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return book(ctx, service)
		}
		job := makegoodtest.Start(t, trip(nil, hangs))
		job.Kill()
		end := job.Wait()
		last := end.Attempts[len(end.Attempts)-1]
		if end.ProcessState != makegood.JobProcessed || end.Order() != "flight hotel hotel" || last.Life != 2 || last.At != 0 {
			t.Errorf("got %s after %s, the last attempt in life %d after %s", end.ProcessState, end.Order(), last.Life, last.At)
		}
	})
}

func TestARequestThatIsRefusedSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := makegoodtest.Start(t, trip(nil, book))
		job.Wait()
		if err := job.Request(makegood.VerbResubmit); err == nil || !strings.Contains(err.Error(), "resubmit is refused") {
			t.Errorf("got %v, want a refusal", err)
		}
		if err := job.Request(makegood.VerbUndo); err != nil {
			t.Error(err)
		}
		if end := job.Wait(); end.ProcessState != makegood.JobUndone {
			t.Errorf("got %s, want Undone", end.ProcessState)
		}
	})
}

func TestThePurchaseOfTheExample(t *testing.T) {
	t.Run("paid", purchaseIsPaid)
	t.Run("killed", purchaseIsPaidOnce)
	t.Run("bad days", purchaseIsPaidOnBadDays)
	t.Run("undone", purchaseIsUndone)
}
