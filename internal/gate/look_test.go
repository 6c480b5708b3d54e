package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// The gates of more values than a look comes to each have a permit of an attempt that is over, and a ticket of one. In
// time looks free all of them, and Open does so at once. No lock is kept of a gate.
func TestALookComesToTheGatesOfAllValues(t *testing.T) {
	for _, opened := range []bool{false, true} {
		w := newWorld(1, 1, 1)
		at := 5 * limits.MaxGatesLook
		for i := range at {
			value := fmt.Sprintf("a/%08x", i*((1<<32)/at))
			over := job.Ticket{Job: "j0", Birth: "another", Step: "s", Attempt: 1, Since: w.now, Rev: int64(i)}
			w.store.PutPermit(t.Context(), value, job.Permit{}, job.Permit{Ticket: over, At: w.now})
			if i%2 == 0 {
				over.Attempt++
				w.store.Enter(t.Context(), value, over)
			}
		}
		count := func() (underWay, waiting int, more bool) {
			var permits []job.Permit
			w.start("count", func(_ *process, k *Keeper) {
				var err error
				if permits, waiting, more, err = k.Stand(context.Background(), "a", 10_000); err != nil {
					t.Error(err)
				}
			})
			w.run()
			return len(permits), waiting, more
		}
		if underWay, waiting, more := count(); underWay != limits.MaxGatesLook || waiting == 0 || !more {
			t.Errorf("%d and %d are counted, more: %t; want %d, and more", underWay, waiting, more, limits.MaxGatesLook)
		}
		looks := 0
		for left := true; left && looks < 200; looks++ {
			w.now = w.now.Add(limits.GateLook)
			w.start("look", func(_ *process, k *Keeper) {
				do := k.Look(context.Background(), "a", job.Limit{Most: 1}, time.Time{})
				if opened {
					do = k.Open(context.Background(), "a")
				}
				if do != nil || len(k.busy) > 0 {
					t.Errorf("%v, and %d locks", do, len(k.busy))
				}
			})
			w.run()
			underWay, waiting, _ := count()
			left = underWay+waiting > 0
		}
		if t.Logf("%d looks", looks); opened && looks != 1 || looks == 200 {
			t.Errorf("%d looks, opened: %t", looks, opened)
		}
	}
}

// A gate is opened for all that wait, however many they are.
func TestAGateIsOpenedForAll(t *testing.T) {
	l := newLine(t, 1)
	l.waits(maxPasses*page+1, job.Ticket{Tenant: "a"})
	if err := l.Open(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if n, err := l.store.CountWaiting(t.Context(), "a", 1); err != nil || n != 0 {
		t.Errorf("%d wait, %v", n, err)
	}
}

// A process whose clock was years ahead has given a permit, or a token: a gate does not stand still until then.
func TestAClockThatWasAheadStopsNoGate(t *testing.T) {
	for _, limit := range []job.Limit{{Most: 1}, {Rate: 1, Per: time.Minute, Burst: 1}} {
		w := newWorld(1, 2, 1)
		right := w.now
		takes := func(id string, want bool) {
			t.Helper()
			w.start("take", func(_ *process, k *Keeper) {
				if ok, err := k.Take(context.Background(), "a", limit, w.jobs[id].ticket(1, w.now, 1)); ok != want || err != nil {
					t.Errorf("%+v: the attempt of %s goes: %t, %v; want %t", limit, id, ok, err, want)
				}
			})
			w.run()
		}
		w.now = right.AddDate(5, 0, 0)
		w.rate = limit
		takes("j0", true)
		w.now = right.Add(time.Second)
		w.jobs["j0"].rev++ // The save that was to open its attempt has failed.
		w.start("look", func(_ *process, k *Keeper) {
			if err := k.Look(context.Background(), "a", limit, right); err != nil {
				t.Error(err)
			}
		})
		w.run()
		takes("j1", true)
	}
}
