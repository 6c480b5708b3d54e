package scheduler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/wire"
)

// tasks are those that wait in the queue of an agent.
func (w *world) tasks(agent string) (all []makegood.Task) {
	w.t.Helper()
	records, err := w.local.Receive(w.t.Context(), "tasks-"+agent, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		task, err := wire.DecodeTask(r.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, task)
	}
	return all
}

// inputOf is what the last task of a step was asked with, of those that wait in the queue of an agent.
func (w *world) inputOf(agent, action string) string {
	w.t.Helper()
	input := ""
	for _, task := range w.tasks(agent) {
		if task.Action == action {
			input = string(task.Input)
		}
	}
	return input
}

// request asks for something, and says what came of it.
func (w *world) request(id string, r job.Requested) machine.Verdict {
	w.t.Helper()
	_, v, err := w.s.Request(w.t.Context(), id, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// amount is an input that says one, and as much text as is wanted.
func amount(n, bytes int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"amount":%d,"text":%q}`, n, strings.Repeat("x", bytes)))
}

// A step that comes after an error reads why the step before it failed, for the last time.
func TestAStepReadsWhyTheOneBeforeItFailed(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(`
name: order
steps:
  - {name: charge, agent: a, needs: [], retry: {attempts: 1}, onError: [{kind: declined, do: goto invoice}]}
  - {name: invoice, agent: b, only: onError, with: "${ .steps.charge.error }", undo: none}
`), "j")
	w.handle(w.failed("j", "charge", w.claim("j", "charge"), job.StepError{Message: "no cover", Kind: "declined"}))
	if got, want := w.inputOf("b", "invoice"), `{"applied":"unknown","kind":"declined","message":"no cover","retryable":false}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

const chargedAndShipped = `
name: order
onFailure: stop
steps:
  - {name: charge, agent: a, with: {amount: "${ .input.amount }"}, undo: {action: refund}}
  - {name: ship, agent: b, retry: {attempts: 1}}
`

// 100 were charged, and 100 are refunded, though somebody has corrected the input to 50 meanwhile: small or large, however often
// it was corrected, and by a Scheduler that knows only what is stored.
func TestAnUndoHasTheInputThatItsStepHad(t *testing.T) {
	for _, bytes := range []int{0, 1000} {
		w := newWorld(t)
		c := w.define(chargedAndShipped)
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: amount(100, bytes)}); err != nil {
			t.Fatal(err)
		}
		w.handle(w.done("j", "charge"))
		if got := w.inputOf("a", "charge"); got != `{"amount":100}` {
			t.Fatalf("got the task %s, want 100", got)
		}
		for i, n := range []int{50, 75} {
			w.handle(w.failed("j", "ship", w.claim("j", "ship"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
			corrected := amount(n, bytes)
			v := w.request("j", job.Requested{Verb: makegood.VerbResubmit, Request: fmt.Sprint(i), Input: &job.Payload{Inline: corrected, Bytes: len(corrected)}})
			if v.Kind != machine.Applied {
				t.Fatalf("resubmit with %d: got %+v", n, v)
			}
		}
		w.handle(w.done("j", "ship"))
		w.use(func(*scheduler.Config) {})
		w.request("j", job.Requested{Verb: makegood.VerbUndo, Request: "undo"})
		if got := w.inputOf("a", "refund"); got != `{"amount":100}` {
			t.Errorf("an input of %d bytes more: the undo was asked with %s, want 100", bytes, got)
		}
		if got := w.job("j"); len(got.Former) != 1 || got.Needs != job.LevelRedefined {
			t.Errorf("got %d former inputs and the level %d, want 1 and %d", len(got.Former), got.Needs, job.LevelRedefined)
		}
	}
}

// What a plan says of another input is what comes of it: whose key is used again for another thing, whose undo has the input of before,
// and that a step of unknown outcome must be settled first, unless it is not asked with the input at all.
func TestAPlanSaysWhatAnotherInputBrings(t *testing.T) {
	w := newWorld(t)
	c := w.define(strings.Replace(chargedAndShipped, "name: ship, agent: b,", `name: ship, agent: b, with: {to: "${ .steps.charge.output }"},`, 1) +
		"  - {name: pack, agent: b, needs: [charge], retry: {attempts: 1}}\n")
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: amount(100, 0)}); err != nil {
		t.Fatal(err)
	}
	w.handle(w.done("j", "charge"))
	ship, pack := w.claim("j", "ship"), w.claim("j", "pack")
	w.handle(w.failed("j", "ship", ship, job.StepError{Message: "no", Applied: makegood.AppliedUnknown}))
	w.handle(w.failed("j", "pack", pack, job.StepError{Message: "no", Applied: makegood.AppliedUnknown}))
	for _, bytes := range []int{0, 1000} {
		input := amount(50, bytes)
		r := job.Requested{Verb: makegood.VerbResubmit, Request: "1", Input: &job.Payload{Inline: input, Bytes: len(input)}}
		if _, v, err := w.s.Plan(t.Context(), "j", r); err != nil || v.Kind != machine.Refused || !strings.Contains(v.Reason, "the outcome of step pack is unknown") {
			t.Errorf("got %+v, %v, want it refused because of pack", v, err)
		}
	}
	if _, v, err := w.s.Settle(t.Context(), "j", job.Settled{Place: job.Place{Step: "pack"}, NotDone: true, Reason: "nothing was packed"}); err != nil || v.Kind != machine.Applied {
		t.Fatalf("settle: got %+v, %v", v, err)
	}
	input := amount(50, 0)
	plan, v, err := w.s.Plan(t.Context(), "j", job.Requested{Verb: makegood.VerbResubmit, Request: "1", Input: &job.Payload{Inline: input, Bytes: len(input)}})
	if err != nil || v.Kind != machine.Applied {
		t.Fatalf("plan: got %+v, %v", v, err)
	}
	got := fmt.Sprintf("%+v", plan.Steps)
	want := fmt.Sprintf("%+v", []makegood.PlannedStep{
		{Name: "charge", State: makegood.StepDone, Fate: makegood.FateStays, FormerInput: true},
		{Name: "ship", State: makegood.StepFailed, Fate: makegood.FateAgain},
		{Name: "pack", State: makegood.StepFailed, Fate: makegood.FateAgain, SameKey: true},
	})
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// The input that the job has is no other, whether it is in the job or kept beside it: what is unknown is asked for the same again.
func TestTheSameInputIsNoOther(t *testing.T) {
	for _, bytes := range []int{0, 1000} {
		w := newWorld(t)
		c := w.define("name: one\nonFailure: stop\nsteps: [{name: charge, agent: a, retry: {attempts: 1}}]")
		input := amount(100, bytes)
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: input}); err != nil {
			t.Fatal(err)
		}
		w.handle(w.failed("j", "charge", w.claim("j", "charge"), job.StepError{Message: "no", Applied: makegood.AppliedUnknown}))
		r := job.Requested{Verb: makegood.VerbResubmit, Request: "1", Input: &job.Payload{Inline: input, Bytes: len(input)}}
		if plan, v, err := w.s.Plan(t.Context(), "j", r); err != nil || v.Kind != machine.Applied || plan.Steps[0].SameKey {
			t.Errorf("%d bytes more: got the plan %+v, %+v, %v, want that it is asked for the same", bytes, plan, v, err)
		}
		if v := w.request("j", r); v.Kind != machine.Applied {
			t.Errorf("%d bytes more: got %+v, want it granted", bytes, v)
		}
		if j := w.job("j"); len(j.Former) != 0 || j.Needs != 0 {
			t.Errorf("%d bytes more: %d former inputs are kept, at level %d, want none", bytes, len(j.Former), j.Needs)
		}
	}
}

