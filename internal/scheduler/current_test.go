package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Which definition of a workflow is current is one item of the table. Submissions of a second, by request and by message, read it
// once; a second after that was begun, they take what is current then.
func TestWhichDefinitionIsCurrentIsReadOnceASecond(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.CurrentFor = time.Second })
	old := w.define("name: one\nsteps: [{name: first, agent: a}]")
	jobs := 0
	submit := func(want string) {
		t.Helper()
		jobs++
		j, _, err := w.s.SubmitCurrent(t.Context(), "one", scheduler.Submission{ID: fmt.Sprint("r", jobs)})
		if err != nil || j.Definition != want {
			t.Errorf("request %d: got definition %.8s, %v, want %.8s", jobs, j.Definition, err, want)
		}
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: "one", ID: fmt.Sprint("m", jobs), Input: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		w.handle(w.raw(body))
		if j := w.job(fmt.Sprint("m", jobs)); j.Definition != want {
			t.Errorf("message %d: got definition %.8s, want %.8s", jobs, j.Definition, want)
		}
	}
	for range 3 {
		submit(old.Hash)
	}
	current := w.define("name: one\nsteps: [{name: first, agent: b}]")
	w.now = w.now.Add(time.Second - time.Nanosecond)
	submit(old.Hash)
	w.checkCalls(map[string]int{"CurrentDefinition": 1})
	w.now = w.now.Add(time.Nanosecond)
	for range 3 {
		submit(current.Hash)
	}
	w.checkCalls(map[string]int{"CurrentDefinition": 2})
}

// A workflow that was not known is looked for each time, and one that is asked for by a resubmit is read: a person has just
// published it.
func TestWhatMustBeNewIsRead(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.CurrentFor = time.Hour })
	if _, _, err := w.s.SubmitCurrent(t.Context(), "one", scheduler.Submission{ID: "j"}); !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("got %v, want that there is no such workflow", err)
	}
	w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]")
	if _, _, err := w.s.SubmitCurrent(t.Context(), "one", scheduler.Submission{ID: "j"}); err != nil {
		t.Errorf("got %v, want a job of the workflow that is known now", err)
	}
	w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	better := w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: b}]")
	j, verdict, err := w.s.Request(t.Context(), "j", job.Requested{Verb: "resubmit", Request: "r", Definition: job.CurrentDefinition})
	if err != nil || j.Definition != better.Hash {
		t.Errorf("got %.8s, %+v, %v, want the definition just published, %.8s", j.Definition, verdict, err, better.Hash)
	}
}
