package gate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
)

// A permit whose attempt is over is found, however the looks at its gate fall: they come a little late each time, so
// that at no look its age is one of the ages at which it is looked at.
func TestEveryPermitIsLookedAtAgainAndAgain(t *testing.T) {
	for every := time.Minute; every <= 10*time.Minute; every += 7 * time.Second {
		for first := time.Duration(0); first < every; first += 11 * time.Second {
			looks, last := 0, time.Duration(0)
			for before, age := first-every, first; age < 10*time.Hour; before, age = age, age+every {
				if !isDue(before, age, time.Minute) {
					continue
				}
				if looks++; age-last > time.Hour+every {
					t.Fatalf("looks each %s, the first at %s: none is due from %s to %s", every, first, last, age)
				}
				last = age
			}
			if most := 7 + 10; looks < 9 || looks > most {
				t.Fatalf("looks each %s, the first at %s: %d are due in ten hours, want 9 to %d", every, first, looks, most)
			}
		}
	}
}

// A process that was answered with an error may have written a ticket all the same, and comes again with another.
func TestAnAttemptThatWaitsTwiceGetsOnePermit(t *testing.T) {
	ticket := func(id string, since int64) job.Ticket {
		return job.Ticket{Job: id, Birth: "b", Step: "s", Attempt: 1, Since: time.UnixMilli(since)}
	}
	g := store.Gate{Waiting: []job.Ticket{ticket("j0", 1), ticket("j0", 2), ticket("j1", 3)}}
	var got []string
	for len(g.Waiting) > 0 {
		for _, m := range plan(g, job.Limit{Most: 2}, nil, func(job.Ticket) bool { return false }, time.UnixMilli(9)) {
			if m.admits() {
				got = append(got, m.leaves.Job)
				g.Permits = append(g.Permits, m.permit.is)
			}
			g.Waiting = slices.DeleteFunc(g.Waiting, func(t job.Ticket) bool { return t == m.leaves })
		}
	}
	if len(got) != 2 || got[0] != "j0" || got[1] != "j1" {
		t.Errorf("got permits for %v, want one for j0 and one for j1", got)
	}
}

// When the limit is lowered from 3 to 2, and the attempt with the lowest number ends, two are with the agent still.
func TestALoweredLimitLetsNoneInWhileEnoughAreWithTheAgent(t *testing.T) {
	permit := func(n int) job.Permit { return job.Permit{N: n, Ticket: job.Ticket{Job: "j", Attempt: n + 1}} }
	next := job.Ticket{Job: "next", Attempt: 1}
	for _, c := range []struct {
		permits []job.Permit
		most    int
		admits  bool
	}{
		{[]job.Permit{permit(1), permit(2)}, 2, false},
		{[]job.Permit{permit(2)}, 2, true},
		{[]job.Permit{permit(1)}, 2, true},
		{[]job.Permit{permit(2), permit(3), permit(4)}, 3, false},
		{[]job.Permit{permit(2), permit(4)}, 3, true},
		{[]job.Permit{permit(5)}, 1, false},
	} {
		g := store.Gate{Permits: c.permits, Waiting: []job.Ticket{next}}
		moves := plan(g, job.Limit{Most: c.most}, nil, func(job.Ticket) bool { return false }, time.UnixMilli(9))
		if _, ok := free(c.permits, c.most); ok != c.admits || len(moves) > 0 != c.admits {
			t.Errorf("permits %+v, limit %d: one is free: %t, moves %+v; want that one is let in: %t", c.permits, c.most, ok, moves, c.admits)
		}
	}
}

// slow is a gate whose store does not answer.
type slow struct{ *memstore.Store }

func (slow) Gate(ctx context.Context, _ string, _ int) (store.Gate, error) {
	<-ctx.Done()
	return store.Gate{}, ctx.Err()
}

// An invocation that has no more time does not wait for another of its process, which may wait for its store for long.
func TestAGateIsNotWaitedForWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{memstore.New()}
		world := &process{}
		k := New(Config{Store: s, Jobs: world, Queue: world, Events: "events"})
		long, stop := context.WithCancel(t.Context())
		go func() { _, _ = k.Take(long, "a", job.Limit{Most: 1}, job.Ticket{Job: "j0"}) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := k.Take(short, "a", job.Limit{Most: 1}, job.Ticket{Job: "j1"})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > time.Second {
			t.Errorf("got %v after %s, want the end of its time after a second", err, took)
		}
		stop()
		synctest.Wait()
	})
}
