package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/job"
)

// declined is an error as many programs have them: a pointer to what the remote service said.
type declined struct{ why string }

func (d *declined) Error() string { return d.why }

// spiteful is an error that panics where it is looked into.
type spiteful struct{ at string }

func (s spiteful) Error() string { return "spiteful" }

func (s spiteful) Unwrap() error {
	if s.at == "Unwrap" {
		panic("nothing in it")
	}
	return nil
}

func (s spiteful) Is(error) bool {
	if s.at == "Is" {
		panic("nothing like it")
	}
	return false
}

func (s spiteful) As(any) bool {
	if s.at == "As" {
		panic("no other")
	}
	return false
}

func hasSecret(task *makegood.Task) {
	task.Input = json.RawMessage(`{"key":""}`)
	task.Secrets = []makegood.TaskSecret{{Name: "key", Path: "/key"}}
}

// An action returns a nil pointer as its error, which is the mistake that Go is known for: it is the failure of the attempt, as a
// panic is, and ends nothing else. So is every error that cannot be looked into.
func TestAnErrorThatCannotBeReadIsAFailureAndEndsNothingElse(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a nil pointer", (*declined)(nil), "panic: the agent's error, a *agentrun_test.declined, cannot be read: runtime error: invalid memory address"},
		{"a nil pointer that is wrapped", agent.Final(fmt.Errorf("charge: %w", error((*declined)(nil)))), "charge: "},
		{"a nil pointer among others", errors.Join(errors.New("charge"), (*declined)(nil)), "panic: the agent's error, a *errors.joinError, cannot be read"},
		{"an Unwrap that panics", spiteful{"Unwrap"}, "panic: the agent's error, a agentrun_test.spiteful, cannot be read: nothing in it"},
		{"an As that panics", spiteful{"As"}, "cannot be read: no other"},
		{"an Is that panics", spiteful{"Is"}, "cannot be read: nothing like it"},
	} {
		for _, with := range []string{"no secret", "a secret"} {
			t.Run(c.name+", "+with, func(t *testing.T) {
				fails := func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, c.err }
				w := newWorld(t, fails)
				w.secret = "sk-9f3a7c21e5"
				task := w.task("pay")
				if with == "a secret" {
					hasSecret(&task)
				}
				w.wantFailed(w.handle(t.Context(), task, w.task("ship")))
				for _, said := range w.replies() {
					failed, is := said.(job.StepFailed)
					if !is || !strings.Contains(failed.Error.Message, c.want) || failed.Error.Applied != makegood.AppliedUnknown {
						t.Errorf("got %+v, want a failure of unknown outcome that says %q", said, c.want)
					}
				}
				w.wantCounters(2, 0, 0, 0, 2, 0, 0)

				h := newHeld(t)
				if err := h.does(fails); err != nil || len(h.said) != 1 {
					t.Errorf("claimed elsewhere: got %v, and said %v, want one failure", err, h.said)
				}
			})
		}
	}
}

// plain is what an error was, read once: nothing of what it says is lost.
func TestWhatAnErrorSaysIsReadWhole(t *testing.T) {
	err := agent.Final(agent.NotApplied(agent.RetryAfter(1500*makegood.Millisecond.Std(), agent.Kind("card_declined", &declined{"key sk-9f3a7c21e5 has no money"}))))
	w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) { return nil, err })
	w.secret = "sk-9f3a7c21e5"
	w.wantFailed(w.handle(t.Context(), w.task("pay", hasSecret)))
	want := agent.Failure(err)
	got := w.replies()[0].(job.StepFailed).Error
	if got.Retryable != want.Retryable || got.Kind != want.Kind || got.Applied != want.Applied || got.RetryAfter != want.RetryAfter {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if strings.Contains(got.Message, w.secret) || !strings.HasPrefix(got.Message, "key ") {
		t.Errorf("got %q, want what the agent said, and no secret", got.Message)
	}
}
