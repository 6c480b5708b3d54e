package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/store/storetest"
)

func TestWithoutAPlanTheStoreIsAsItWas(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		inner := open(t)
		return storetest.Harness{
			Open:   func() store.Store { return faultstore.New(inner, nil) },
			Damage: func(string) { t.Skip("how jobs are damaged only the inner store's tests know") },
		}
	})
}

func open(t *testing.T) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shut(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func aJob(id string) job.Job {
	return job.Job{ID: id, Workflow: "order", Round: 1, ProcessState: makegood.JobPending}
}

// exists reports whether the inner store has the job.
func exists(t *testing.T, s store.Store, id string) bool {
	t.Helper()
	_, err := s.Load(context.Background(), id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestEachEffectExecutesAndAnswersAsItSays(t *testing.T) {
	for _, row := range []struct {
		effect   faultstore.Effect
		executed bool
		answer   error
		later    error
	}{
		{faultstore.None, true, nil, nil},
		{faultstore.FailBefore, false, faultstore.ErrInjected, nil},
		{faultstore.FailAfter, true, faultstore.ErrInjected, nil},
		{faultstore.CrashBefore, false, faultstore.ErrCrashed, faultstore.ErrCrashed},
		{faultstore.CrashAfter, true, faultstore.ErrCrashed, faultstore.ErrCrashed},
	} {
		t.Run(fmt.Sprint(row.effect), func(t *testing.T) {
			inner := open(t)
			s := faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
				if c.N > 1 {
					return faultstore.None
				}
				return row.effect
			})
			if err := s.Create(t.Context(), aJob("a")); !errors.Is(err, row.answer) {
				t.Errorf("the call: got %v, want %v", err, row.answer)
			}
			if got := exists(t, inner, "a"); got != row.executed {
				t.Errorf("executed: got %v, want %v", got, row.executed)
			}
			if err := s.Create(t.Context(), aJob("b")); !errors.Is(err, row.later) {
				t.Errorf("a later call: got %v, want %v", err, row.later)
			}
			if got, want := exists(t, inner, "b"), row.later == nil; got != want {
				t.Errorf("later call executed: got %v, want %v", got, want)
			}
			if got, want := s.Crashed(), row.later != nil; got != want {
				t.Errorf("crashed: got %v, want %v", got, want)
			}
		})
	}
}

func TestAReadThatFailsGivesNothing(t *testing.T) {
	inner := open(t)
	if err := inner.Create(t.Context(), aJob("a")); err != nil {
		t.Fatal(err)
	}
	s := faultstore.New(inner, func(faultstore.Call) faultstore.Effect { return faultstore.FailAfter })
	got, err := s.Load(t.Context(), "a")
	if !errors.Is(err, faultstore.ErrInjected) || !reflect.DeepEqual(got, job.Job{}) {
		t.Fatalf("got %+v, %v; want no job and %v", got, err, faultstore.ErrInjected)
	}
	slot, claim := store.Slot{Agent: "x", Job: "a", Step: "s"}, job.Claim{Attempt: 1, LockedBy: "x", CompleteBy: time.Now()}
	found, err := s.Close(t.Context(), slot, store.Closing{Attempt: 1})
	if !errors.Is(err, faultstore.ErrInjected) || found != (job.Found{}) {
		t.Fatalf("close: got %+v, %v; want no answer and %v", found, err, faultstore.ErrInjected)
	}
	claim.Attempt = 2
	if err := inner.Claim(t.Context(), slot, claim, time.Now()); err != nil {
		t.Fatal(err)
	}
	completeBy, err := s.Heartbeat(t.Context(), slot, claim, time.Now())
	if !errors.Is(err, faultstore.ErrInjected) || !completeBy.IsZero() {
		t.Fatalf("heartbeat: got %v, %v; want no time and %v", completeBy, err, faultstore.ErrInjected)
	}
}

func TestEveryMethodIsACallThatSaysWhatItIsAbout(t *testing.T) {
	var got []faultstore.Call
	s := faultstore.New(open(t), func(c faultstore.Call) faultstore.Effect {
		got = append(got, c)
		return faultstore.FailBefore
	})
	ctx := t.Context()
	_, load := s.Load(ctx, "b")
	_, due := s.Due(ctx, 0, time.Now(), store.Entry{}, 1)
	_, payload := s.Payload(ctx, "h", "input")
	_, definition := s.Definition(ctx, "hash")
	_, current := s.CurrentDefinition(ctx, "order")
	_, heartbeat := s.Heartbeat(ctx, store.Slot{Job: "f", Step: "p"}, job.Claim{Attempt: 2}, time.Time{})
	_, closed := s.Close(ctx, store.Slot{Job: "i", Step: "q"}, store.Closing{Attempt: 3})
	_, look := s.Look(ctx, store.Slot{Job: "j", Step: "r"}, 4, time.Time{}, time.Time{})
	_, pages := s.HistoryPages(ctx, "l")
	errs := []error{
		pages, load, due, payload, definition, current, heartbeat, closed, look,
		s.Create(ctx, aJob("a")), s.Save(ctx, store.Change{Job: aJob("c")}), s.Park(ctx, "d", time.Time{}, "why", time.Time{}),
		s.Claim(ctx, store.Slot{Job: "e", Step: "s"}, job.Claim{Attempt: 5}, time.Time{}), s.Overrule(ctx, store.Slot{Job: "k", Step: "t"}, 6, "x", time.Time{}),
		s.PutPayload(ctx, "g", "input", nil), s.PutDefinition(ctx, "order", "hash", nil), s.DropPages(ctx, "m", 1, 2),
	}
	want := []faultstore.Call{
		{N: 1, Op: "Load", Job: "b"},
		{N: 2, Op: "Due"},
		{N: 3, Op: "Payload", Job: "h", Of: "input"},
		{N: 4, Op: "Definition"},
		{N: 5, Op: "CurrentDefinition"},
		{N: 6, Op: "Heartbeat", Job: "f", Step: "p", Attempt: 2},
		{N: 7, Op: "Close", Job: "i", Step: "q", Attempt: 3},
		{N: 8, Op: "Look", Job: "j", Step: "r", Attempt: 4},
		{N: 9, Op: "HistoryPages", Job: "l"},
		{N: 10, Op: "Create", Job: "a", Written: aJob("a")},
		{N: 11, Op: "Save", Job: "c", Written: aJob("c")},
		{N: 12, Op: "Park", Job: "d", Of: "why"},
		{N: 13, Op: "Claim", Job: "e", Step: "s", Attempt: 5},
		{N: 14, Op: "Overrule", Job: "k", Step: "t", Attempt: 6},
		{N: 15, Op: "PutPayload", Job: "g", Of: "input"},
		{N: 16, Op: "PutDefinition"},
		{N: 17, Op: "DropPages", Job: "m"},
	}
	if s.Shards(); !reflect.DeepEqual(got, want) {
		t.Errorf("calls:\n got %v\nwant %v", got, want)
	}
	if s.Calls() != len(want) {
		t.Errorf("got %d calls, want %d", s.Calls(), len(want))
	}
	for i, err := range errs {
		if !errors.Is(err, faultstore.ErrInjected) {
			t.Errorf("call %d: got %v, want %v", i, err, faultstore.ErrInjected)
		}
	}
	// Every method of the port but Shards must be in the list, the next one too.
	if methods := reflect.TypeFor[store.Store]().NumMethod(); methods != len(want)+1 {
		t.Errorf("store.Store has %d methods, this test knows %d", methods, len(want)+1)
	}
}

func TestOneCrashIsToldOnceAndNothingIsExecutedAfterIt(t *testing.T) {
	inner := open(t)
	const calls, last = 50, 20
	s := faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
		if c.N >= last {
			return faultstore.CrashBefore
		}
		return faultstore.None
	})
	var told atomic.Int64
	s.OnCrash = func() { told.Add(1) }
	var answered atomic.Int64
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			if s.Create(context.Background(), aJob(fmt.Sprint(i))) == nil {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	stored := int64(0)
	for i := range calls {
		if exists(t, inner, fmt.Sprint(i)) {
			stored++
		}
	}
	// Calls that were under way at the crash may be stored although nobody was answered.
	if told.Load() != 1 || answered.Load() > stored || stored >= last {
		t.Fatalf("got %d tellings, %d answered, %d stored; want 1, at most as many as stored, and fewer than %d", told.Load(), answered.Load(), stored, last)
	}
}

func TestACallThatIsExecutedWhileTheProcessDiesIsNotAnswered(t *testing.T) {
	inner := open(t)
	var s *faultstore.Store
	// The plan of the inner one runs while the outer call is under way.
	dying := faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
		if c.Job == "a" {
			_ = s.Create(context.Background(), aJob("killer"))
		}
		return faultstore.None
	})
	s = faultstore.New(dying, func(c faultstore.Call) faultstore.Effect {
		if c.Job == "killer" {
			return faultstore.CrashBefore
		}
		return faultstore.None
	})
	if err := s.Create(t.Context(), aJob("a")); !errors.Is(err, faultstore.ErrCrashed) {
		t.Errorf("got %v, want %v", err, faultstore.ErrCrashed)
	}
	if !exists(t, inner, "a") {
		t.Error("the call was not executed, although it was under way")
	}
}
