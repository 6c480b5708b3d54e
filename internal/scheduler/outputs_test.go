package scheduler_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// text is a JSON text of so many bytes.
func text(bytes int, of string) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat(of, bytes-2) + `"`)
}

// says is the success of a claimed attempt, with an output. A stranger never got the task, so they have no token.
func (w *world) says(id, step string, c job.Claim, output json.RawMessage) record {
	w.t.Helper()
	by := w.by(id, step, c)
	if c.LockedBy == "stranger" {
		by.Token = ""
	}
	return w.record(id, job.StepSucceeded{Reply: by, Output: wire.Inline(output)})
}

// output reads the output of a step that is done.
func (w *world) output(id, step string) string {
	w.t.Helper()
	s, _ := w.job(id).Step(step)
	p := s.Forward.Output
	if p.Ref == "" {
		return string(p.Inline)
	}
	value, err := w.file.Payload(w.t.Context(), id, p.Ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(value)
}

// CMP-2: what an attempt says for the second time, or what a stranger says in its name, must not take the
// place of what was applied: neither in one batch, nor after a save that was lost.
func TestTheOutputThatWasAppliedIsTheOneThatIsStored(t *testing.T) {
	first, second := text(1000, "1"), text(2000, "2")
	for _, c := range []struct {
		name    string
		want    json.RawMessage
		batches func(w *world, claim job.Claim) [][]record
	}{
		{"a duplicate with another output in the same batch", first, func(w *world, claim job.Claim) [][]record {
			return [][]record{{w.says("j", "first", claim, first), w.says("j", "first", claim, second)}}
		}},
		{"a duplicate with another output later", first, func(w *world, claim job.Claim) [][]record {
			return [][]record{{w.says("j", "first", claim, first)}, {w.says("j", "first", claim, second)}}
		}},
		{"a stranger in the same batch", first, func(w *world, claim job.Claim) [][]record {
			stranger := job.Claim{Attempt: claim.Attempt, LockedBy: "stranger"}
			return [][]record{{w.says("j", "first", claim, first), w.says("j", "first", stranger, second)}}
		}},
		{"a stranger before", first, func(w *world, claim job.Claim) [][]record {
			stranger := job.Claim{Attempt: claim.Attempt, LockedBy: "stranger"}
			return [][]record{{w.says("j", "first", stranger, second), w.says("j", "first", claim, first)}}
		}},
		{"a save that is lost after its output was written", second, func(w *world, claim job.Claim) [][]record {
			saves := 0
			w.strike = func(op, _ string) faultstore.Effect {
				if op == "Save" {
					if saves++; saves == 1 {
						return faultstore.FailBefore
					}
				}
				return faultstore.None
			}
			return [][]record{{w.says("j", "first", claim, first)}, {w.says("j", "first", claim, second)}}
		}},
	} {
		w := newWorld(t)
		w.submit(w.define("name: two\nsteps: [{name: first, agent: a}, {name: second, agent: b}]"), "j")
		for _, batch := range c.batches(w, w.claim("j", "first")) {
			w.handle(batch...)
		}
		if got := w.output("j", "first"); got != string(c.want) {
			t.Errorf("%s: the output stored is %.10s... of %d bytes, want %.10s... of %d", c.name, got, len(got), c.want, len(c.want))
		}
	}
}

// WRK-10: an agent that is not ours may say that it is done with an output that nobody can keep. It was done:
// the step is a failure of unknown outcome, and is undone. Up to the limit the output is kept.
func TestAnOversizedOutputIsAFailureThatIsUndone(t *testing.T) {
	const most = makegood.MaxPayloadBytes
	for _, c := range []struct {
		bytes int
		state makegood.ProcessState
	}{
		{limits.MaxInlineBytes, makegood.JobProcessed},
		{limits.MaxInlineBytes + 1, makegood.JobProcessed},
		{most - 1, makegood.JobProcessed},
		{most, makegood.JobProcessed},
		{most + 1, makegood.JobUndoing},
		{2 * most, makegood.JobUndoing},
		{limits.MaxMessageBytes - 500, makegood.JobUndoing},
	} {
		w := newWorld(t)
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "j")
		claim := w.claim("j", "first")
		w.forget()
		if failed := w.handle(w.says("j", "first", claim, text(c.bytes, "x"))); failed != nil {
			t.Errorf("an output of %d bytes: wants again %v, want none", c.bytes, failed)
		}
		j := w.job("j")
		step, _ := j.Step("first")
		if j.ProcessState != c.state {
			t.Errorf("an output of %d bytes: the job is %s (%s), want %s", c.bytes, j.ProcessState, j.Reason, c.state)
			continue
		}
		if c.state == makegood.JobProcessed {
			if got := len(w.output("j", "first")); got != c.bytes {
				t.Errorf("an output of %d bytes: %d are kept", c.bytes, got)
			}
			continue
		}
		w.checkSends(send{"tasks-a", []string{"j"}})
		if !step.Forward.Unknown || step.Forward.Error.Applied != makegood.AppliedUnknown || step.Undo.State != job.Dispatched {
			t.Errorf("an output of %d bytes: unknown %t, applied %q, undo %v, want true, unknown, Dispatched",
				c.bytes, step.Forward.Unknown, step.Forward.Error.Applied, step.Undo.State)
		}
	}
}

