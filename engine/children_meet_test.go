package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/internal/backup"
)

// Children where they meet other features.

// until waits until a job is as wanted.
func until(t *testing.T, eng *engine.Engine, id string, is func(makegood.Job) bool) makegood.Job {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for {
		j, err := eng.Look(ctx, id)
		switch {
		case err == nil && is(j):
			return j
		case err != nil && !errors.Is(err, api.ErrNotFound):
			t.Fatalf("job %s is not as wanted: %v", id, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func children(t *testing.T, eng *engine.Engine, prefix string) (all []makegood.Job) {
	t.Helper()
	for listed, err := range eng.List(t.Context(), api.Filter{IDPrefix: prefix}) {
		if err != nil {
			t.Fatal(err)
		}
		if listed.Parent == "" {
			continue
		}
		j, err := eng.Get(t.Context(), listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, j)
	}
	return all
}

// A schedule whose jobs could not begin, because the workflow of a child is not there, is refused with the reason.
func TestAScheduleOfAWorkflowWithoutThatOfItsChildIsRefused(t *testing.T) {
	eng := openWith(t, new(shop), fstest.MapFS{
		"lost.yaml": {Data: []byte("name: lost\nsteps: [{name: nowhere, agent: workflow}]\n")}, "order.yaml": orders["order.yaml"], "reserve-line.yaml": orders["reserve-line.yaml"],
	})
	create := func(workflow string) error {
		_, err := eng.CreateSchedule(t.Context(), makegood.Schedule{Name: workflow, Workflow: workflow, Every: makegood.Duration(time.Hour)})
		return err
	}
	if err, want := create("lost"), `there is no workflow "nowhere", which does step nowhere of workflow lost`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := create("order"); err != nil {
		t.Errorf("a schedule whose jobs can begin: %v", err)
	}
}

// Where fires may not overlap, none begins a job while the child of the one before is under way; where they may, they do.
// The children of each job are its own.
func TestFiresMeetTheChildrenOfTheJobBefore(t *testing.T) {
	for _, overlap := range []makegood.Overlap{makegood.OverlapAllow, makegood.OverlapSkip, makegood.OverlapQueue} {
		t.Run(string(overlap), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { firesMeet(t, overlap) }) })
	}
}

func firesMeet(t *testing.T, overlap makegood.Overlap) {
	s := &shop{before: func(_ context.Context, action string) error {
		if action == "label" {
			time.Sleep(25 * time.Second)
		}
		return nil
	}}
	eng, err := engine.Open(t.Context(), engine.Options{Workflows: orders, Agents: []agent.Handler{s.agent()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- eng.Run(ctx) }()
	schedule := makegood.Schedule{Name: "tea", Workflow: "order", Every: 10 * makegood.Second, Overlap: overlap, Input: json.RawMessage(`{"sku":"tea"}`)}
	if _, err := eng.CreateSchedule(t.Context(), schedule); err != nil {
		t.Fatal(err)
	}
	time.Sleep(95 * time.Second)
	if _, err := eng.PauseSchedule(t.Context(), "tea"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Minute)
	var parents []makegood.Job
	for listed, err := range eng.List(t.Context(), api.Filter{Roots: true}) {
		if err != nil {
			t.Fatal(err)
		}
		j, err := eng.Get(t.Context(), listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		parents = append(parents, j)
	}
	slices.SortFunc(parents, func(a, b makegood.Job) int { return a.CreatedAt.Compare(b.CreatedAt) })
	beside := 0
	for i, j := range parents {
		all := children(t, eng, j.ID+"~")
		if j.ProcessState != makegood.JobProcessed || len(all) != 1 || all[0].Parent != j.ID || all[0].ProcessState != makegood.JobProcessed {
			t.Errorf("job %s is %s, with the children %+v: %s", j.ID, j.ProcessState, all, j.Reason)
		}
		if i > 0 && j.CreatedAt.Before(*parents[i-1].FinishedAt) {
			beside++
		}
	}
	stop()
	if err := errors.Join(<-ended, eng.Close()); err != nil {
		t.Fatal(err)
	}
	if want := map[makegood.Overlap]int{makegood.OverlapAllow: 9, makegood.OverlapSkip: 3, makegood.OverlapQueue: 3}[overlap]; len(parents) < want || (beside > 0) != (overlap == makegood.OverlapAllow) {
		t.Errorf("%d jobs were made, %d of them beside the one before; want %d at least", len(parents), beside, want)
	}
}

// A copy of a folder that was made while a child is at work goes on with both, and undoes both.
func TestACopyHasTheChildrenOfItsJobs(t *testing.T) {
	data, copied, back := t.TempDir(), t.TempDir(), t.TempDir()
	began, goOn := make(chan struct{}, 10), make(chan struct{})
	s := &shop{before: func(ctx context.Context, action string) error {
		if action != "label" {
			return nil
		}
		began <- struct{}{}
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	open := func(dir string, does func(eng *engine.Engine)) {
		t.Helper()
		eng, err := engine.Open(t.Context(), engine.Options{Dir: dir, Workflows: orders, Agents: []agent.Handler{s.agent()}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- eng.Run(ctx) }()
		does(eng)
		stop()
		if err := errors.Join(<-ended, eng.Close()); err != nil {
			t.Fatal(err)
		}
	}
	open(data, func(eng *engine.Engine) {
		submitOrder(t, eng)
		<-began
		if _, err := backup.Make(t.Context(), data, copied+"/copy", time.Now()); err != nil {
			t.Fatal(err)
		}
	})
	close(goOn)
	if _, err := backup.Restore(t.Context(), copied+"/copy", back+"/data"); err != nil {
		t.Fatal(err)
	}
	open(back+"/data", func(eng *engine.Engine) {
		if j := waitFor(t, eng, "o"); j.ProcessState != makegood.JobProcessed {
			t.Errorf("in the copy the job is %s: %s", j.ProcessState, j.Reason)
		}
		if _, err := eng.Request(t.Context(), "o", api.Request{Verb: makegood.VerbUndo}); err != nil {
			t.Fatal(err)
		}
		j := waitFor(t, eng, "o")
		if child := childOf(t, eng, "o"); j.ProcessState != makegood.JobUndone || child.ProcessState != makegood.JobUndone {
			t.Errorf("in the copy got %s, and the child %s", j.ProcessState, child.ProcessState)
		}
	})
}

// Steps that begin when any step before them is done, and those that an error goes to, are children as any.
func TestStepsOfAnyAndOnErrorAreChildren(t *testing.T) {
	s := &shop{before: func(_ context.Context, action string) error {
		if action == "charge" {
			return agent.Final(agent.NotApplied(agent.Kind("declined", errors.New("no money"))))
		}
		return nil
	}}
	eng := openWith(t, s, fstest.MapFS{"reserve-line.yaml": orders["reserve-line.yaml"], "meet.yaml": {Data: []byte(`
name: meet
steps:
  - {name: pay, agent: workflow, action: paying, onError: [{kind: child, do: goto bill}]}
  - {name: slow, agent: wait, needs: [], with: {for: 30m}}
  - {name: bill, agent: workflow, action: reserve-line, only: onError}
  - {name: first, agent: workflow, action: reserve-line, needs: {any: [slow, bill]}}
`)}, "paying.yaml": {Data: []byte("name: paying\nsteps:\n  - {name: pick, agent: shop, undo: {action: put_back}}\n  - {name: charge, agent: shop, undo: none}\n")}})
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "meet", ID: "m", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	until(t, eng, "m", func(j makegood.Job) bool { return j.Steps[3].State == makegood.StepDone })
	states := map[string]makegood.ProcessState{}
	for _, child := range children(t, eng, "m~") {
		states[strings.Split(child.ID, "~")[1]] = child.ProcessState
	}
	if fmt.Sprint(states) != "map[bill:Processed first:Processed pay:Undone]" {
		t.Errorf("got %v after %s", states, s.did())
	}
	if _, err := eng.Request(t.Context(), "m", api.Request{Verb: makegood.VerbCancel}); err != nil {
		t.Fatal(err)
	}
	j := waitFor(t, eng, "m")
	for _, child := range children(t, eng, "m~") {
		if j.ProcessState != makegood.JobCancelled || child.ProcessState == makegood.JobProcessed || !child.ProcessState.Finished() {
			t.Errorf("the job is %s, its child %s is %s", j.ProcessState, child.ID, child.ProcessState)
		}
	}
}

// wide is a workflow of so many steps, each done by a job of its own, side by side.
func wide(n int) fstest.MapFS {
	var file strings.Builder
	file.WriteString("name: wide\nsteps:\n")
	for i := range n {
		fmt.Fprintf(&file, "  - {name: s%03d, agent: workflow, action: reserve-line, needs: []}\n", i)
	}
	return fstest.MapFS{"wide.yaml": {Data: []byte(file.String())}, "reserve-line.yaml": orders["reserve-line.yaml"]}
}

// A parent of more children than are begun at once has each of them done, once, and each undone.
func TestAParentOfManyChildren(t *testing.T) {
	const n = 100
	s := new(shop)
	eng := openWith(t, s, wide(n))
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "wide", ID: "w", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if j := waitFor(t, eng, "w"); j.ProcessState != makegood.JobProcessed || strings.Count(s.did(), "label") != n {
		t.Fatalf("got %s after %d labels: %s", j.ProcessState, strings.Count(s.did(), "label"), j.Reason)
	}
	if _, err := eng.Request(t.Context(), "w", api.Request{Verb: makegood.VerbUndo}); err != nil {
		t.Fatal(err)
	}
	j := waitFor(t, eng, "w")
	all := children(t, eng, "w~")
	undone := slices.DeleteFunc(slices.Clone(all), func(c makegood.Job) bool { return c.ProcessState != makegood.JobUndone })
	if j.ProcessState != makegood.JobUndone || len(all) != n || len(undone) != n || strings.Count(s.did(), "put_back") != n {
		t.Errorf("got %s, %d of %d children Undone, %d put back: %s", j.ProcessState, len(undone), len(all), strings.Count(s.did(), "put_back"), j.Reason)
	}
}

// A cancel in the middle of many children leaves none under way, and no effect of any.
func TestACancelReachesManyChildren(t *testing.T) {
	const n = 80
	began, goOn := make(chan struct{}, n), make(chan struct{})
	s := &shop{before: func(_ context.Context, action string) error {
		if action == "label" {
			began <- struct{}{}
			<-goOn
		}
		return nil
	}}
	eng := openWith(t, s, wide(n))
	if _, err := eng.Submit(t.Context(), makegood.Submission{Workflow: "wide", ID: "w", Input: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		<-began
	}
	if _, err := eng.Request(t.Context(), "w", api.Request{Verb: makegood.VerbCancel}); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	j := waitFor(t, eng, "w")
	for _, child := range children(t, eng, "w~") {
		if child.ProcessState != makegood.JobCancelled {
			t.Errorf("the job is %s, and its child %s is %s: %s", j.ProcessState, child.ID, child.ProcessState, child.Reason)
		}
	}
	if picked, back := strings.Count(s.did(), "pick"), strings.Count(s.did(), "put_back"); j.ProcessState != makegood.JobCancelled || picked != back {
		t.Errorf("the job is %s, %d were picked and %d put back", j.ProcessState, picked, back)
	}
}
