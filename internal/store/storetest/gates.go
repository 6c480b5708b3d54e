package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// gateRules hold a store that is a store.Gates; they skip any other.
func gateRules() []rule {
	return rulesOf(nil, []portRule[store.Gates]{
		{"a gate at which no attempt ever stood is empty", gateEmpty},
		{"a permit is read as it was put, by its number, until it is freed", permitPut},
		{"only one of two puts in the place of a permit wins", permitConflict},
		{"a put of a permit that is made twice succeeds twice", permitTwice},
		{"a token is put only over the very one that was read", tokenConflict},
		{"of many who want a permit exactly one gets it", permitRace},
		{"gates are kept apart by agent", gatesApart},
		{"gates of the values of an agent are kept apart, from its own, too", valuesApart},
		{"the gates of values that have permits or tickets are found one after the other", gatesFound},
		{"tickets are read by their rank, undos first, and no more than asked for", ticketsRanked},
		{"the first ticket behind a rank is read", ticketBehind},
		{"the first tickets are read behind many permits", ticketsBehindPermits},
		{"a ticket of the same rank takes the place of the one that waits", ticketEntersAgain},
		{"a ticket leaves once", ticketLeaves},
		{"of many who let a ticket leave exactly one does", ticketRace},
		{"the tickets that wait are counted, and no more than asked for", ticketsCounted},
		{"a permit and a ticket may have the longest names", gateLongest},
		{"a gate is there after the store was opened again", gateKept},
	})
}

// gated returns the name of an agent of this test.
func (w *world) gated(name string) string { return "A-" + w.prefix + "_" + name }

// ticket returns one of the forward attempt of a job that came to a gate after so long.
func (w *world) ticket(name string, after time.Duration) job.Ticket {
	return job.Ticket{Job: w.id(name), Birth: "birth-" + w.prefix, Step: "charge", Attempt: 1, Since: w.at(after), Rev: 3}
}

// permit returns one that the attempt of a ticket of this name has.
func (w *world) permit(n int, name string) job.Permit {
	return job.Permit{N: n, Ticket: w.ticket(name, 0), At: w.at(time.Second)}
}

// give puts a permit that is free.
func (w *world) give(g store.Gates, agent string, p job.Permit) {
	w.Helper()
	w.want("put a permit", g.PutPermit(w.ctx, agent, job.Permit{N: p.N}, p), nil)
}

func (w *world) enter(g store.Gates, agent string, all ...job.Ticket) {
	w.Helper()
	for _, t := range all {
		w.want("enter", g.Enter(w.ctx, agent, t), nil)
	}
}

// sameGate fails the test unless a gate has these permits and these first tickets.
func (w *world) sameGate(g store.Gates, agent string, most int, want store.Gate) {
	w.Helper()
	got, err := g.Gate(w.ctx, agent, most)
	w.want("read the gate", err, nil)
	// Concat makes nil of what is empty.
	w.same("permits", slices.Concat(got.Permits), slices.Concat(want.Permits))
	w.same("tickets", slices.Concat(got.Waiting), slices.Concat(want.Waiting))
}

func (w *world) waiting(g store.Gates, agent string, most, want int) {
	w.Helper()
	n, err := g.CountWaiting(w.ctx, agent, most)
	w.want("count", err, nil)
	w.same(fmt.Sprint("tickets, at most ", most), n, want)
}

func gateEmpty(w *world, g store.Gates) {
	agent := w.gated("a")
	w.sameGate(g, agent, 10, store.Gate{})
	w.waiting(g, agent, 10, 0)
	w.want("leave", g.Leave(w.ctx, agent, w.ticket("a", 0)), store.ErrNotFound)
	w.want("free what is free", g.PutPermit(w.ctx, agent, w.permit(0, "a"), job.Permit{}), nil)
	w.sameGate(g, agent, 10, store.Gate{})
}