// nested is a list in a list, so many of them.
func nested(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
}

// As deep as an input may be nested an output may be, too: what is deeper could not be told an undo.
func TestAnOutputThatIsNestedTooDeepIsAFailureThatIsUndone(t *testing.T) {
	for depth, state := range map[int]makegood.ProcessState{canonical.MaxDepth: makegood.JobProcessed, canonical.MaxDepth + 1: makegood.JobUndoing, 9_990: makegood.JobUndoing} {
		w := newWorld(t)
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "j")
		claim := w.claim("j", "first")
		w.forget()
		if failed := w.handle(w.says("j", "first", claim, nested(depth))); failed != nil {
			t.Errorf("%d deep: wants again %v, want none", depth, failed)
		}
		j := w.job("j")
		if step, _ := j.Step("first"); j.ProcessState != state || state == makegood.JobUndoing && !strings.Contains(step.Forward.Error.Message, "nested deeper than 500") {
			t.Errorf("%d deep: the job is %s, its step %+v, want %s", depth, j.ProcessState, step.Forward.Error, state)
		}
	}
}

// A release before took an output that is nested so deep that no message can hold it. Its undo cannot be sent, and no time mends that: the
// job comes before a person at once, with the reason.
func TestATaskThatHasNoFormOnTheWireIsRefused(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: two\nsteps: [{name: first, agent: a, undo: {action: back}}, {name: second, agent: b}]"), "j")
	if failed := w.handle(w.says("j", "first", w.claim("j", "first"), text(300, "x"))); failed != nil {
		t.Fatal(failed)
	}
	deep := nested(9_999)
	w.change("j", func(j *job.Job) {
		j.Steps[0].Forward.Output = job.Payload{Ref: "output#first#1#deep", Bytes: len(deep)}
	})
	if err := w.file.PutPayload(t.Context(), "j", "output#first#1#deep", deep); err != nil {
		t.Fatal(err)
	}
	why := job.StepError{Message: "no", Applied: makegood.AppliedNo}
	if failed := w.handle(w.failed("j", "second", w.claim("j", "second"), why)); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	j := w.job("j")
	if step, _ := j.Step("first"); j.ProcessState != makegood.JobError || step.Undo.Error == nil || step.Undo.Error.Kind != makegood.KindDispatch ||
		!strings.Contains(j.Reason, "it has no form on the wire: ") {
		t.Errorf("the job is %s (%s), the undo %+v, want it before a person, with why", j.ProcessState, j.Reason, step.Undo.Error)
	}
}

