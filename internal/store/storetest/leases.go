package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// leaseRules hold a store that is a store.Leases; they skip any other.
func leaseRules() []rule {
	return rulesOf(nil, []portRule[store.Leases]{
		{"a lease has one holder until it runs out", leaseRunsOut},
		{"a holder extends its lease", leaseExtended},
		{"a lease that reaches further ahead than any may holds nobody off", leaseTooLong},
		{"a lease that is given up is free, and only its holder gives it up", leaseReleased},
		{"of many who want a lease exactly one gets it", leaseRace},
	})
}

func (w *world) lease(l store.Leases, holder string, now, until time.Duration) error {
	err := l.TakeLease(w.ctx, w.id("lease"), holder, w.base.Add(now), w.base.Add(until))
	if err != nil && !errors.Is(err, store.ErrTaken) {
		w.Fatalf("take lease: %v", err)
	}
	return err
}

// leases plays rows of requests: the holder, the time, the end, and whether it is to get the lease.
func (w *world) leases(l store.Leases, rows []leaseRow) {
	w.Helper()
	for i, r := range rows {
		if err := w.lease(l, r.holder, r.now, r.until); (err == nil) != r.gets {
			w.Errorf("row %d: %s asks at %v for until %v: got %v, want it given: %v", i, r.holder, r.now, r.until, err, r.gets)
		}
	}
}

type leaseRow struct {
	holder     string
	now, until time.Duration
	gets       bool
}

func leaseRunsOut(w *world, l store.Leases) {
	w.leases(l, []leaseRow{
		{"a", 0, 30 * time.Second, true},
		{"b", time.Second, time.Minute, false},
		{"b", 29*time.Second + 999*time.Millisecond, time.Minute, false},
		{"b", 30 * time.Second, time.Minute, true},
		{"a", 31 * time.Second, 2 * time.Minute, false},
	})
}

func leaseExtended(w *world, l store.Leases) {
	w.leases(l, []leaseRow{
		{"a", 0, 30 * time.Second, true},
		{"a", 20 * time.Second, 50 * time.Second, true},
		{"b", 40 * time.Second, time.Minute, false},
	})
}

// leaseTooLong: a clock that is wrong, or a thief, asks for years.
func leaseTooLong(w *world, l store.Leases) {
	const years = 30_000 * time.Hour
	w.leases(l, []leaseRow{
		{"a", 0, store.MaxLease, true},
		{"b", 0, time.Minute, false},
		{"a", 0, store.MaxLease + 2*time.Second, true},
		{"b", time.Second, time.Minute, true},
		{"a", 2 * time.Second, time.Minute, false},
		{"b", 2 * time.Second, years, true},
		{"a", 3 * time.Second, time.Minute, true},
	})
}

func leaseReleased(w *world, l store.Leases) {
	w.leases(l, []leaseRow{{"a", 0, time.Minute, true}})
	for _, holder := range []string{"b", "a", "a"} {
		if err := l.ReleaseLease(w.ctx, w.id("lease"), holder); err != nil {
			w.Fatal(err)
		}
		if holder == "b" {
			w.leases(l, []leaseRow{{"b", time.Second, time.Minute, false}})
		}
	}
	w.leases(l, []leaseRow{{"b", time.Second, time.Minute, true}})
}

func leaseRace(w *world, l store.Leases) {
	const many = 16
	won := make(chan string, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			holder := fmt.Sprint("h", i)
			err := l.TakeLease(w.ctx, w.id("lease"), holder, w.base, w.base.Add(time.Minute))
			if err == nil {
				won <- holder
			} else if !errors.Is(err, store.ErrTaken) {
				w.Errorf("take lease: %v", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		w.Errorf("%d got the lease, want 1", len(won))
	}
}
