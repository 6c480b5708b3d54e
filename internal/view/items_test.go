package view

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// mapped are the jobs of a map, by their ids.
type mapped struct {
	jobs  map[string]job.Job
	reads atomic.Int64
}

const birth = "0a1b2c3d4e5f"

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// put adds a job of n items, with a step for each or for each part, in the state that state says of its place.
func (m *mapped) put(id string, n int, state func(i int, a, undo *job.Activity)) {
	j := job.Job{ID: id, Definition: domain.MapRef{Definition: "hash", Step: "reserve", Items: n}.String(), Birth: birth, ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed, CreatedAt: now.Add(-time.Hour)}
	size := domain.PartSize(n)
	for i := 0; i*size < n; i++ {
		s := job.StepState{Name: domain.ItemStep(i, size)}
		state(i, &s.Forward, &s.Undo)
		j.Steps = append(j.Steps, s)
	}
	if m.jobs == nil {
		m.jobs = map[string]job.Job{}
	}
	m.jobs[id] = j
}

func (m *mapped) load(_ context.Context, id string) (job.Job, error) {
	m.reads.Add(1)
	j, known := m.jobs[id]
	if !known {
		return j, store.ErrNotFound
	}
	return j, nil
}

func (m *mapped) count(t *testing.T, agent string) makegood.Items {
	t.Helper()
	items, err := CountItems(m.load, now).Items(t.Context(), "top", agent)
	if err != nil || items == nil {
		t.Fatal(items, err)
	}
	if sum := items.NotBegun + items.UnderWay + items.Done + items.Failed + items.Waiting + items.Undone + items.Uncounted; sum != items.All {
		t.Errorf("%d items are counted of %d: %+v", sum, items.All, *items)
	}
	return *items
}

func out(a *job.Activity)  { a.State, a.Attempt = job.Dispatched, 1 }
func done(a *job.Activity) { a.State, a.Attempt, a.FinishedAt = job.Done, 1, now.Add(-10*time.Second) }

func failed(a *job.Activity, why string) {
	a.State, a.Attempt, a.Error = job.Skipped, 1, &job.StepError{Message: why, Kind: "stock"}
}

func TestItemsAreCountedByTheStatesOfTheirSteps(t *testing.T) {
	var m mapped
	m.put("top", 10, func(i int, a, undo *job.Activity) {
		switch i {
		case 0, 1:
			done(a)
		case 2, 3:
			failed(a, fmt.Sprintf("no stock of %d", i))
		case 4:
			out(a)
		case 5:
			a.State, a.Attempt = job.Backoff, 1
		case 6:
			done(a)
			undo.State = job.Done
		case 7:
			done(a)
			undo.State, undo.Error = job.Failed, &job.StepError{Message: "cannot be given back"}
		case 8:
			a.State, a.Attempt = job.Skipped, 1 // settled as skipped: it has no error
		}
	})
	got := m.count(t, "stock")
	want := makegood.Items{
		All: 10, NotBegun: 1, UnderWay: 2, Done: 3, Failed: 2, Waiting: 1, Undone: 1,
		Failures: []makegood.ItemGroup{{Reason: "no stock of 2", Kind: "stock", Items: 2, Index: 2, Job: "top", Step: "item_2"}},
		Stands:   []makegood.ItemGroup{{Reason: "cannot be given back", Items: 1, Index: 7, Job: "top", Step: "item_7"}},
	}
	want.PerSecond, want.SecondsLeft = got.PerSecond, got.SecondsLeft
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got.PerSecond <= 0 || got.SecondsLeft <= 0 {
		t.Errorf("no rate, or no time left: %+v", got)
	}
}

