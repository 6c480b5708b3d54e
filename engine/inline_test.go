package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

// An inline attempt is shown as such while it runs, and no other is.
func TestAnInlineAttemptThatRunsIsShownAsInline(t *testing.T) {
	begun, end := make(chan string), make(chan struct{})
	shop := agent.New("shop", agent.Do("work", func(context.Context, json.RawMessage) (int, error) {
		begun <- "work"
		<-end
		return 1, nil
	}))
	eng, err := engine.Open(t.Context(), engine.Options{
		Workflows: fstest.MapFS{"order.yaml": {Data: []byte("name: order\nsteps: [{name: charge, agent: shop, action: work}, {name: price, agent: shop, action: work, inline: true}]\n")}},
		Agents:    []agent.Handler{shop}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(ctx) }()
	defer func() {
		cancel()
		if err := errors.Join(<-ran, eng.Close()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "o-1", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true} {
		<-begun
		j, err := eng.Get(t.Context(), "o-1")
		if err != nil {
			t.Fatal(err)
		}
		shown := false
		for _, s := range j.Steps {
			shown = shown || s.Inline
			if s.Inline && s.State != makegood.StepClaimed {
				t.Errorf("step %s is %s and inline, want that only a claimed one is", s.Name, s.State)
			}
		}
		if shown != want {
			t.Errorf("got %+v, want one that is inline: %v", j.Steps, want)
		}
		end <- struct{}{}
	}
	if j, err := eng.Wait(t.Context(), "o-1"); err != nil || j.ProcessState != makegood.JobProcessed || j.Steps[1].Inline {
		t.Errorf("got %+v, %v, want that it has ended, and runs no more", j, err)
	}
}