// A step that began by one of several is sent again, after the other was done too: it has the input that it had.
func TestAStepThatBeganByOneIsSentAgainAsItWas(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(`
name: race
steps:
  - {name: fast, agent: a, needs: []}
  - {name: slow, agent: a, needs: []}
  - {name: join, agent: b, needs: {any: [slow, fast]}, startBy: 1m, with: {fast: "${ .steps.fast.output }", slow: "${ .steps.slow.output }"}}
`), "j")
	w.handle(w.done("j", "fast"))
	first := w.inputOf("b", "join")
	w.handle(w.done("j", "slow"))
	w.now = w.now.Add(time.Minute)
	w.handle(w.deadline("j"))
	if again := w.inputOf("b", "join"); first != `{"fast":"ok","slow":null}` || again != first {
		t.Errorf("it was asked with %s, and again with %s", first, again)
	}
}

// An undo is a step that somebody is asked about, like any: where nobody of that name is registered, no job is born.
func TestAnUndoThatAsksSomebodyUnregisteredIsRefused(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Asked = []string{"clerk"} })
	for ask, ok := range map[string]bool{"clerk": true, "boss": false} {
		c := w.define(`
name: order
steps: [{name: charge, agent: a, undo: {agent: approval, action: ask, with: {choices: [refunded]}, waiting: {ask: clerk, escalate: {after: 1h, ask: ` + ask + `}}}}]
`)
		_, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "for-" + ask, Definition: c.Hash, Input: json.RawMessage(`{}`)})
		if refused := err != nil && strings.Contains(err.Error(), `no receiver is registered as "boss"`); ok && err != nil || !ok && !refused {
			t.Errorf("an undo that asks %s: got %v", ask, err)
		}
	}
}

// Nor is a job moved to a definition whose undo asks somebody whom nobody knows.
func TestAJobIsNotMovedToWhereAnUndoAsksSomebodyUnregistered(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Asked = []string{"clerk"} })
	asks := func(who string) string {
		undo := "{agent: approval, action: ask, with: {choices: [refunded]}, waiting: {ask: " + who + "}}"
		return strings.Replace(chargedAndShipped, "{action: refund}", undo, 1)
	}
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: w.define(asks("clerk")).Hash, Input: amount(100, 0)}); err != nil {
		t.Fatal(err)
	}
	w.handle(w.done("j", "charge"))
	w.handle(w.failed("j", "ship", w.claim("j", "ship"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	v := w.request("j", job.Requested{Verb: makegood.VerbResubmit, Request: "1", Definition: w.define(asks("boss")).Hash})
	if v.Kind != machine.Refused || !strings.Contains(v.Reason, `no receiver is registered as "boss"`) {
		t.Errorf("got %+v, want it refused", v)
	}
}

// What follows from moving a job to another definition goes by that one: the agent, and the expressions of its input.
func TestAJobThatIsMovedGoesOnByItsNewDefinition(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a, with: 1, retry: {attempts: 1}}]"), "j")
	w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	w.tasks("a")
	other := w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: b, with: 2, retry: {attempts: 1}}]")
	if v := w.request("j", job.Requested{Verb: makegood.VerbResubmit, Request: "1", Definition: job.CurrentDefinition}); v.Kind != machine.Applied {
		t.Fatalf("got %+v, want it moved", v)
	}
	if d, err := w.Depth(t.Context(), "tasks-b"); err != nil || d.Waiting != 1 {
		t.Fatalf("%d tasks wait for agent b, %v, want one", d.Waiting, err)
	}
	if got := w.tasks("b"); len(got) != 1 || string(got[0].Input) != "2" || w.job("j").Definition != other.Hash {
		t.Errorf("got %+v, want a task of agent b with 2", got)
	}
}
