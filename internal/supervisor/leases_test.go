package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// brokenLeases cannot be asked.
type brokenLeases struct{}

func (brokenLeases) TakeLease(context.Context, string, string, time.Time, time.Time) error {
	return errors.New("the table is gone")
}
func (brokenLeases) ReleaseLease(context.Context, string, string) error { return nil }

// A shard that another Supervisor has leased is left to it, until its lease has run out; the shards
// that are free are swept, and given up at once.
func TestASweepLeavesAShardToWhoHasLeasedIt(t *testing.T) {
	w := newWorld(t, 2)
	w.overdue(0, 3)
	w.overdue(1, 2)
	leases := w.shards.stores[0]
	w.config.Leases, w.config.Holder = leases, "me"
	if err := leases.TakeLease(t.Context(), "sweep-0", "another", noon, noon.Add(supervisor.LeaseFor)); err != nil {
		t.Fatal(err)
	}
	w.sweep(supervisor.Result{Overdue: 2, Sent: 2, Leased: 1})
	w.config.Now = func() time.Time { return noon.Add(supervisor.LeaseFor) }
	w.sweep(supervisor.Result{Overdue: 5, Sent: 5})
	for _, name := range []string{"sweep-0", "sweep-1"} {
		if err := leases.TakeLease(t.Context(), name, "a third", noon, noon.Add(time.Minute)); err != nil {
			t.Errorf("%s after the sweep: got %v, want it given up", name, err)
		}
	}
}

// Leases only save work. Where they cannot be asked for, the sweep goes on.
func TestASweepGoesOnWithoutLeases(t *testing.T) {
	w := newWorld(t, 1)
	w.overdue(0, 3)
	w.config.Leases = brokenLeases{}
	w.sweep(supervisor.Result{Overdue: 3, Sent: 3})
}

var _ store.Leases = brokenLeases{}
