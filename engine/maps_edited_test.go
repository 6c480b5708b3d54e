package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
)

// gate is an agent whose items wait until they are let go, one by one. Items that fails names fail for good.
type gate struct {
	mu        sync.Mutex
	now, most int
	begun     map[string]bool
	fails     func(item int) bool
	through   chan struct{}
}

func (g *gate) agent() agent.Handler {
	enter := func(ctx context.Context) error {
		g.mu.Lock()
		g.now++
		g.most = max(g.most, g.now)
		g.begun[agent.TaskOf(ctx).Key] = true
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.now--
			g.mu.Unlock()
		}()
		select {
		case <-g.through:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return agent.New("gate", agent.Do("reserve", func(ctx context.Context, l line) (string, error) {
		if err := enter(ctx); err != nil {
			return "", err
		}
		if g.fails != nil && g.fails(l.Item) {
			return "", agent.NotApplied(agent.Final(errors.New("out of stock")))
		}
		return fmt.Sprint(l.Item), nil
	}).Undo("release", func(ctx context.Context, _ line, _ *string) error { return enter(ctx) }))
}

// at waits until exactly n items are at the gate, and so many have begun.
func (g *gate) at(t *testing.T, n, begun int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		g.mu.Lock()
		now, all := g.now, len(g.begun)
		g.mu.Unlock()
		if now == n && all == begun {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d items are under way, and %d have begun, want %d and %d", now, all, n, begun)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (g *gate) let(n int) {
	for range n {
		g.through <- struct{}{}
	}
}

func openGate(t *testing.T, g *gate, fields string) *engine.Engine {
	t.Helper()
	g.through, g.begun = make(chan struct{}), map[string]bool{}
	workflow := `
name: order
steps:
  - name: reserve
    map: {over: "${ [range(.input.n)] }"` + fields + `}
    agent: gate
    timeout: 10m
    with: {item: "${ .item }", index: "${ .index }", order: "${ .job.id }"}
    undo: {action: release, timeout: 10m}
`
	return openWith(t, &shop{}, fstest.MapFS{"order.yaml": {Data: []byte(workflow)}}, g.agent())
}

func edit(t *testing.T, eng *engine.Engine, concurrency int, tolerate *makegood.Tolerance) {
	t.Helper()
	r := api.Request{Verb: makegood.VerbEdit, Step: "reserve", Concurrency: concurrency, Tolerate: tolerate, Reason: "the shop is slow"}
	if _, err := eng.Request(api.As(t.Context(), "ada"), "o-1", r); err != nil {
		t.Fatal(err)
	}
}

// A map of one part: more items begin at once, none begins beyond a lower figure, none is interrupted, and what would
// have been one failure too many is tolerated.
func TestAMapIsEditedWhileItRuns(t *testing.T) {
	g := &gate{fails: func(item int) bool { return item < 2 }}
	eng := openGate(t, g, ", concurrency: 2")
	if _, err := eng.Submit(t.Context(), makegood.Submission{ID: "o-1", Workflow: "order", Input: []byte(`{"n":30}`)}); err != nil {
		t.Fatal(err)
	}
	g.at(t, 2, 2)
	edit(t, eng, 8, &makegood.Tolerance{Items: 2})
	g.at(t, 8, 8)
	edit(t, eng, 3, nil)
	g.let(5)
	g.at(t, 3, 8)
	g.let(1)
	g.at(t, 3, 9)
	g.let(24)
	if g.most != 8 {
		t.Errorf("%d items were under way at once, want 8", g.most)
	}
	j := waitFor(t, eng, "o-1")
	if j.ProcessState != makegood.JobProcessed || j.Steps[0].FailureCount != 2 || len(g.begun) != 30 {
		t.Fatalf("%s (%s), %d failures, %d begun", j.ProcessState, j.Reason, j.Steps[0].FailureCount, len(g.begun))
	}
	e := j.Steps[0].Edited
	if e == nil || e.Concurrency != 3 || e.Tolerate == nil || e.Tolerate.Items != 2 {
		t.Errorf("it is shown as edited to %+v", e)
	}
	if len(j.History) != 2 || j.History[0].By != "ada" || j.History[0].Step != "reserve" || j.History[0].Concurrency != 8 || j.History[1].Reason != "the shop is slow" {
		t.Errorf("its history is %+v", j.History)
	}
	_, err := eng.Request(t.Context(), "o-1", api.Request{Verb: makegood.VerbEdit, Step: "reserve", Concurrency: 4})
	if refused := (*api.RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "it is Processed") {
		t.Errorf("an edit of a map that has ended: %v", err)
	}
}

// A map of parts: the open one takes the figures, and so do those that are born later. Its undo goes by them, too.
func TestAMapOfPartsIsEditedWhileItRuns(t *testing.T) {
	g := &gate{}
	eng := openGate(t, g, ", concurrency: 5")
	if _, err := eng.Submit(t.Context(), makegood.Submission{ID: "o-1", Workflow: "order", Input: []byte(`{"n":250}`)}); err != nil {
		t.Fatal(err)
	}
	g.at(t, 5, 5)
	edit(t, eng, 20, nil)
	g.at(t, 20, 20)
	edit(t, eng, 7, nil)
	g.let(13)
	g.at(t, 7, 20)
	g.let(100)
	g.at(t, 7, 120)
	ask(t, eng, "o-1", makegood.VerbUndo)
	g.let(7)
	g.at(t, 7, 120+7)
	edit(t, eng, 3, nil)
	g.let(4)
	g.at(t, 3, 120+7)
	edit(t, eng, 30, nil)
	g.at(t, 16, 120+20) // All of the second part. The first is undone when that is.
	close(g.through)
	if j := waitFor(t, eng, "o-1"); j.ProcessState != makegood.JobUndone {
		t.Fatalf("%s: %s", j.ProcessState, j.Reason)
	}
}