func permitPut(w *world, g store.Gates) {
	agent := w.gated("a")
	ten, two, zero := w.permit(10, "a"), w.permit(2, "b"), w.permit(0, "c")
	two.Ticket.Undo, two.Ticket.Attempt = true, 7
	two.At = w.at(time.Minute + time.Millisecond)
	two.Turns = job.Turns{Given: 1 << 60, Last: [3]string{"", two.Ticket.Crowd()}, At: [3]int64{7}, Risen: [3]string{"~"}}
	for i, p := range []job.Permit{ten, two, zero} {
		w.give(g, agent, p)
		w.sameGate(g, agent, 1, store.Gate{Permits: [][]job.Permit{{ten}, {two, ten}, {zero, two, ten}}[i]})
	}
	next := w.permit(2, "d")
	w.want("put over another", g.PutPermit(w.ctx, agent, two, next), nil)
	w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{zero, next, ten}})
	w.want("free", g.PutPermit(w.ctx, agent, next, job.Permit{N: 2}), nil)
	w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{zero, ten}})
	w.give(g, agent, next)
	w.sameGate(g, agent, 0, store.Gate{Permits: []job.Permit{zero, next, ten}})
}

func permitConflict(w *world, g store.Gates) {
	agent := w.gated("a")
	first, second := w.permit(1, "a"), w.permit(1, "b")
	w.give(g, agent, first)
	free, newer, older := job.Permit{N: 1}, first, first
	newer.Ticket.Rev++
	older.Ticket.Birth = "another"
	for what, was := range map[string]job.Permit{"a free one": free, "one of another": w.permit(1, "c"), "one of another revision": newer, "one of another birth": older} {
		w.want("put over "+what, g.PutPermit(w.ctx, agent, was, second), store.ErrConflict)
		if !was.Free() {
			w.want("free "+what, g.PutPermit(w.ctx, agent, was, free), store.ErrConflict)
		}
	}
	w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{first}})
	w.want("free", g.PutPermit(w.ctx, agent, first, free), nil)
	w.want("put over one that is free by now", g.PutPermit(w.ctx, agent, first, second), store.ErrConflict)
	w.sameGate(g, agent, 1, store.Gate{})
}

func tokenConflict(w *world, g store.Gates) {
	agent := w.gated("a")
	held, first := w.permit(1, "a"), w.permit(job.FirstToken, "a")
	later, told := first, first
	later.At, told.Told = w.at(time.Minute), true
	w.give(g, agent, held)
	for _, p := range []job.Permit{first, later, told} {
		w.give(g, agent, p)
		w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{held, p}})
		for _, was := range []job.Permit{first, later, told} {
			if was != p {
				w.want("put over one taken at another time or otherwise", g.PutPermit(w.ctx, agent, was, w.permit(job.FirstToken, "b")), store.ErrConflict)
			}
		}
		w.want("put it again", g.PutPermit(w.ctx, agent, p, p), nil)
		w.want("free", g.PutPermit(w.ctx, agent, p, job.Permit{N: p.N}), nil)
	}
	w.give(g, agent, told)
	w.want("take it anew", g.PutPermit(w.ctx, agent, told, later), nil)
	w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{held, later}})
}

func permitTwice(w *world, g store.Gates) {
	agent := w.gated("a")
	first, second := w.permit(1, "a"), w.permit(1, "b")
	for range 2 {
		w.give(g, agent, first)
	}
	w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{first}})
	for range 2 {
		w.want("put over another", g.PutPermit(w.ctx, agent, first, second), nil)
	}
	w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{second}})
	for range 2 {
		w.want("free", g.PutPermit(w.ctx, agent, second, job.Permit{N: 1}), nil)
	}
	w.sameGate(g, agent, 1, store.Gate{})
}

// racers is how many callers a race has.
const racers = 16

// race makes a call of each of many at once, and returns those that succeeded. The others must get this error.
func (w *world) race(lost error, call func(i int) error) (won []int) {
	w.Helper()
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	for i, err := range errs {
		if err == nil {
			won = append(won, i)
		} else if !errors.Is(err, lost) {
			w.Errorf("call %d: got %v, want %v", i, err, lost)
		}
	}
	return won
}