func TestAJobInErrorHasItsFailedItemBeforeAPerson(t *testing.T) {
	var m mapped
	m.put("top", 3, func(i int, a, _ *job.Activity) {
		done(a)
		if i == 1 {
			a.State, a.Error = job.Failed, &job.StepError{Message: "no"}
		}
	})
	j := m.jobs["top"]
	j.ProcessState, j.Reason = makegood.JobError, "step item_1 failed: no"
	m.jobs["top"] = j
	if got := m.count(t, "stock"); got.Waiting != 1 || len(got.Stands) != 1 || got.Stands[0].Step != "item_1" || got.PerSecond != 0 {
		t.Errorf("%+v", got)
	}
	m.jobs["top"].Steps[1].Forward.State = job.NotStarted // Now the job stands, and no item of it.
	if got := m.count(t, "stock"); got.Waiting != 0 || len(got.Stands) != 1 || got.Stands[0].Items != 0 || got.Stands[0].Reason != "in Error: step item_1 failed: no" {
		t.Errorf("%+v", got)
	}
}

func TestAnItemWhoseJobIsInErrorStandsBeforeAPerson(t *testing.T) {
	var m mapped
	m.put("top", 3, func(i int, a, _ *job.Activity) {
		if out(a); i == 0 {
			a.State = job.Waiting
		}
	})
	m.jobs[domain.ChildID("top", birth, "item_1", 1)] = job.Job{ID: "x", ProcessState: makegood.JobError, Reason: "no"}
	if got := m.count(t, makegood.AgentWorkflow); got.Waiting != 1 || got.UnderWay != 2 || got.Stands[0] != (makegood.ItemGroup{Reason: "in Error: no", Items: 1, Index: 1, Job: "x"}) {
		t.Errorf("%+v", got)
	}
}

// Parts that are done, or that have not begun, are counted without a read; the reasons of failures take one each.
func TestAMapOfManyPartsTakesFewReads(t *testing.T) {
	var m mapped
	part := func(k int) string { return domain.ChildID("top", birth, domain.ItemStep(k, 100), 1) }
	m.put("top", 10_000, func(k int, a, _ *job.Activity) {
		switch {
		case k < 50:
			done(a)
			a.StartedAt = now.Add(-time.Minute)
		case k < 52:
			out(a)
		}
		if k == 3 {
			a.FailureCount = 2
		}
	})
	m.put(part(3), 100, func(i int, a, _ *job.Activity) {
		done(a)
		if i > 97 {
			failed(a, fmt.Sprintf("no stock of %d", i))
		}
	})
	m.put(part(50), 100, func(i int, a, _ *job.Activity) {
		if i < 30 {
			done(a)
		}
	})
	got := m.count(t, "stock") // Part 51 is not born yet.
	if got.Done != 5028 || got.Failed != 2 || got.NotBegun != 4970 || got.UnderWay != 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Failures) != 1 || got.Failures[0].Index != 398 || got.Failures[0].Job != part(3) || got.Failures[0].Items != 2 {
		t.Errorf("%+v", got.Failures)
	}
	if n := m.reads.Load(); n != 4 {
		t.Errorf("%d jobs were read, want the top, parts 50 and 51, and for its reasons part 3", n)
	}
}

// A map of which more parts are under way than one reading looks at says how many items it has not counted.
func TestACountReadsSoManyJobsAndNoMore(t *testing.T) {
	var m mapped
	m.put("top", 100_000, func(k int, a, _ *job.Activity) {
		out(a)
		m.put(domain.ChildID("top", birth, domain.ItemStep(k, 10_000), 1), 10_000, func(i int, a, _ *job.Activity) { out(a) })
	})
	got := m.count(t, "stock")
	if n := m.reads.Load(); n != 1+maxCounted {
		t.Errorf("%d jobs were read", n)
	}
	if got.NotBegun+got.Uncounted != 100_000 || got.Uncounted < 90_000 {
		t.Errorf("%+v", got)
	}
}

func TestAChildWithoutAMapHasNoItems(t *testing.T) {
	m := mapped{jobs: map[string]job.Job{"top": {ID: "top", Definition: "0123456789abcdef0123456789abcdef"}}}
	for _, id := range []string{"top", "gone"} {
		if items, err := CountItems(m.load, now).Items(t.Context(), id, "stock"); items != nil || err != nil {
			t.Errorf("%s: %v, %v", id, items, err)
		}
	}
	down := errors.New("down")
	load := func(context.Context, string) (job.Job, error) { return job.Job{}, down }
	if _, err := CountItems(load, now).Items(t.Context(), "top", "stock"); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}
