package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

func TestTheSameIDWithTheSameContentIsTheSameJob(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	c := w.define("name: one\nsteps: [{name: charge, agent: a}]")
	w.submit(c, "j", `{"amount": 10, "to": "x"}`)
	w.ends("j", makegood.JobProcessed)
	for _, input := range []string{`{"amount": 10, "to": "x"}`, `{"to":"\u0078","amount":10}`} {
		j, created, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(input)})
		if err != nil || created || j.ProcessState != makegood.JobProcessed {
			t.Errorf("%s: got %s, created %t, %v, want the Processed job that was there", input, j.ProcessState, created, err)
		}
	}
	if got := len(r.seen("")); got != 1 {
		t.Errorf("got %d attempts, want 1", got)
	}
}

func TestTheSameIDWithOtherContentIsRefusedWithBothHashes(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	one := w.define("name: one\nsteps: [{name: charge, agent: a}]")
	two := w.define("name: two\nsteps: [{name: charge, agent: a}]")
	first := w.submit(one, "j", `{"amount": 10}`)
	w.ends("j", makegood.JobProcessed)
	for name, other := range map[string]scheduler.Submission{
		"other input":    {ID: "j", Definition: one.Hash, Input: json.RawMessage(`{"amount": 11}`)},
		"other workflow": {ID: "j", Definition: two.Hash, Input: json.RawMessage(`{"amount": 10}`)},
		"large input":    {ID: "j", Definition: one.Hash, Input: json.RawMessage(text(1000))},
	} {
		_, created, err := w.engine.Submit(t.Context(), other)
		var mismatch *scheduler.MismatchError
		if created || !errors.As(err, &mismatch) {
			t.Fatalf("%s: got created %t, %v, want a mismatch", name, created, err)
		}
		if mismatch.Job != "j" || mismatch.Have != first.InputHash || mismatch.Got == mismatch.Have || mismatch.Got == "" ||
			!strings.Contains(err.Error(), mismatch.Have) || !strings.Contains(err.Error(), mismatch.Got) {
			t.Errorf("%s: got %v, want both hashes, %s being stored", name, err, first.InputHash)
		}
	}
	if j, err := w.engine.Job(t.Context(), "j"); err != nil || j.Workflow != "one" || string(j.Input.Inline) != `{"amount":10}` {
		t.Errorf("the job that was there: got %s of %s, %v, want its own", j.Input.Inline, j.Workflow, err)
	}
}

// A workflow that was changed meanwhile is no other content: a job keeps the definition that it
// started with.
func TestTheSameIDUnderANewDefinitionIsTheSameJob(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	old := w.define("name: one\nsteps: [{name: charge, agent: a}]")
	w.submit(old, "j", `{}`)
	w.ends("j", makegood.JobProcessed)
	changed := w.define("name: one\nsteps: [{name: charge, agent: a}, {name: ship, agent: a}]")
	j, created, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: changed.Hash, Input: json.RawMessage(`{}`)})
	if err != nil || created || j.Definition != old.Hash {
		t.Errorf("got created %t, definition %s, %v, want the job that was there, of %s", created, j.Definition, err, old.Hash)
	}
}

func TestAThousandIdenticalSubmissionsAtOnceAreOneJob(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	c := w.define("name: two\nsteps: [{name: charge, agent: a}, {name: ship, agent: a}]")
	var created atomic.Int64
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			_, first, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`)})
			if err != nil {
				t.Error(err)
			}
			if first {
				created.Add(1)
			}
		})
	}
	wg.Wait()
	w.ends("j", makegood.JobProcessed)
	if got := created.Load(); got != 1 {
		t.Errorf("%d submissions made the job, want 1", got)
	}
	if got, want := r.order(), "charge ship"; got != want {
		t.Errorf("got the actions %s, want %s", got, want)
	}
}

func TestASubmissionIsRefusedAtTheDoor(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("a")})
	c := w.define("name: one\nsteps: [{name: charge, agent: a}]")
	for name, test := range map[string]struct{ id, input, want string }{
		"empty id":        {"", `{}`, "the id is empty"},
		"slash in id":     {"a/b", `{}`, `the id "a/b"`},
		"long id":         {strings.Repeat("i", 129), `{}`, "the limit is 128"},
		"no input":        {"j", ``, "input of job j"},
		"not JSON":        {"j", `{"a":`, "input of job j"},
		"duplicate key":   {"j", `{"a":1,"a":2}`, "input of job j"},
		"input too large": {"j", text(makegood.MaxPayloadBytes + 1), "262145 bytes, the limit is 262144"},
	} {
		_, created, err := w.engine.Submit(t.Context(), scheduler.Submission{ID: test.id, Definition: c.Hash, Input: json.RawMessage(test.input)})
		if created || !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got created %t, %v, want an ErrInvalid that says %q", name, created, err, test.want)
		}
	}
	if _, err := w.engine.Job(t.Context(), "j"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("job j: got %v, want none", err)
	}
	w.submit(c, strings.Repeat("i", 128), text(makegood.MaxPayloadBytes))
	w.ends(strings.Repeat("i", 128), makegood.JobProcessed)
}

func TestAWorkflowThatNamesAnAgentThatIsNotThereIsRefused(t *testing.T) {
	var r troupe
	w := open(t, embedded.Config{Agents: r.agents("b", "a")})
	for yaml, want := range map[string]string{
		"name: one\nsteps: [{name: charge, agent: c}]":                                       `workflow one: steps[0].agent: no agent "c": known are a, approval, b, wait, workflow`,
		"name: one\nsteps: [{name: charge, agent: a, undo: {agent: c, action: x}}]":          `workflow one: steps[0].undo.agent: no agent "c": known are a, approval, b, wait, workflow`,
		"name: one\nsteps: [{name: charge, agent: http, with: {url: \"http://x.example\"}}]": `workflow one: steps[0].agent: no agent "http": known are a, approval, b, wait, workflow`,
	} {
		if err := w.defineErr(yaml); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// An answer that was lost leaves the submitter in doubt. They submit again, and it is the same job.
func TestASubmissionWhoseAnswerWasLostIsMadeAgain(t *testing.T) {
	var r troupe
	lossy := &lossyCreate{}
	w := open(t, embedded.Config{Agents: r.agents("a"), WrapStore: func(s store.Store) store.Store { lossy.Store = s; return lossy }})
	c := w.define("name: one\nsteps: [{name: charge, agent: a}]")
	submission := scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`)}
	if _, _, err := w.engine.Submit(t.Context(), submission); !errors.Is(err, errLost) {
		t.Fatalf("got %v, want the error of the store", err)
	}
	if _, created, err := w.engine.Submit(t.Context(), submission); err != nil || created {
		t.Fatalf("again: got created %t, %v, want the job that was there", created, err)
	}
	w.ends("j", makegood.JobProcessed)
	if got := len(r.seen("")); got != 1 {
		t.Errorf("got %d attempts, want 1", got)
	}
}

var errLost = errors.New("the answer was lost")

// lossyCreate loses the answer to the first Create.
type lossyCreate struct {
	store.Store
	calls atomic.Int64
}

func (l *lossyCreate) Create(ctx context.Context, j job.Job) error {
	if err := l.Store.Create(ctx, j); err != nil || l.calls.Add(1) > 1 {
		return err
	}
	return fmt.Errorf("create: %w", errLost)
}