func permitRace(w *world, g store.Gates) {
	agent := w.gated("a")
	was := job.Permit{N: 3}
	for round := range 3 {
		one := func(i int) job.Permit { return w.permit(3, fmt.Sprint(round, "-", i)) }
		won := w.race(store.ErrConflict, func(i int) error { return g.PutPermit(w.ctx, agent, was, one(i)) })
		if len(won) != 1 {
			w.Fatalf("round %d: %v got the permit, want one", round, won)
		}
		was = one(won[0])
		w.sameGate(g, agent, 1, store.Gate{Permits: []job.Permit{was}})
	}
}

func gatesApart(w *world, g store.Gates) {
	a, b := w.gated("a"), w.gated("ab")
	first, second := w.permit(1, "a"), w.permit(1, "b")
	w.give(g, a, first)
	w.give(g, b, second)
	w.enter(g, a, w.ticket("c", 0))
	w.want("leave the other's", g.Leave(w.ctx, b, w.ticket("c", 0)), store.ErrNotFound)
	w.enter(g, b, w.ticket("d", 0))
	w.sameGate(g, a, 5, store.Gate{Permits: []job.Permit{first}, Waiting: []job.Ticket{w.ticket("c", 0)}})
	w.sameGate(g, b, 5, store.Gate{Permits: []job.Permit{second}, Waiting: []job.Ticket{w.ticket("d", 0)}})
	w.sameGate(g, strings.ToLower(a), 5, store.Gate{})
	w.waiting(g, a, 5, 1)
}

func valuesApart(w *world, g store.Gates) {
	agent := w.gated("a")
	all := []string{agent, agent + "/0a", agent + "/0a1", agent + "/0b", w.gated("a0") + "/0a"}
	for i, gate := range all {
		w.give(g, gate, w.permit(i%2, fmt.Sprint("p", i)))
		w.enter(g, gate, w.ticket("t", time.Duration(i)*time.Minute), w.ticket("u", time.Duration(i)*time.Minute+time.Second))
	}
	for i, gate := range all {
		first, second := w.ticket("t", time.Duration(i)*time.Minute), w.ticket("u", time.Duration(i)*time.Minute+time.Second)
		w.sameGate(g, gate, 5, store.Gate{Permits: []job.Permit{w.permit(i%2, fmt.Sprint("p", i))}, Waiting: []job.Ticket{first, second}})
		w.waiting(g, gate, 5, 2)
		for rank, want := range map[string]job.Ticket{"": first, first.Rank(): second, second.Rank(): {}} {
			got, err := g.Behind(w.ctx, gate, rank)
			w.want("read behind", err, nil)
			w.same("ticket of "+gate+" behind "+rank, got, want)
		}
	}
	w.want("leave", g.Leave(w.ctx, all[1], w.ticket("t", time.Minute)), nil)
	w.want("leave the other's", g.Leave(w.ctx, all[2], w.ticket("t", time.Minute)), store.ErrNotFound)
	w.want("free the other's", g.PutPermit(w.ctx, all[2], w.permit(0, "p0"), job.Permit{}), store.ErrConflict)
}

