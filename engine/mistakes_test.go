package engine_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
)

const ofTrips = `
name: trip
onFailure: undo
steps:
  - {name: book, agent: hotel, undo: {action: release}}
  - name: pay
    agent: bank
    with: {cents: "${ .input.price.cents * 100 }"}
    retry: {attempts: 1}
`

// What goes wrong in an expression and in the program of an agent is a mistake of ours, and no refusal: the job stops with the line,
// nothing is undone for it, and when the mistake is corrected it goes on. What the bank refuses is undone, as onFailure says.
func TestAMistakeOfOursStopsAJobAndUndoesNothing(t *testing.T) {
	type nothing struct{}
	type due struct{ Cents int }
	var released atomic.Int32
	var mended atomic.Bool
	hotel := agent.New("hotel", agent.Do("book", func(context.Context, nothing) (nothing, error) { return nothing{}, nil }).
		Undo("release", func(context.Context, nothing, *nothing) error { released.Add(1); return nil }))
	bank := agent.New("bank", agent.Do("pay", func(_ context.Context, in due) (nothing, error) {
		if in.Cents < 0 {
			return nothing{}, agent.Final(agent.Kind("refused", errors.New("not below zero")))
		}
		if accounts := []int{}; !mended.Load() {
			_ = accounts[in.Cents]
		}
		return nothing{}, nil
	}))
	eng, err := engine.Open(t.Context(), engine.Options{
		Dir: t.TempDir(), Workflows: fstest.MapFS{"trip.yaml": {Data: []byte(ofTrips)}}, Agents: []agent.Handler{hotel, bank},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(t.Context()) }()
	server := httptest.NewServer(eng.Handler())
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	end := func(id string) makegood.Job {
		job, err := c.Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	for id, in := range map[string]struct {
		input, kind, reason string
		state               makegood.ProcessState
	}{
		"expression": {`{"price": 12}`, makegood.KindExpression, `^step pay failed: .*expected an object but got: number`, makegood.JobError},
		"panic": {
			`{"price": {"cents": 12}}`, makegood.KindPanic,
			`^step pay failed: panic: runtime error: index out of range \[1200\] with length 0 \(at engine/mistakes_test\.go:\d+\)$`, makegood.JobError,
		},
		"refusal": {`{"price": {"cents": -1}}`, "refused", `^step pay failed: not below zero`, makegood.JobUndone},
	} {
		if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "trip", ID: id, Input: []byte(in.input)}); err != nil {
			t.Fatal(err)
		}
		job := end(id)
		if job.ProcessState != in.state || !regexp.MustCompile(in.reason).MatchString(job.Reason) || job.Steps[1].Error.Kind != in.kind {
			t.Errorf("%s: got %s, %q, %+v, want %s, %s, kind %s", id, job.ProcessState, job.Reason, job.Steps[1].Error, in.state, in.reason, in.kind)
		}
	}
	mended.Store(true)
	right := regexp.MustCompile(`"\$\{.*cents \* 100 \}"`).ReplaceAllString(ofTrips, `"$${ (.input.price | .cents? // .) * 100 }"`)
	if _, err := eng.Define(t.Context(), "trip.yaml", []byte(right)); err != nil {
		t.Fatal(err)
	}
	for id, r := range map[string]api.Request{
		"expression": {Verb: makegood.VerbResubmit, Definition: "current"}, "panic": {Verb: makegood.VerbResubmit},
	} {
		if _, err := c.Request(t.Context(), id, r); err != nil {
			t.Fatal(err)
		}
		if job := end(id); job.ProcessState != makegood.JobProcessed {
			t.Errorf("%s: got %s, %q once the mistake is corrected, want it Processed", id, job.ProcessState, job.Reason)
		}
	}
	if n := released.Load(); n != 1 {
		t.Errorf("%d bookings were released, want that of the job which the bank refused", n)
	}
	if err := errors.Join(eng.Close(), <-ended); err != nil {
		t.Fatal(err)
	}
}
