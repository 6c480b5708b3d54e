package scheduler_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// metered is a store that counts its writes, as that of DynamoDB does.
type metered struct {
	store.Jobs
	mu     sync.Mutex
	writes map[string]int64
}

func (m *metered) Create(ctx context.Context, j job.Job) error {
	m.meter(ctx, &j)
	return m.Jobs.Create(ctx, j)
}

func (m *metered) Save(ctx context.Context, c store.Change) error {
	if c.Job.Spent.Counted() {
		m.meter(ctx, &c.Job)
	}
	return m.Jobs.Save(ctx, c)
}

// meter adds one write to the usage of a job that is about to be written, and counts it.
func (m *metered) meter(ctx context.Context, j *job.Job) {
	j.Spent = j.Spent.Plus(job.Spent{Writes: 1})
	spend.On(ctx).Store(j.Spent)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes[j.ID]++
}

// childOf is the id of the child of a step.
func (w *world) childOf(id, step string) string {
	j := w.job(id)
	s, _ := j.Step(step)
	return domain.ChildID(id, j.Birth, step, s.Forward.Attempt)
}

// A job pays for its own work alone: the usage of its parent that no save has kept yet is not its own, nor is that of
// another child, and none is counted twice.
func TestAChildDoesNotPayForItsParent(t *testing.T) {
	w := newWorld(t)
	meter := &metered{Jobs: w.config.Jobs, writes: map[string]int64{}}
	now := time.Now()
	w.use(func(c *scheduler.Config) {
		c.Counts, c.Jobs, c.Clock = true, meter, spend.NewClock(1024, func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return now
		})
	})
	w.define("name: line\nsteps: [{name: pick, agent: b, undo: {action: put}}]")
	w.define("name: order\nonFailure: undo\nsteps: [{name: charge, agent: a, needs: [], retry: {attempts: 1}}, {name: reserve, agent: workflow, action: line, needs: []}, {name: mail, agent: workflow, action: line, needs: []}]")
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "order", ID: "j", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	w.strike = func(op, id string) faultstore.Effect {
		if op == "Load" && id != "j" {
			w.mu.Lock()
			now = now.Add(10 * time.Millisecond) // The function looks at a child.
			w.mu.Unlock()
		}
		return faultstore.None
	}
	w.handle(w.failed("j", "charge", w.claim("j", "charge"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	w.strike = nil
	for _, step := range []string{"reserve", "mail"} {
		child := w.job(w.childOf("j", step))
		if want := (job.Spent{Writes: meter.writes[child.ID]}); child.Desired == makegood.JobProcessed || child.Spent != want {
			t.Errorf("the child of %s, which wants to be %s, has spent %+v, and %+v was its own", step, child.Desired, child.Spent, want)
		}
	}
}

// Children that begin side by side, with an input that has to be read, do not meddle with each other.
func TestChildrenBeginSideBySideWithALargeInput(t *testing.T) {
	w := newWorld(t)
	w.define("name: line\nsteps: [{name: pick, agent: b, undo: {action: put}}]")
	w.define(`{name: order, steps: [{name: charge, agent: a, undo: none}, {name: one, agent: workflow, action: line, needs: [charge]},
		{name: two, agent: workflow, action: line, needs: [charge]}, {name: three, agent: workflow, action: line, needs: [charge]}]}`)
	input, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 40_000)})
	if err != nil {
		t.Fatal(err)
	}
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "order", ID: "j", Input: input, Priority: makegood.PriorityIdle})
	if err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	w.strike = func(op, id string) faultstore.Effect {
		if op == "Create" && id != "j" {
			return faultstore.FailBefore
		}
		return faultstore.None
	}
	reply := w.done("j", "charge")
	if failed := w.handle(reply); len(failed) != 1 {
		t.Fatalf("%d records come again, want the one whose children could not begin", len(failed))
	}
	w.strike = nil
	w.handle(reply)
	for _, step := range []string{"one", "two", "three"} {
		if child := w.job(w.childOf("j", step)); child.Input.Bytes != len(input) || child.Priority != makegood.PriorityIdle {
			t.Errorf("the child of step %s has an input of %d bytes and priority %q, want %d and that of its parent", step, child.Input.Bytes, child.Priority, len(input))
		}
	}
}

// The children of several jobs of a batch begin side by side: none waits until the inline steps of another are done.
func TestChildrenOfABatchDoNotWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	both := make(chan struct{})
	var inside atomic.Int32
	l := &lane{agents: []string{"b"}, places: 2, during: func(makegood.Task) {
		if inside.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-time.After(patience):
			t.Error("an inline step of one child waits for that of another")
		}
	}}
	w.use(func(c *scheduler.Config) { c.Lane = l })
	w.define("name: line\nsteps: [{name: pick, agent: b, inline: true, timeout: 10s}]")
	order := w.define("{name: order, steps: [{name: charge, agent: a, undo: none}, {name: reserve, agent: workflow, action: line}]}")
	w.submit(order, "j")
	w.submit(order, "k")
	w.handle(w.done("j", "charge"), w.done("k", "charge"))
	for _, id := range []string{"j", "k"} {
		if child := w.job(w.childOf(id, "reserve")); child.ProcessState != makegood.JobProcessed {
			t.Errorf("the child of %s is %s, want Processed", id, child.ProcessState)
		}
	}
}

// A parent that goes back asks for the cancellation of a child until the child goes back, and not again: a child whose
// undo has failed stands before a person, and no look of its parent tries that undo again.
func TestAParentDoesNotTryTheFailedUndoOfItsChildAgain(t *testing.T) {
	w := newWorld(t)
	w.define("name: line\nsteps: [{name: pick, agent: b, undo: {action: put, retry: {attempts: 1}}}, {name: label, agent: b, undo: none}]")
	w.submit(w.define("{name: order, steps: [{name: reserve, agent: workflow, action: line}]}"), "j")
	child := w.childOf("j", "reserve")
	w.handle(w.done(child, "pick"))
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbCancel, By: "p", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	w.handle(w.failed(child, "pick", w.claim(child, "pick"), job.StepError{Message: "no", Applied: makegood.AppliedNo}))
	before := w.job(child)
	w.handle(w.deadline("j"))
	if after := w.job(child); before.ProcessState != makegood.JobError || after.Rev != before.Rev {
		t.Errorf("the child was %s and is %s, want Error and unchanged: it stands before a person", before.ProcessState, after.ProcessState)
	}
}

// A birth that panics fails its own parent alone, not the process with all jobs of the batch.
func TestABirthOfAChildThatPanicsFailsItsOwnParent(t *testing.T) {
	w := newWorld(t)
	w.define("name: line\nsteps: [{name: pick, agent: b, undo: {action: put}}]")
	order := w.define("{name: order, steps: [{name: charge, agent: a, undo: none}, {name: reserve, agent: workflow, action: line}]}")
	w.submit(order, "j")
	w.submit(order, "k")
	bad := domain.ChildID("j", w.job("j").Birth, "reserve", 1)
	w.strike = func(op, id string) faultstore.Effect {
		if op == "Create" && id == bad {
			panic("planted")
		}
		return faultstore.None
	}
	failing := w.done("j", "charge")
	if failed := w.handle(failing, w.done("k", "charge")); !slices.Equal(failed, []string{failing.MessageId}) {
		t.Errorf("the records %q come again, want %q alone", failed, failing.MessageId)
	}
	w.strike = nil
	if child := w.job(w.childOf("k", "reserve")); child.ProcessState != makegood.JobPending && child.ProcessState != makegood.JobProcessing {
		t.Errorf("the child of k is %s", child.ProcessState)
	}
}
