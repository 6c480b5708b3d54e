package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// What a step was asked is evaluated, and is what its task had, with a mark in the place of a secret; nothing is kept for it.
func TestWhatAStepWasAskedIsEvaluated(t *testing.T) {
	w := newWorld(t)
	c := w.define(`
name: order
steps:
  - {name: charge, agent: a, with: {amount: "${ .input.amount }", text: "${ .input.text }", key: "Bearer ${ secret(\"bank\") }"}, undo: none}
`)
	submit := func(id string, bytes int) {
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: id, Definition: c.Hash, Input: amount(7, bytes)}); err != nil {
			t.Fatal(err)
		}
	}
	submit("j", 3)
	sent := w.inputOf("a", "charge")
	all, err := w.s.SentInputs(t.Context(), "j", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Inputs) == 0 || sent == "" {
		t.Fatalf("got %+v, sent was %q: want what charge was asked", all, sent)
	}
	in := all.Inputs[0]
	if !in.AsSent || in.Changed != "" || in.Problem != "" || in.OpenedAt == nil {
		t.Errorf("got %+v, want what was sent", in)
	}
	if strings.Contains(sent, "[secret") || !strings.Contains(string(in.Value), `[secret bank]`) || len(in.Secrets) != 1 {
		t.Errorf("got %s and %v, want a mark in the place of the secret", in.Value, in.Secrets)
	}
	later, err := w.s.SentInputs(t.Context(), "j", "", []time.Time{in.OpenedAt.Add(time.Second)})
	if err != nil || later.Inputs[0].AsSent || !strings.Contains(later.Inputs[0].Changed, "another definition or another input") {
		t.Errorf("got %+v, %v, want that it is as it would be asked now", later, err)
	}
	submit("k", makegood.MaxSentInputBytes)
	left, err := w.s.SentInputs(t.Context(), "k", "", nil)
	if err != nil || left.Inputs[0].Value != nil || left.Inputs[0].Bytes <= makegood.MaxSentInputBytes {
		t.Errorf("got %d bytes of %d, %v, want the value left out", len(left.Inputs[0].Value), left.Inputs[0].Bytes, err)
	}
	whole, err := w.s.SentInputs(t.Context(), "k", left.Inputs[0].Step, nil)
	if err != nil || len(whole.Inputs[0].Value) < makegood.MaxSentInputBytes {
		t.Errorf("got %d bytes, %v, want it whole", len(whole.Inputs[0].Value), err)
	}
}
