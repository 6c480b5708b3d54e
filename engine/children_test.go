package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// orders are a workflow with steps that are done by jobs of another, and that one.
var orders = fstest.MapFS{
	"order.yaml": {Data: []byte(`
name: order
steps:
  - {name: charge, agent: shop, undo: {action: refund}}
  - {name: reserve, agent: workflow, action: reserve-line, with: {sku: "${ .input.sku }", amount: "${ .steps.charge.output }"}}
  - {name: ship, agent: shop, with: "${ .steps.reserve.output }", retry: {attempts: 1}, undo: none}
`)},
	"reserve-line.yaml": {Data: []byte(`
name: reserve-line
steps:
  - {name: pick, agent: shop, undo: {action: put_back}}
  - {name: label, agent: shop, undo: none}
`)},
}

// shop is an agent that notes its actions, in the order of their ends.
type shop struct {
	mu    sync.Mutex
	calls []string
	// before is called before each action.
	before func(ctx context.Context, action string) error
}

func (s *shop) agent() agent.Handler {
	do := func(action string) func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			if s.before != nil {
				if err := s.before(ctx, action); err != nil {
					return nil, err
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls = append(s.calls, action)
			return json.Marshal(map[string]any{action: input})
		}
	}
	undo := func(action string) func(context.Context, json.RawMessage, *json.RawMessage) error {
		return func(ctx context.Context, input json.RawMessage, _ *json.RawMessage) error {
			_, err := do(action)(ctx, input)
			return err
		}
	}
	return agent.New("shop", agent.Do("charge", do("charge")).Undo("refund", undo("refund")), agent.Do("pick", do("pick")).Undo("put_back", undo("put_back")),
		agent.Do("label", do("label")), agent.Do("ship", do("ship")))
}

func (s *shop) did() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.calls, " ")
}

func openOrders(t *testing.T, s *shop) *engine.Engine {
	t.Helper()
	return openWith(t, s, orders)
}

func openWith(t *testing.T, s *shop, workflows fstest.MapFS, more ...agent.Handler) *engine.Engine {
	t.Helper()
	eng, err := engine.Open(t.Context(), engine.Options{Workflows: workflows, Agents: append(more, s.agent())})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- eng.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, eng.Close()); err != nil {
			t.Error(err)
		}
	})
	return eng
}

