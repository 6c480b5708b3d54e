package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// holdRules hold a store that is a store.Holds; they skip any other. All tests of a table share its one item.
func holdRules() []rule {
	restore := func(w *world, s store.Holds) {
		w.Cleanup(func() { w.changeHolds(s, func(others job.Holds) job.Holds { return others }) })
	}
	return rulesOf(restore, []portRule[store.Holds]{
		{"what is held is read as it was put, and counts its writes", holdsPut},
		{"only one of two writes of a revision of what is held wins", holdsConflict},
		{"of many who pause something at once none is lost", holdsRace},
		{"what a later release stored of a hold is kept", holdsKept},
		{"what is held is due when the next of its jobs go on, and else not", holdsDue},
		{"the jobs that a hold keeps still are found, oldest first", heldFound},
		{"a job that goes on, or is parked, is not found by what held it", heldGone},
		{"a job that is held is listed as paused, on whatever page", heldListed},
	})
}

// hold returns one of this test.
func (w *world) hold(name string) job.Hold {
	return job.Hold{
		Kind: makegood.HoldAgent, Name: "a" + w.prefix + "-" + name, Since: w.at(time.Second), By: "anna", Reason: "the bank is \"down\"",
	}
}

// mine are the holds of this test, others all else.
func (w *world) mine(all job.Holds) (mine, others job.Holds) {
	for _, h := range all {
		if strings.Contains(h.Name, w.prefix) {
			mine = append(mine, h)
		} else {
			others = append(others, h)
		}
	}
	return mine, others
}

// changeHolds puts those that change makes of the others, until no other test has come between.
func (w *world) changeHolds(s store.Holds, change func(others job.Holds) job.Holds) store.Held {
	w.Helper()
	for range 100 {
		held, err := s.Holds(w.ctx, true)
		w.want("read holds", err, nil)
		_, others := w.mine(held.Holds)
		held.Holds = change(others)
		if err = s.PutHolds(w.ctx, held); err == nil {
			held.Rev++
			return held
		}
		w.want("put holds", err, store.ErrConflict)
	}
	w.Fatal("put holds: others come between for ever")
	return store.Held{}
}

func (w *world) readHolds(s store.Holds) store.Held {
	w.Helper()
	held, err := s.Holds(w.ctx, true)
	w.want("read holds", err, nil)
	return held
}

func holdsPut(w *world, s store.Holds) {
	released := w.hold("b")
	released.Kind, released.ReleasedAt, released.ReleasedBy = makegood.HoldWorkflow, w.at(time.Minute), "bert"
	released.Next, released.Steps, released.Resumed = w.at(2*time.Minute), 3, 420
	want := job.Holds{w.hold("a"), released}
	put := w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, want...) })
	got, _ := w.mine(w.readHolds(s).Holds)
	w.same("the holds", got, want)
	again := w.changeHolds(s, func(others job.Holds) job.Holds { return others })
	if again.Rev <= put.Rev {
		w.Fatalf("got revision %d after %d, want a higher one", again.Rev, put.Rev)
	}
	got, _ = w.mine(w.readHolds(s).Holds)
	w.same("how many are left", len(got), 0)
}

func holdsConflict(w *world, s store.Holds) {
	first := w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, w.hold("a")) })
	w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, w.hold("b")) })
	first.Holds = append(slices.Clone(first.Holds), w.hold("c"))
	w.want("put the same revision again", s.PutHolds(w.ctx, first), store.ErrConflict)
	w.want("put as if there were none", s.PutHolds(w.ctx, store.Held{Holds: first.Holds}), store.ErrConflict)
	got, _ := w.mine(w.readHolds(s).Holds)
	w.same("the holds", got, job.Holds{w.hold("b")})
}

func holdsRace(w *world, s store.Holds) {
	const many = 8
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			for {
				held, err := s.Holds(w.ctx, true)
				if err != nil {
					w.Errorf("read: %v", err)
					return
				}
				held.Holds = append(slices.Clone(held.Holds), w.hold(fmt.Sprint(i)))
				if s.PutHolds(w.ctx, held) == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	got, _ := w.mine(w.readHolds(s).Holds)
	w.same("how many are held", len(got), many)
}

func holdsKept(w *world, s store.Holds) {
	one := w.hold("a")
	one.Kept = `{"tenant":"acme"}`
	w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, one) })
	got, _ := w.mine(w.readHolds(s).Holds)
	w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, got...) })
	got, _ = w.mine(w.readHolds(s).Holds)
	w.same("what is kept", got, job.Holds{one})
}

func holdsDue(w *world, s store.Holds) {
	seen := func(what string, now time.Time, want bool) {
		w.Helper()
		w.eventually(what, func() (got, wanted any) { return w.dueHolds(now), want })
	}
	w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, w.hold("a")) })
	seen("due while it holds", w.at(time.Hour), false)
	released := w.hold("a")
	released.ReleasedAt, released.Next = w.at(0), w.at(time.Minute)
	later := w.hold("b")
	later.ReleasedAt, later.Next = w.at(0), w.at(time.Hour)
	w.changeHolds(s, func(others job.Holds) job.Holds { return append(others, later, released) })
	seen("due a millisecond before its key", w.at(time.Minute-time.Millisecond), false)
	seen("due at its key", w.at(time.Minute), true)
	w.changeHolds(s, func(others job.Holds) job.Holds { return others })
	seen("due after it is gone", w.at(time.Hour), false)
}

