package scheduler_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// What two steps read is read once, as far as 2 MB: eight outputs of 256 KB are kept, and what is more is read twice.
func TestWhatTwoStepsReadIsReadOnceAsFarAsThereIsRoom(t *testing.T) {
	const kept = 8
	for branches, reads := range map[int]int{kept: kept - 1, kept + 1: kept, kept + 3: kept + 2 + 2} {
		w := newWorld(t)
		var steps, outputs []string
		for _, name := range names(branches) {
			steps = append(steps, "  - {name: "+name+", agent: a, needs: []}\n")
			outputs = append(outputs, ".steps."+name+".output.id")
		}
		for _, name := range []string{"one", "other"} {
			steps = append(steps, "  - {name: "+name+", agent: b, needs: ["+strings.Join(names(branches), ", ")+
				"], with: \"${ ["+strings.Join(outputs, ", ")+"] | length }\"}\n")
		}
		w.submit(w.define("name: fan\nsteps:\n"+strings.Join(steps, "")), "j")
		last := w.branches("j", branches, list(makegood.MaxPayloadBytes))
		w.forget()
		if failed := w.handle(last); failed != nil || w.open("j", "other") != 1 {
			t.Errorf("wants again %v, attempt %d of the last step is out, want none, and the first", failed, w.open("j", "other"))
		}
		w.checkCalls(map[string]int{"Payload": reads})
	}
}

// A definition never changes: it is read once, however many jobs are moved by it.
func TestADefinitionIsReadOnce(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	for _, id := range []string{"i", "j", "k"} {
		w.submit(c, id)
		w.handle(w.done(id, "first"))
	}
	w.checkCalls(map[string]int{"Definition": 1})
}

// A small output lives in the job: it is written with it, and read with it.
func TestASmallOutputLivesInTheJob(t *testing.T) {
	for size, writes := range map[int]int{limits.MaxInlineBytes: 0, limits.MaxInlineBytes + 1: 1} {
		w := newWorld(t)
		w.submit(w.define(twoAgents), "j")
		reply := w.says("j", "first", w.claim("j", "first"), text(size, "x"))
		w.forget()
		w.handle(reply)
		w.checkCalls(map[string]int{"PutPayload": writes})
		if s, _ := w.job("j").Step("first"); (s.Forward.Output.Ref == "") != (writes == 0) {
			t.Errorf("%d bytes: got the reference %q, want one: %t", size, s.Forward.Output.Ref, writes > 0)
		}
	}
}

// The intent that a submitter stores themselves has no attempts, and is due at once: whoever does not hear that it is there
// finds it.
func TestAnIntentIsDueAtOnceAndHasNoAttempts(t *testing.T) {
	w := newWorld(t)
	c := w.define(twoAgents)
	job, payloads, err := scheduler.Intent(c, scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`)}, nil, w.now.Add(time.Microsecond))
	if err != nil || len(payloads) != 0 {
		t.Fatalf("got %d payloads, %v, want none", len(payloads), err)
	}
	again, _, err := scheduler.Intent(c, scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`)}, nil, w.now)
	if err != nil || job.Birth == "" || again.Birth == job.Birth {
		t.Errorf("got the births %q and %q, %v, want one of each", job.Birth, again.Birth, err)
	}
	if !job.CreatedAt.Equal(w.now) {
		t.Errorf("got it created at %s, want whole milliseconds, as times are stored: %s", job.CreatedAt, w.now)
	}
	if !job.CompleteBy.Equal(w.now) || job.Steps[0].Attempt != 0 || job.Transitions != 0 || job.ProcessState != makegood.JobPending {
		t.Errorf("got %+v, want no attempts, Pending, and its key now", job)
	}
}