func gatesFound(w *world, g store.Gates) {
	agent := w.gated("a")
	found := func(from string, want ...string) {
		w.Helper()
		for _, value := range append(want, "") {
			gate, err := g.NextGate(w.ctx, agent, from)
			w.want("find a gate", err, nil)
			if value == "" {
				w.same("gate behind the last", gate, "")
				break
			}
			w.same("gate behind "+from, gate, agent+"/"+value)
			from = value
		}
	}
	w.give(g, agent, w.permit(0, "p"))
	w.enter(g, agent, w.ticket("t", 0))
	for _, other := range []string{w.gated("a0") + "/0a", w.gated("A") + "/0a", w.gated("a-") + "/0a", w.gated("")} {
		w.give(g, other, w.permit(0, "p"))
		w.enter(g, other, w.ticket("t", 0))
	}
	found("")
	w.give(g, agent+"/f0", w.permit(7, "p"))
	w.enter(g, agent+"/0a", w.ticket("t", 0), w.ticket("u", 0))
	w.enter(g, agent+"/9", w.ticket("t", 0))
	w.give(g, agent+"/0a1", w.permit(0, "p"))
	w.give(g, agent+"/0a1", w.permit(1, "q"))
	found("", "0a", "0a1", "9", "f0")
	found("0a0", "0a1", "9", "f0")
	found("9", "f0")
	w.want("free", g.PutPermit(w.ctx, agent+"/f0", w.permit(7, "p"), job.Permit{N: 7}), nil)
	w.want("leave", g.Leave(w.ctx, agent+"/0a", w.ticket("t", 0)), nil)
	w.want("leave", g.Leave(w.ctx, agent+"/9", w.ticket("t", 0)), nil)
	found("", "0a", "0a1")
}

func ticketsRanked(w *world, g store.Gates) {
	agent := w.gated("a")
	last, undone, before := w.ticket("a", time.Hour), w.ticket("b", 2*time.Hour), w.ticket("c", time.Hour-time.Millisecond)
	undone.Undo = true
	earlier := w.ticket("d", 3*time.Second)
	other, urgent, idle, acme := last, w.ticket("e", 3*time.Hour), w.ticket("f", 0), w.ticket("g", 0)
	other.Step, urgent.Priority, idle.Priority, acme.Tenant = "notify", makegood.PriorityUrgent, makegood.PriorityIdle, "acme"
	want := []job.Ticket{undone, urgent, acme, earlier, before, last, other, idle}
	slices.SortStableFunc(want[2:7], func(a, b job.Ticket) int { return strings.Compare(a.Crowd(), b.Crowd()) })
	w.enter(g, agent, other, idle, last, undone, before, acme, urgent, earlier)
	for _, most := range []int{0, 1, 2, 4, 5, 8, 9, 100} {
		w.sameGate(g, agent, most, store.Gate{Waiting: want[:min(most, len(want))]})
	}
}

func ticketBehind(w *world, g store.Gates) {
	agent := w.gated("a")
	behind := func(rank string, want job.Ticket) {
		w.Helper()
		got, err := g.Behind(w.ctx, agent, rank)
		w.want("read the ticket behind "+rank, err, nil)
		w.same("the ticket behind "+rank, got, want)
	}
	behind("", job.Ticket{})
	w.give(g, agent, w.permit(0, "p"))
	behind("", job.Ticket{})
	first, second := w.ticket("a", 0), w.ticket("b", time.Second)
	w.enter(g, agent, second, first)
	w.enter(g, w.gated("b"), w.ticket("c", time.Minute))
	behind("", first)
	behind(job.RankOf(first.Class(), ""), first)
	behind(first.Rank(), second)
	behind(first.Rank()+"/", second)
	behind(second.Rank(), job.Ticket{})
	behind(job.RankOf(first.Class()+1, ""), job.Ticket{})
	w.want("leave", g.Leave(w.ctx, agent, first), nil)
	behind("", second)
}

func ticketsBehindPermits(w *world, g store.Gates) {
	agent := w.gated("a")
	var all store.Gate
	for i := range 120 {
		all.Permits = append(all.Permits, w.permit(i, fmt.Sprint("p", i)))
		w.give(g, agent, all.Permits[i])
	}
	for i := range 20 {
		all.Waiting = append(all.Waiting, w.ticket(fmt.Sprint("t", i), time.Duration(i)*time.Second))
		w.enter(g, agent, all.Waiting[i])
	}
	for _, most := range []int{0, 1, 3, 20, 21} {
		w.sameGate(g, agent, most, store.Gate{Permits: all.Permits, Waiting: all.Waiting[:min(most, 20)]})
	}
}

