package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
)

type order struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	To       struct {
		City string `json:"city"`
	} `json:"to"`
}

type booked struct {
	ID string `json:"id"`
}

func book(_ context.Context, in order) (booked, error) { return booked{ID: "b-" + in.SKU}, nil }

func unbook(context.Context, order, *booked) error { return nil }

func TestAnActionGetsItsInputAndGivesItsOutput(t *testing.T) {
	a := agent.New("shop", agent.Do("book", func(ctx context.Context, in order) (order, error) {
		if key := agent.TaskOf(ctx).Key; key != "j/book/1" {
			t.Errorf("key %q, want j/book/1", key)
		}
		in.Quantity++
		return in, nil
	}))
	task := makegood.Task{Action: "book", Key: "j/book/1", Input: json.RawMessage(`{"sku":"<a&b>","quantity":1,"to":{"city":"Ulm"},"other":true}`)}
	got, err := a.Handle(t.Context(), task)
	want := `{"sku":"<a&b>","quantity":2,"to":{"city":"Ulm"}}`
	if string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestWhatCannotBeHandledIsFinalAndSurelyNotAppliedAndSaysWhy(t *testing.T) {
	lenient := agent.New("shop", agent.Do("book", book).Undo("unbook", unbook))
	strict := lenient.Strict()
	undo := &makegood.UndoTask{Outcome: makegood.OutcomeDone, Output: json.RawMessage(`{"id":7}`)}
	for _, c := range []struct {
		name string
		of   *agent.Agent
		task makegood.Task
		want string
	}{
		{"unknown action", lenient, makegood.Task{Action: "boook"}, `agent shop has no action "boook", only book, unbook`},
		{"wrong type", lenient, makegood.Task{Action: "book", Input: json.RawMessage(`{"quantity":"two"}`)}, "input.quantity: is a JSON string, want a whole number (int)"},
		{"wrong type inside", lenient, makegood.Task{Action: "book", Input: json.RawMessage(`{"to":{"city":[]}}`)}, "input.to.city: is a JSON array, want a string"},
		{"wrong type of all", lenient, makegood.Task{Action: "book", Input: json.RawMessage(`[]`)}, "input: is a JSON array, want an object"},
		{"unknown field", strict, makegood.Task{Action: "book", Input: json.RawMessage(`{"skuu":"a"}`)}, `input: unknown field "skuu"`},
		{"two values", lenient, makegood.Task{Action: "book", Input: json.RawMessage(`{} {}`)}, "input: more text follows the JSON value"},
		{"undo as a step", lenient, makegood.Task{Action: "unbook"}, `action "unbook" of agent shop undoes; it cannot be a step of its own`},
		{"wrong output", lenient, makegood.Task{Action: "unbook", Undo: undo}, "output of the step.id: is a JSON number, want a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.of.Handle(t.Context(), c.task)
			want := makegood.StepError{Message: c.want, Applied: makegood.AppliedNo}
			if err == nil || agent.Failure(err) != want {
				t.Errorf("got %v, want %+v", err, want)
			}
		})
	}
}

