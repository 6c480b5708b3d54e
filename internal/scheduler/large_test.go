package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/mempayload"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// shelf is a payload store that counts what is kept anew, and may fail.
type shelf struct {
	mempayload.Store
	mu   sync.Mutex
	kept []makegood.Payload
	fail error
}

func (s *shelf) Keep(ctx context.Context, job string, p makegood.Payload) error {
	s.mu.Lock()
	err := s.fail
	if err == nil {
		s.kept = append(s.kept, p)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Store.Keep(ctx, job, p)
}

// breaks lets every call fail from now on; nil: none.
func (s *shelf) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// since are the payloads that were kept since it was asked last.
func (s *shelf) since() []makegood.Payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept
	s.kept = nil
	return kept
}

// withShelf is a world with a payload store, whose jobs keep theirs anew from an hour on.
func withShelf(t *testing.T) (*world, *shelf) {
	t.Helper()
	w, s := newWorld(t), &shelf{}
	w.use(func(c *scheduler.Config) { c.Large, c.LargeAge = s, time.Hour })
	return w, s
}

// write stores a payload for a job, and returns a value that refers to it.
func (s *shelf) write(t *testing.T, at payload.Place, text string) (makegood.Payload, json.RawMessage) {
	t.Helper()
	w, err := s.Store.Write(t.Context(), at, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p := makegood.Payload{SHA256: w.SHA256, Bytes: w.Bytes, By: at.By}
	return p, refersTo(t, p)
}

func refersTo(t *testing.T, p makegood.Payload) json.RawMessage {
	t.Helper()
	value, err := json.Marshal(map[string]makegood.Payload{"file": p})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// gone empties the store of what a job had.
func (s *shelf) gone(t *testing.T, job string) {
	t.Helper()
	if err := s.Drop(t.Context(), job, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// Whoever submits again because they have no answer gets the job that they made, though the payload that its input refers to is gone
// by now. A new job with such an input is refused, and so is another content under the same id.
func TestASubmissionRepeatedAfterItsPayloadIsGoneIsTheSameJob(t *testing.T) {
	w, s := withShelf(t)
	c := w.define(twoAgents)
	_, input := s.write(t, payload.Place{Job: "j"}, "a film")
	sub := scheduler.Submission{ID: "j", Definition: c.Hash, Input: input}
	if _, created, err := w.s.Submit(t.Context(), sub); err != nil || !created {
		t.Fatalf("the first: created %v, %v", created, err)
	}
	s.gone(t, "j")
	if j, created, err := w.s.Submit(t.Context(), sub); err != nil || created || j.ID != "j" {
		t.Errorf("again: got %s, created %v, %v, want the job that is there", j.ID, created, err)
	}
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "two", ID: "j", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	if failed := w.handle(w.raw(body)); failed != nil || w.s.Stats().Poisoned != 0 {
		t.Errorf("again by message: wants %v again, and %d are poison, want none", failed, w.s.Stats().Poisoned)
	}
	other := sub
	_, other.Input = s.write(t, payload.Place{Job: "x"}, "another film")
	for id, of := range map[string]scheduler.Submission{"j": other, "new": sub} {
		of.ID = id
		if _, _, err := w.s.Submit(t.Context(), of); !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "not there for this job") {
			t.Errorf("submission %s: got %v, want it refused", id, err)
		}
	}
}

// What somebody outside completes a step with, by message, may refer to what is not there. Then the step has failed, and was not done.
func TestACompletionByMessageWithAMissingPayloadDoesNotCount(t *testing.T) {
	w, s := withShelf(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
	w.handle(w.record("j", job.StepWaiting{Reply: w.by("j", "first", w.claim("j", "first"))}))
	_, p, err := job.ReadCompletionToken(machine.CompletionToken(w.job("j"), "first", false))
	if err != nil {
		t.Fatal(err)
	}
	missing := refersTo(t, makegood.Payload{SHA256: strings.Repeat("0a", 32), Bytes: 7})
	w.handle(w.record("j", job.StepCompleted{Place: p, Output: wire.Inline(missing)}))
	step, _ := w.job("j").Step("first")
	if step.Forward.State != job.Failed || !strings.Contains(step.Forward.Error.Message, "not there for this job") || !step.Forward.Unknown {
		t.Errorf("got %+v, want it failed because of what is missing", step.Forward)
	}
	_, there := s.write(t, payload.Place{Job: "j"}, "a film")
	if v := w.request("j", job.Requested{Verb: makegood.VerbResubmit, Request: "1"}); v.Kind != machine.Applied {
		t.Fatalf("resubmit: got %+v", v)
	}
	w.handle(w.record("j", job.StepCompleted{Place: p, Output: wire.Inline(there)}))
	if got := w.job("j").ProcessState; got != makegood.JobProcessed {
		t.Errorf("with one that is there: the job is %s", got)
	}
}

// So it is of what an agent replies with; and of what somebody asks for at a door, which is refused before anything is saved.
func TestWhatRefersToAMissingPayloadIsRefused(t *testing.T) {
	w, _ := withShelf(t)
	c := w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]")
	missing := refersTo(t, makegood.Payload{SHA256: strings.Repeat("0a", 32), Bytes: 7, By: "a"})
	w.submit(c, "replied")
	w.handle(w.says("replied", "first", w.claim("replied", "first"), missing))
	if j := w.job("replied"); j.ProcessState != makegood.JobError || !strings.Contains(j.Reason, "not there for this job") {
		t.Errorf("a reply: the job is %s: %s", j.ProcessState, j.Reason)
	}
	rev := w.job("replied").Rev
	input := &job.Payload{Inline: missing, Bytes: len(missing)}
	_, _, input1 := w.s.Request(t.Context(), "replied", job.Requested{Verb: makegood.VerbResubmit, Request: "1", Input: input})
	_, _, settled := w.s.Settle(t.Context(), "replied", job.Settled{Place: job.Place{Step: "first"}, Done: true, Output: *input})
	_, _, completed := w.s.Complete(t.Context(), "replied", job.StepCompleted{Place: job.Place{Step: "first"}, Output: *input})
	for what, err := range map[string]error{"an input": input1, "a settlement": settled, "a completion": completed} {
		if !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "agent a") {
			t.Errorf("%s: got %v, want it refused", what, err)
		}
	}
	if got := w.job("replied").Rev; got != rev {
		t.Errorf("the job was saved %d times by what was refused", got-rev)
	}
}

// A store that does not answer leaves open whether a payload is there: nothing is refused, and the reply comes again.
func TestAPayloadStoreThatIsDownRefusesNothing(t *testing.T) {
	w, s := withShelf(t)
	w.submit(w.define(twoAgents), "j")
	_, output := s.write(t, payload.Place{Job: "j", By: "a"}, "a film")
	reply := w.says("j", "first", w.claim("j", "first"), output)
	s.breaks(errors.New("no connection"))
	if failed := w.handle(reply); len(failed) != 1 || w.open("j", "first") != 1 {
		t.Errorf("wants %v again, and attempt %d is out, want the reply again", failed, w.open("j", "first"))
	}
	s.breaks(nil)
	if failed := w.handle(reply); failed != nil || w.open("j", "second") != 1 {
		t.Errorf("wants %v again, want the job to go on", failed)
	}
}

// What a job refers to is kept anew while anything happens to it: its input, what was its input, and its outputs. Once a day is
// enough; what has failed is tried again with the next event.
func TestPayloadsOfAJobThatLivesLongAreKept(t *testing.T) {
	w, s := withShelf(t)
	c := w.define("name: two\nonFailure: stop\nsteps: [{name: first, agent: a, undo: {action: back}}, {name: second, agent: b, retry: {attempts: 1}}]")
	before, input := s.write(t, payload.Place{Job: "j"}, "a film")
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: input}); err != nil {
		t.Fatal(err)
	}
	made, output := s.write(t, payload.Place{Job: "j", By: "a"}, "a cut")
	w.handle(w.says("j", "first", w.claim("j", "first"), output))
	w.handle(w.failed("j", "second", w.claim("j", "second"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	now, corrected := s.write(t, payload.Place{Job: "j"}, "another film")
	w.request("j", job.Requested{Verb: makegood.VerbResubmit, Request: "1", Input: &job.Payload{Inline: corrected, Bytes: len(corrected)}})
	s.since()
	poke := func() int {
		w.handle(w.record("j", job.DeadlinePassed{}))
		return len(s.since())
	}
	if got := poke(); got != 0 {
		t.Errorf("of a young job %d payloads are kept anew", got)
	}
	w.now = w.now.Add(time.Hour)
	s.breaks(errors.New("no connection"))
	poke()
	s.breaks(nil)
	w.handle(w.record("j", job.DeadlinePassed{}))
	kept := fmt.Sprint(s.since())
	for _, p := range []makegood.Payload{before, made, now} {
		if !strings.Contains(kept, fmt.Sprint(p)) {
			t.Errorf("after a store that was down %v is not kept: %s", p, kept)
		}
	}
	if got := poke(); got != 0 {
		t.Errorf("at the next event %d are kept once more", got)
	}
	w.now = w.now.Add(limits.FarKey)
	if got := poke(); got != 3 {
		t.Errorf("a day later %d are kept, want 3", got)
	}
}

// A value of earlier releases that no reference can be found in keeps none of the others from being kept anew.
func TestAValueThatCannotBeReadKeepsNoPayloadFromBeingKept(t *testing.T) {
	w, s := withShelf(t)
	w.submit(w.define(twoAgents), "j")
	p, value := s.write(t, payload.Place{Job: "j"}, "a film")
	j := w.job("j")
	j.Input = job.Payload{Inline: json.RawMessage(`{"` + limits.PayloadMark + `":"of an earlier release"}`)}
	j.Steps[0].Forward.Output = job.Payload{Inline: value}
	if err := w.file.Save(t.Context(), store.Change{Job: j, Seen: j.CompleteBy}); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.handle(w.deadline("j"))
	if kept := s.since(); len(kept) != 1 || kept[0] != p {
		t.Errorf("kept were %v, want %v", kept, p)
	}
}