func submitOrder(t *testing.T, eng *engine.Engine) {
	t.Helper()
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "o", Input: json.RawMessage(`{"sku":"tea"}`)}); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, eng *engine.Engine, id string) makegood.Job {
	t.Helper()
	j, err := eng.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// childOf is the job that does the one step of a job that is done by another.
func childOf(t *testing.T, eng *engine.Engine, id string) makegood.Job {
	t.Helper()
	for listed, err := range eng.List(t.Context(), api.Filter{IDPrefix: id + "~"}) {
		if err != nil {
			t.Fatal(err)
		}
		j, err := eng.Get(t.Context(), listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	t.Fatalf("job %s has no child", id)
	return makegood.Job{}
}

func TestAStepIsDoneByAJobOfItsOwn(t *testing.T) {
	s := new(shop)
	eng := openOrders(t, s)
	submitOrder(t, eng)
	j := waitFor(t, eng, "o")
	if want := "charge pick label ship"; j.ProcessState != makegood.JobProcessed || s.did() != want {
		t.Fatalf("got %s after %s: %s, want %s", j.ProcessState, s.did(), j.Reason, want)
	}
	child := childOf(t, eng, "o")
	if child.Workflow != "reserve-line" || child.ProcessState != makegood.JobProcessed || child.Parent != "o" {
		t.Errorf("the child is a job of %s, %s, of %q", child.Workflow, child.ProcessState, child.Parent)
	}
	if got, want := string(j.Steps[1].Output), string(child.Steps[1].Output); got != want || got == "" {
		t.Errorf("the output of the step is %s, want that of the last step of the child: %s", got, want)
	}
}

func TestTheUndoOfAStepIsThatOfItsJob(t *testing.T) {
	s := &shop{before: func(_ context.Context, action string) error {
		if action == "ship" {
			return agent.Final(agent.NotApplied(errors.New("no van")))
		}
		return nil
	}}
	eng := openOrders(t, s)
	submitOrder(t, eng)
	j := waitFor(t, eng, "o")
	if want := "charge pick label put_back refund"; j.ProcessState != makegood.JobUndone || s.did() != want {
		t.Fatalf("got %s after %s: %s, want Undone after %s", j.ProcessState, s.did(), j.Reason, want)
	}
	child := childOf(t, eng, "o")
	if child.ProcessState != makegood.JobUndone {
		t.Errorf("the child is %s", child.ProcessState)
	}
	_, err := eng.Request(t.Context(), child.ID, api.Request{Verb: makegood.VerbResubmit})
	if err == nil || !strings.Contains(err.Error(), "is the work of step reserve of job o") {
		t.Errorf("beginning a child again got %v", err)
	}
}

func TestACancelReachesTheJobThatDoesAStep(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := &shop{before: func(_ context.Context, action string) error {
		if action == "label" {
			close(began)
			<-goOn
		}
		return nil
	}}
	eng := openOrders(t, s)
	submitOrder(t, eng)
	<-began
	ask(t, eng, "o", makegood.VerbCancel)
	close(goOn)
	j := waitFor(t, eng, "o")
	child := childOf(t, eng, "o")
	if j.ProcessState != makegood.JobCancelled || child.ProcessState != makegood.JobCancelled {
		t.Errorf("got %s and its child %s", j.ProcessState, child.ProcessState)
	}
	if want := "charge pick label put_back refund"; s.did() != want {
		t.Errorf("got %s, want %s", s.did(), want)
	}
}

func TestAJobWhoseStepsCannotBeJobsIsRefused(t *testing.T) {
	eng := openWith(t, new(shop), fstest.MapFS{
		"order.yaml": orders["order.yaml"], "reserve-line.yaml": orders["reserve-line.yaml"],
		"lost.yaml": {Data: []byte("name: lost\nsteps: [{name: nowhere, agent: workflow}]\n")},
	})
	for name, sub := range map[string]makegood.Submission{
		`there is no workflow "nowhere", which does step nowhere of workflow lost`: {Workflow: "lost", ID: "l"},
		"has 120 bytes":      {Workflow: "order", ID: strings.Repeat("x", 120)},
		"want [A-Za-z0-9._:": {Workflow: "order", ID: "a~b~1~c"},
	} {
		if _, err := eng.Submit(t.Context(), sub); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// A workflow that does a step by itself ends at the limit. The attempt that can never begin is made once: the job that
// stands in the child's place says no word to its parent.
func TestAWorkflowThatBeginsItselfEnds(t *testing.T) {
	eng, err := engine.Open(t.Context(), engine.Options{Workflows: fstest.MapFS{
		"again.yaml": {Data: []byte("name: again\nsteps: [{name: me, agent: workflow, action: again}]\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- eng.Run(ctx) }()
	defer func() {
		stop()
		if err := errors.Join(<-ended, eng.Close()); err != nil {
			t.Error(err)
		}
	}()
	for i := range 20 {
		id := fmt.Sprint("o", i)
		if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "again", ID: id}); err != nil {
			t.Fatal(err)
		}
		if j := waitFor(t, eng, id); j.ProcessState != makegood.JobUndone || !strings.Contains(j.Reason, "4 jobs stand above it, the limit is 3") {
			t.Errorf("got %s: %s", j.ProcessState, j.Reason)
		}
		if j := waitFor(t, eng, id); strings.Count(j.Reason, " is Undone: ") != 1 || !strings.Contains(j.Reason, "its job "+id+"~me~1~") {
			t.Errorf("got the reason %q, want the innermost job alone", j.Reason)
		}
		n := 0
		for listed, err := range eng.List(t.Context(), api.Filter{IDPrefix: id + "~"}) {
			if n++; err != nil {
				t.Fatal(err)
			}
			if why := "it never began: job " + id; strings.Count(listed.ID, "~") == 12 && !strings.HasPrefix(listed.Reason, why) {
				t.Errorf("got the reason %q, want %s", listed.Reason, why)
			}
		}
		if n != 4 { // Three children, and the one that never begins.
			t.Errorf("%s: got %d jobs below it, want 4", id, n)
		}
	}
}

// An input that is the one of jobs which never begin would have a child taken for such a job while it runs.
func TestAChildIsNotBegunWithTheInputOfJobsThatNeverBegin(t *testing.T) {
	s := new(shop)
	files := fstest.MapFS{"pass.yaml": {Data: []byte(`
name: pass
onFailure: stop
steps: [{name: on, agent: workflow, action: reserve-line, with: "${ .input }"}]
`)}, "reserve-line.yaml": orders["reserve-line.yaml"]}
	eng := openWith(t, s, files)
	input := json.RawMessage(`{ "makegood": "the attempt of the parent was closed before this job began" }`)
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "pass", ID: "o", Input: input}); err != nil {
		t.Fatal(err)
	}
	j := waitFor(t, eng, "o")
	if want := "its input is that of jobs that never begin"; j.ProcessState != makegood.JobError || !strings.Contains(j.Reason, want) || s.did() != "" {
		t.Errorf("got %s after %q: %s, want Error after nothing: %s", j.ProcessState, s.did(), j.Reason, want)
	}
}

// A large payload is its own job's: a parent whose child gives one undoes the child, and says why.
func TestALargePayloadOfAChildIsNotHandedOn(t *testing.T) {
	s := new(shop)
	files := fstest.MapFS{"order.yaml": orders["order.yaml"], "reserve-line.yaml": {Data: []byte(`
name: reserve-line
steps:
  - {name: pick, agent: shop, undo: {action: put_back}}
  - {name: label, agent: writer, undo: none}
`)}}
	writer := agent.New("writer", agent.Do("label", func(ctx context.Context, _ json.RawMessage) (makegood.Payload, error) {
		return agent.WritePayload(ctx, "text/plain", strings.NewReader("a long report"))
	}))
	eng := openWith(t, s, files, writer)
	submitOrder(t, eng)
	j := waitFor(t, eng, "o")
	if want := "charge pick put_back refund"; j.ProcessState != makegood.JobUndone || s.did() != want || !strings.Contains(j.Reason, "refers to a large payload") {
		t.Errorf("got %s after %s: %s, want Undone after %s", j.ProcessState, s.did(), j.Reason, want)
	}
}
