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

// A message that a schedule is due is handed on with the key that was seen, beside the events of jobs; what could not be fired comes back.
func TestSchedulesThatAreDueAreFired(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var fired []string
	w.use(func(c *scheduler.Config) {
		c.Fire = func(_ context.Context, schedule string, key time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			fired = append(fired, schedule+" "+key.UTC().Format(time.TimeOnly))
			if schedule == "stuck" {
				return errors.New("the store does not answer")
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
	if failed := w.handle(nightly, stuck); !slices.Equal(failed, []string{stuck.MessageId}) {
		t.Errorf("got %v back, want %s", failed, stuck.MessageId)
	}
	if slices.Sort(fired); !slices.Equal(fired, []string{"nightly 03:04:05", "stuck 03:04:05"}) {
		t.Errorf("fired were %q", fired)
	}
}