func ticketEntersAgain(w *world, g store.Gates) {
	agent := w.gated("a")
	first := w.ticket("a", 0)
	w.enter(g, agent, first, first)
	w.sameGate(g, agent, 5, store.Gate{Waiting: []job.Ticket{first}})
	again := first
	again.Rev += 4
	w.enter(g, agent, again)
	w.sameGate(g, agent, 5, store.Gate{Waiting: []job.Ticket{again}})
	w.want("leave by the ticket of before", g.Leave(w.ctx, agent, first), nil)
	w.sameGate(g, agent, 5, store.Gate{})
}

func ticketLeaves(w *world, g store.Gates) {
	agent := w.gated("a")
	first, second := w.ticket("a", 0), w.ticket("b", 0)
	w.enter(g, agent, first, second)
	w.want("leave", g.Leave(w.ctx, agent, first), nil)
	w.want("leave again", g.Leave(w.ctx, agent, first), store.ErrNotFound)
	w.sameGate(g, agent, 5, store.Gate{Waiting: []job.Ticket{second}})
	w.enter(g, agent, first)
	w.sameGate(g, agent, 5, store.Gate{Waiting: []job.Ticket{first, second}})
}

func ticketRace(w *world, g store.Gates) {
	agent := w.gated("a")
	w.enter(g, agent, w.ticket("a", 0), w.ticket("b", 0))
	won := w.race(store.ErrNotFound, func(int) error { return g.Leave(w.ctx, agent, w.ticket("a", 0)) })
	if len(won) != 1 {
		w.Fatalf("%v let the ticket leave, want one", won)
	}
	w.sameGate(g, agent, 5, store.Gate{Waiting: []job.Ticket{w.ticket("b", 0)}})
}

func ticketsCounted(w *world, g store.Gates) {
	agent := w.gated("a")
	w.give(g, agent, w.permit(0, "p"))
	for i := range 5 {
		w.enter(g, agent, w.ticket(fmt.Sprint("t", i), time.Duration(i)*time.Second))
	}
	for most, want := range map[int]int{1: 1, 3: 3, 5: 5, 6: 5, 10_000: 5} {
		w.waiting(g, agent, most, want)
	}
	w.want("leave", g.Leave(w.ctx, agent, w.ticket("t0", 0)), nil)
	w.waiting(g, agent, 10, 4)
}

func gateLongest(w *world, g store.Gates) {
	agent := w.gated(strings.Repeat("z", limits.MaxNameBytes))[:limits.MaxNameBytes] + "/" + strings.Repeat("f", 32)
	long := w.ticket("a.b:c_D-~9", time.Minute)
	long.Job += strings.Repeat("_~9", makegood.MaxJobIDBytes)
	long.Job = long.Job[:makegood.MaxJobIDBytes]
	long.Step = "a" + strings.Repeat("_9", limits.MaxNameBytes)[:limits.MaxNameBytes-1]
	long.Attempt, long.Rev, long.Tenant = 1<<31-1, 1<<62, strings.Repeat("z", limits.MaxNameBytes)
	p := job.Permit{N: 999_999, Ticket: long, At: w.at(0)}
	w.give(g, agent, p)
	w.enter(g, agent, long)
	w.sameGate(g, agent, 5, store.Gate{Permits: []job.Permit{p}, Waiting: []job.Ticket{long}})
	w.want("leave", g.Leave(w.ctx, agent, long), nil)
	w.want("free", g.PutPermit(w.ctx, agent, p, job.Permit{N: p.N}), nil)
	w.sameGate(g, agent, 5, store.Gate{})
}

func gateKept(w *world, g store.Gates) {
	if w.harness.Reopen == nil {
		w.Skip("this store keeps no data")
	}
	agent := w.gated("a")
	want := store.Gate{Permits: []job.Permit{w.permit(1, "a")}, Waiting: []job.Ticket{w.ticket("b", 0)}}
	w.give(g, agent, want.Permits[0])
	w.enter(g, agent, want.Waiting[0])
	w.store = w.harness.Reopen()
	w.sameGate(also[store.Gates](w), agent, 5, want)
}
