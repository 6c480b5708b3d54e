package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// paid is a workflow that says what its input is; more asks for more.
const (
	paid = `
name: paid
input: {type: object, required: [total], properties: {total: {type: number, minimum: 1}}}
steps: [{name: first, agent: a, retry: {attempts: 1}}]`
	more = `
name: paid
input: {type: object, required: [total, customer]}
steps: [{name: first, agent: a, retry: {attempts: 1}}]`
)

func input(text string) json.RawMessage { return json.RawMessage(text) }

func TestAnInputThatDoesNotFitMakesNoJob(t *testing.T) {
	w := newWorld(t)
	c := w.define(paid)
	_, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: input(`{"total": 0}`)})
	var misfit *scheduler.MisfitError
	if !errors.As(err, &misfit) || !errors.Is(err, scheduler.ErrInvalid) {
		t.Fatalf("submit: %v, want a MisfitError", err)
	}
	if want := (makegood.Misfit{At: "/total", Why: "must be at least 1"}); len(misfit.Misfits) != 1 || misfit.Misfits[0] != want {
		t.Errorf("misfits %v, want %v", misfit.Misfits, want)
	}
	if want := "the input of job j does not fit workflow paid: /total must be at least 1"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if _, _, err := scheduler.Intent(c, scheduler.Submission{ID: "j", Input: input(`{}`)}, nil, w.now); !errors.As(err, &misfit) {
		t.Errorf("in a transaction: %v, want a MisfitError", err)
	}
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "paid", ID: "j", Input: input(`[]`)})
	if err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	if _, err := w.file.Load(t.Context(), "j"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("job j: %v, want none", err)
	}
	if _, created, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: input(`{"total": 1}`)}); err != nil || !created {
		t.Errorf("one that fits: created %v, %v", created, err)
	}
}

// The answer to a submission was lost, and the workflow asks for more by now: it is the same job all the same.
func TestASubmissionMadeAgainFindsItsJobWhateverTheWorkflowHasComeToSay(t *testing.T) {
	w := newWorld(t)
	before := w.define(paid)
	sub := scheduler.Submission{ID: "j", Definition: before.Hash, Input: input(`{"total": 1}`)}
	if _, _, err := w.s.Submit(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	sub.Definition = w.define(more).Hash
	j, created, err := w.s.Submit(t.Context(), sub)
	if err != nil || created || j.Definition != before.Hash {
		t.Errorf("again: created %v of %s, %v; want the job that is there", created, j.Definition, err)
	}
	sub.Input = input(`{"total": 2}`)
	var misfit *scheduler.MisfitError
	if _, _, err = w.s.Submit(t.Context(), sub); !errors.As(err, &misfit) {
		t.Errorf("with another input: %v, want a MisfitError", err)
	}
}

func TestAResubmitHoldsTheInputAgainstTheDefinitionThatTheJobWillHave(t *testing.T) {
	w := newWorld(t)
	c := w.define(paid)
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: input(`{"total": 1, "note": "` + strings.Repeat("x", limits.MaxInlineBytes) + `"}`)}); err != nil {
		t.Fatal(err)
	}
	claim := w.claim("j", "first")
	w.handle(w.failed("j", "first", claim, job.StepError{Message: "broken", Applied: makegood.AppliedNo}))
	w.define(more)
	const has = `the input of job j does not fit workflow paid: /customer is missing; give another with --input`
	for _, ask := range []struct {
		definition, input, want string
	}{
		{"", `{"total": "1"}`, "the input of job j does not fit workflow paid: /total must be number, and is string"},
		{job.CurrentDefinition, "", has},
		{job.CurrentDefinition, `{"total": 1}`, "the input of job j does not fit workflow paid: /customer is missing"},
		{job.CurrentDefinition, `{"total": 1, "customer": "` + strings.Repeat("y", limits.MaxInlineBytes) + `"}`, ""},
	} {
		r := job.Requested{Verb: makegood.VerbResubmit, Request: ask.definition + ask.input, Definition: ask.definition}
		if ask.input != "" {
			given, err := scheduler.CheckInput(input(ask.input))
			if err != nil {
				t.Fatal(err)
			}
			r.Input = given
		}
		_, v, err := w.s.Plan(t.Context(), "j", r)
		check(t, "plan", v, err, ask.want)
		_, v, err = w.s.Request(context.WithoutCancel(t.Context()), "j", r)
		check(t, "resubmit", v, err, ask.want)
	}
}

func check(t *testing.T, what string, v machine.Verdict, err error, want string) {
	t.Helper()
	wanted := machine.Refused
	if want == "" {
		wanted = machine.Applied
	}
	if err != nil || v.Kind != wanted || v.Reason != want {
		t.Errorf("%s: %s %q, %v; want %s %q", what, v.Kind, v.Reason, err, wanted, want)
	}
}