// A job id is used again after its retention, with the same input and the same output: the parts are written under other
// names than those of the first job, which expire before.
func TestPartsBelongToTheBirthOfTheirJob(t *testing.T) {
	refs := map[string]bool{}
	for range 2 {
		w := newWorld(t)
		c := w.define("name: two\nsteps: [{name: first, agent: a}, {name: second, agent: b}]")
		input := json.RawMessage(`{"text":` + string(text(1000, "i")) + `}`)
		if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: input}); err != nil {
			t.Fatal(err)
		}
		w.handle(w.says("j", "first", w.claim("j", "first"), text(1000, "o")))
		j := w.job("j")
		refs[j.Input.Ref], refs[j.Steps[0].Forward.Output.Ref] = true, true
	}
	if len(refs) != 4 || refs[""] {
		t.Errorf("got the names %v, want two of each job, and none of them the other's", refs)
	}
}

// A task has the input that its own expressions give: that of an undo those of the undo, and the output of what it undoes.
func TestTheTaskOfAnUndoHasItsOwnInput(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, with: {go: 1}, undo: {agent: b, action: back, with: {back: 2}}}]"), "j")
	w.handle(w.says("j", "first", w.claim("j", "first"), text(1000, "o")))
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbUndo, Request: "1"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tasks-a": `{"go":1}`, "tasks-b": `{"back":2}`} {
		records, err := w.local.Receive(t.Context(), name, 10)
		if err != nil || len(records) != 1 {
			t.Fatalf("%s: got %d tasks, %v, want one", name, len(records), err)
		}
		task, err := wire.DecodeTask(records[0].Body)
		if err != nil || string(task.Input) != want {
			t.Errorf("%s: got the input %s, %v, want %s", name, task.Input, err, want)
		}
		if task.Undo != nil && len(task.Undo.Output) != 1000 {
			t.Errorf("the undo is told an output of %d bytes, want that of its step, of 1000", len(task.Undo.Output))
		}
	}
}

// What somebody outside completes a step with stays in the job if it is small, and beside it if it is large.
func TestALargeOutputOfACompletionIsKeptBesideTheJob(t *testing.T) {
	for bytes, beside := range map[int]bool{limits.MaxInlineBytes: false, limits.MaxInlineBytes + 1: true} {
		w := newWorld(t)
		w.submit(w.define("name: one\nsteps: [{name: first, agent: a}]"), "j")
		w.handle(w.record("j", job.StepWaiting{Reply: w.by("j", "first", w.claim("j", "first"))}))
		_, p, err := job.ReadCompletionToken(machine.CompletionToken(w.job("j"), "first", false))
		if err != nil {
			t.Fatal(err)
		}
		output := text(bytes, "x")
		w.handle(w.record("j", job.StepCompleted{Place: p, Output: wire.Inline(output)}))
		step, _ := w.job("j").Step("first")
		if got := w.output("j", "first"); got != string(output) || (step.Forward.Output.Ref != "") != beside {
			t.Errorf("%d bytes: got %d, kept as %q, want all, beside the job: %v", bytes, len(got), step.Forward.Output.Ref, beside)
		}
	}
}

// A task that cannot be written, because the store does not give what belongs into it, comes with the next delivery of its event.
func TestAnUndoWhoseOutputCannotBeReadIsSentLater(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: two\nsteps: [{name: first, agent: a, undo: {action: back}}, {name: second, agent: b, retry: {attempts: 1}}]"), "bad")
	w.handle(w.says("bad", "first", w.claim("bad", "first"), text(limits.MaxInlineBytes+1, "x")))
	failure := w.failed("bad", "second", w.claim("bad", "second"), job.StepError{Message: "no", Applied: makegood.AppliedNo})
	w.tasks("a")
	w.failing("Payload", faultstore.FailBefore)
	if failed := w.handle(failure); len(failed) != 1 {
		t.Errorf("wants %v again, want the failure", failed)
	}
	w.strike = nil
	if failed := w.handle(failure); failed != nil {
		t.Errorf("wants %v again, want none", failed)
	}
	if got := w.tasks("a"); len(got) != 1 || got[0].Undo == nil || len(got[0].Undo.Output) != limits.MaxInlineBytes+1 {
		t.Errorf("got %d tasks, want the undo with the output of its step", len(got))
	}
}