func TestAMissingInputReadsAsNull(t *testing.T) {
	a := agent.New("shop", agent.Do("book", book)).Strict()
	got, err := a.Handle(t.Context(), makegood.Task{Action: "book"})
	if want := `{"id":"b-"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// An undo is told the output of a step that was done, even if that was null, and nothing of one
// whose outcome is unknown, whatever the message holds.
func TestAnUndoKnowsTheOutputOnlyOfAStepThatWasDone(t *testing.T) {
	for _, c := range []struct {
		outcome makegood.Outcome
		output  string
		want    string
	}{
		{makegood.OutcomeDone, `{"id":"b-1"}`, "b-1"},
		{makegood.OutcomeDone, `null`, ""},
		{makegood.OutcomeUnknown, `null`, "nil"},
		{makegood.OutcomeUnknown, `{"id":"b-1"}`, "nil"},
	} {
		got := "not called"
		undo := func(_ context.Context, _ order, done *booked) error {
			if got = "nil"; done != nil {
				got = done.ID
			}
			return nil
		}
		task := makegood.Task{Action: "unbook", Undo: &makegood.UndoTask{Outcome: c.outcome, Output: json.RawMessage(c.output)}}
		for name, a := range map[string]*agent.Agent{
			"with its action": agent.New("shop", agent.Do("book", book).Undo("unbook", undo)),
			"alone":           agent.New("shop", agent.Undo("unbook", undo)),
		} {
			got = "not called"
			output, err := a.Handle(t.Context(), task)
			if got != c.want || output != nil || err != nil {
				t.Errorf("%s, %s %s: got %q, %s, %v, want %q", name, c.outcome, c.output, got, output, err, c.want)
			}
		}
	}
}

func TestAnActionMayUndoByACallOfItsOwn(t *testing.T) {
	a := agent.New("shop", agent.Do("cancel", func(ctx context.Context, in order) (booked, error) {
		return booked{ID: agent.TaskOf(ctx).Undo.ForwardKey}, nil
	}))
	got, err := a.Handle(t.Context(), makegood.Task{Action: "cancel", Undo: &makegood.UndoTask{ForwardKey: "j/book/1"}})
	if want := `{"id":"j/book/1"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// The action has run, so the failure is not one that spares the step its undo.
func TestAnOutputThatIsNoJSONIsFinalAndMayHaveBeenApplied(t *testing.T) {
	a := agent.New("shop", agent.Do("book", func(context.Context, order) (chan int, error) { return nil, nil }))
	_, err := a.Handle(t.Context(), makegood.Task{Action: "book"})
	if err == nil {
		t.Fatal("got no error")
	}
	if got := agent.Failure(err); got.Retryable || got.Applied != makegood.AppliedUnknown {
		t.Errorf("got %+v, want final and unknown", got)
	}
}

func TestAMistakeInTheProgramPanicsAtConstruction(t *testing.T) {
	var nothing func(context.Context, order) (booked, error)
	for want, mistake := range map[string]func(){
		"the name of an agent is missing":              func() { agent.New("", agent.Do("book", book)) },
		"agent shop: no actions":                       func() { agent.New("shop") },
		"agent shop: the name of an action is missing": func() { agent.New("shop", agent.Do("", book)) },
		`action "book" is there twice`:                 func() { agent.New("shop", agent.Do("book", book), agent.Do("book", book)) },
		`action "book" is there twice, by undo`:        func() { agent.New("shop", agent.Do("book", book).Undo("book", unbook)) },
		`action "book" has no function`:                func() { agent.New("shop", agent.Do("book", nothing)) },
		`action "unbook" has no function`: func() {
			agent.New("shop", agent.Do("book", book).Undo("unbook", nil))
		},
		"64 characters, the limit is 63": func() { agent.New("shop", agent.Do(strings.Repeat("a", 64), book)) },
	} {
		want, _, _ = strings.Cut(want, ", by")
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("got panic %q, want one with %q", got, want)
				}
			}()
			mistake()
			t.Errorf("no panic, want one with %q", want)
		}()
	}
}

func TestOutsideAnAttemptNothingIsKnownAndNothingFails(t *testing.T) {
	ctx := t.Context()
	if got := agent.TaskOf(ctx); got.Job != "" || got.Attempt != 0 {
		t.Errorf("task %+v, want none", got)
	}
	if got := agentctx.CompleteBy(ctx); !got.IsZero() {
		t.Errorf("CompleteBy %v, want none", got)
	}
	if err := agent.Heartbeat(ctx); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
}

// What runs an agent makes the context; the agent must not hide its lease behind one of its own.
func TestAnAgentKeepsTheLeaseOfItsRunner(t *testing.T) {
	a := agent.New("shop", agent.Do("book", func(ctx context.Context, _ order) (booked, error) {
		return booked{}, agent.Heartbeat(ctx)
	}))
	task := makegood.Task{Action: "book"}
	_, err := a.Handle(agentctx.NewContext(t.Context(), task, withdrawn{}), task)
	if !errors.Is(err, agent.ErrWithdrawn) {
		t.Errorf("got %v, want %v", err, agent.ErrWithdrawn)
	}
}
