package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/wire"
)

// A message that a schedule is due is handed on with the key that was seen, beside the events of jobs; what could not be fired comes back, but for a schedule of a newer release: that is left.
func TestSchedulesThatAreDueAreFired(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var fired []string
	w.use(func(c *scheduler.Config) {
		c.Fire = func(_ context.Context, schedule string, key time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			fired = append(fired, schedule+" "+key.UTC().Format(time.TimeOnly))
			switch schedule {
			case "stuck":
				return errors.New("the store does not answer")
			case "later":
				return &scheduler.NewerError{What: schedule}
			}
			return nil
		}
	})
	due := func(name string) record {
		body, err := wire.EncodeScheduleDue(wire.ScheduleDue{Schedule: name, Key: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		return w.raw(body)
	}
	nightly, stuck := due("nightly"), due("stuck")
	if failed := w.handle(nightly, due("later"), stuck); !slices.Equal(failed, []string{stuck.MessageId}) {
		t.Errorf("got %v back, want %s", failed, stuck.MessageId)
	}
	if slices.Sort(fired); !slices.Equal(fired, []string{"later 03:04:05", "nightly 03:04:05", "stuck 03:04:05"}) {
		t.Errorf("fired were %q", fired)
	}
	if got := w.s.Stats().Left; got != 1 {
		t.Errorf("%d were left, want the one of a newer release", got)
	}
}

// However many messages of a batch say that a hold is due, what was held is let go once.
func TestWhatWasHeldIsLetGoOnceABatch(t *testing.T) {
	w := newWorld(t)
	released := 0
	w.use(func(c *scheduler.Config) {
		c.Release = func(context.Context) error { released++; return errors.New("half of them") }
	})
	body, err := wire.EncodeHoldsDue(w.now)
	if err != nil {
		t.Fatal(err)
	}
	if failed := w.handle(w.raw(body), w.raw(body)); failed != nil || released != 1 {
		t.Errorf("let go %d times, and %v come back, want once, and none: the Supervisor says it again", released, failed)
	}
	w.use(func(c *scheduler.Config) { c.Release = nil })
	if failed := w.handle(w.raw(body)); failed != nil {
		t.Errorf("where nothing is held: got %v back, want none", failed)
	}
}