// dueHolds reports whether the holds are due, by a key of this test, and not before it again.
func (w *world) dueHolds(now time.Time) bool {
	due := false
	for shard := range w.store.Shards() {
		after := store.Entry{CompleteBy: w.at(-time.Hour)}
		for {
			page, err := w.store.Due(w.ctx, shard, now, after, 2)
			w.want("due", err, nil)
			for _, e := range page {
				if e.Holds && due {
					w.Fatal("the holds are due twice")
				}
				due = due || e.Holds
				after = e
			}
			if len(page) < 2 {
				break
			}
		}
	}
	return due
}

// held returns a job that stands still for a hold.
func (w *world) held(name string, born time.Duration, hold job.Hold) job.Job {
	j := w.job(name)
	j.CreatedAt, j.PausedAt, j.CompleteBy = w.at(born), w.at(time.Minute), w.at(24*time.Hour)
	j.HeldBy, j.HeldReason = hold.String(), hold.Why()
	return j
}

func (w *world) heldJobs(s store.Holds, hold job.Hold, limit int) []string {
	w.Helper()
	ids, err := s.HeldJobs(w.ctx, hold.String(), limit)
	w.want("held jobs", err, nil)
	return ids
}

func heldFound(w *world, s store.Holds) {
	a, b := w.hold("a"), w.hold("ab")
	var want []string
	for i := range 5 {
		want = append(want, w.create(w.held(fmt.Sprint("a", i), time.Duration(i)*time.Second, a)).ID)
	}
	other := w.create(w.held("b", 0, b))
	byHand := w.job("by-hand")
	byHand.PausedAt = w.at(time.Minute)
	w.create(byHand)
	late := w.create(w.job("late"))
	late.PausedAt, late.HeldBy = w.at(time.Minute), b.String()
	w.mustSave(late)
	w.eventually("held by a", func() (got, wanted any) { return w.heldJobs(s, a, 100), want })
	w.eventually("held by b", func() (got, wanted any) {
		ids := w.heldJobs(s, b, 100)
		slices.Sort(ids)
		return ids, []string{other.ID, late.ID}
	})
	w.same("the oldest two", w.heldJobs(s, a, 2), want[:2])
	w.eventually("how many", func() (got, wanted any) {
		all, err := s.CountHeld(w.ctx, a.String(), 100)
		w.want("count", err, nil)
		some, err := s.CountHeld(w.ctx, a.String(), 3)
		w.want("count three", err, nil)
		return []int{all, some}, []int{5, 3}
	})
	w.same("held by nothing", len(w.heldJobs(s, w.hold("none"), 100)), 0)
}

func heldGone(w *world, s store.Holds) {
	a, b := w.hold("a"), w.hold("b")
	goesOn := w.create(w.held("goes-on", 0, a))
	byPerson := w.create(w.held("by-person", time.Second, a))
	otherwise := w.create(w.held("otherwise", 2*time.Second, a))
	parked := w.create(w.held("parked", 3*time.Second, a))
	stays := w.create(w.held("stays", 4*time.Second, a))
	goesOn.PausedAt, goesOn.HeldBy, goesOn.HeldReason = time.Time{}, "", ""
	w.mustSave(goesOn)
	byPerson.HeldBy, byPerson.HeldReason = "", ""
	w.mustSave(byPerson)
	otherwise.HeldBy = b.String()
	w.mustSave(otherwise)
	w.want("park", w.store.Park(w.ctx, parked.ID, parked.CompleteBy, "damaged", w.at(time.Hour)), nil)
	w.eventually("held by a", func() (got, wanted any) { return w.heldJobs(s, a, 100), []string{stays.ID} })
	w.eventually("held by b", func() (got, wanted any) { return w.heldJobs(s, b, 100), []string{otherwise.ID} })
	goesOn = w.load(goesOn.ID)
	goesOn.PausedAt, goesOn.HeldBy = w.at(time.Hour), a.String()
	w.mustSave(goesOn)
	w.eventually("held by a again", func() (got, wanted any) { return w.heldJobs(s, a, 100), []string{goesOn.ID, stays.ID} })
}

func heldListed(w *world, _ store.Holds) {
	l := also[store.Lister](w)
	want := map[string]bool{}
	for i := range 3 {
		want[w.create(w.held(fmt.Sprint("a", i), time.Duration(i)*time.Second, w.hold("a"))).ID] = true
	}
	byHand := w.job("by-hand")
	byHand.PausedAt = w.at(time.Minute)
	want[w.create(byHand).ID] = true
	w.eventually("paused jobs", func() (got, wanted any) {
		seen := map[string]bool{}
		for cursor := ""; ; {
			page, err := l.ListJobs(w.ctx, store.Filter{Paused: true}, cursor, 2)
			w.want("list", err, nil)
			for _, one := range page.Jobs {
				if strings.Contains(one.ID, w.prefix) {
					seen[one.ID] = true
				}
			}
			if cursor = page.Cursor; cursor == "" {
				return seen, want
			}
		}
	})
}
