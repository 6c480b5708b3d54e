package scheduler_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
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
	submit("k", limits.MaxSentInputBytes)
	left, err := w.s.SentInputs(t.Context(), "k", "", nil)
	if err != nil || left.Inputs[0].Value != nil || left.Inputs[0].Bytes <= limits.MaxSentInputBytes {
		t.Errorf("got %d bytes of %d, %v, want the value left out", len(left.Inputs[0].Value), left.Inputs[0].Bytes, err)
	}
	whole, err := w.s.SentInputs(t.Context(), "k", left.Inputs[0].Step, nil)
	if err != nil || len(whole.Inputs[0].Value) < limits.MaxSentInputBytes {
		t.Errorf("got %d bytes, %v, want it whole", len(whole.Inputs[0].Value), err)
	}
}

// The secrets of an input are told once each, in order. An input whose expression gives no value any more says why, and is not what
// was sent.
func TestAnInputThatCannotBeEvaluatedSaysWhy(t *testing.T) {
	w := newWorld(t)
	c := w.define(`
name: order
steps:
  - {name: charge, agent: a, needs: [], with: {a: "${ secret(\"z\") }", b: "${ secret(\"m\") }", c: "${ secret(\"b\") }", d: "${ secret(\"z\") }"}, undo: none}
  - {name: ship, agent: b, needs: [], with: "${ .input.amount + 1 }", undo: none}
`)
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: amount(7, 1)}); err != nil {
		t.Fatal(err)
	}
	j := w.job("j")
	j.Input.Inline = json.RawMessage(`{"amount":"seven"}`)
	if err := w.file.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}); err != nil {
		t.Fatal(err)
	}
	all, err := w.s.SentInputs(t.Context(), "j", "", nil)
	if err != nil || len(all.Inputs) != 2 {
		t.Fatalf("got %+v, %v, want both", all, err)
	}
	charge, ship := all.Inputs[0], all.Inputs[1]
	if got := strings.Join(charge.Secrets, " "); got != "b m z" || charge.Problem != "" {
		t.Errorf("got the secrets %q and the problem %q, want b, m and z, and none", got, charge.Problem)
	}
	if ship.AsSent || ship.Problem == "" || ship.Value != nil {
		t.Errorf("got %+v, want that it gives no value", ship)
	}
}

// Of a job that has asked for nothing yet the inputs are an empty list, in JSON too.
func TestAJobThatHasAskedForNothingHasNoInputs(t *testing.T) {
	w := newWorld(t)
	c := w.define("name: later\nsteps: [{name: first, agent: a}]")
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: amount(7, 1), StartAt: w.now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	all, err := w.s.SentInputs(t.Context(), "j", "", nil)
	if err != nil || all.Inputs == nil || len(all.Inputs) != 0 || all.Job != "j" {
		t.Errorf("got %+v, %v, want an empty list", all, err)
	}
}

// A submission that wants an answer where nobody is registered hears who is.
func TestASubmissionHearsWhoIsRegistered(t *testing.T) {
	for says, replies := range map[string][]string{"none is registered": nil, "registered are [shop desk]": {"shop", "desk"}} {
		w := newWorld(t)
		w.use(func(c *scheduler.Config) { c.Replies = replies })
		c := w.define("name: one\nsteps: [{name: first, agent: a}]")
		_, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: amount(7, 1), ReplyTo: "bank"})
		if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want that it says %q", err, says)
		}
	}
}

// An attempt that was sent again was made when it was sent first, and a save is counted.
func TestAnInputThatWasSentAgainIsOfItsFirstTime(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, startBy: 10s, timeout: 10s}]"), "j")
	born, saves := w.now, w.s.Stats().Saves
	w.handle(w.deadline("j"))
	all, err := w.s.SentInputs(t.Context(), "j", "first", nil)
	if err != nil || len(all.Inputs) != 1 || w.job("j").Steps[0].Forward.Resent != 1 || !all.Inputs[0].OpenedAt.Equal(born) {
		t.Errorf("got %+v, %v, want that it was made at %v", all, err, born)
	}
	if got := w.s.Stats().Saves - saves; got != 1 {
		t.Errorf("%d saves were counted, want one", got)
	}
}

// An attempt was made when its task was, and not when its agent began; also once it has ended.
func TestAnInputIsOfTheTimeAtWhichItsTaskWasMade(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
	born := w.now
	w.now = w.now.Add(5 * time.Second)
	done := w.done("j", "first")
	w.now = w.now.Add(5 * time.Second)
	w.handle(done)
	all, err := w.s.SentInputs(t.Context(), "j", "first", nil)
	if err != nil || len(all.Inputs) != 1 || !all.Inputs[0].OpenedAt.Equal(born) {
		t.Errorf("got %+v, %v, want that it was made at %v", all, err, born)
	}
}
