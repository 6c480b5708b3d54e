// Package gate lets so many attempts of an agent be with it at once. Each of them has a permit (store.Gates) from
// before its task is sent until it is over; the others wait before the gate, as tickets.
//
// # Exact
//
// A permit is an item of its own with a number below the limit, written on the condition that it is free: so there are
// never more than the limit. A limit that was lowered leaves permits with higher numbers; until their attempts are
// over, fewer of the lower numbers are given out (room). Whether an attempt is over is a question about its job,
// so no permit is lost, and none is freed by a clock: its process dies, and the next look at the gate asks the job
// (Look).
//
// # Woken
//
// A process that enters a ticket reads the gate after that, and one that frees a permit does, too. So the later of the
// two sees both. The attempt that gets a permit is told by a hint, and its job looks for itself at doubling intervals.
package gate

import (
	"math/bits"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// move is a change of one permit: it is freed, given, or handed to the next ticket. Or a ticket goes without one.
type move struct {
	was, is job.Permit
	// leaves is the ticket that stops waiting; the zero value: none does.
	leaves job.Ticket
}

// permits reports whether the move changes a permit.
func (m move) permits() bool { return m.was.Ticket != m.is.Ticket }

// plan returns what a gate lets happen now, where the first ticket that waits is the next: one at a time is let in.
// over reports whether an attempt is over.
func plan(g store.Gate, most int, over func(job.Ticket) bool, now time.Time) (moves []move) {
	below, taken := room(g, most, over)
	var next job.Ticket
	if len(g.Waiting) > 0 {
		if next = g.Waiting[0]; over(next) || holds(g.Permits, next) { // It may wait twice.
			return []move{{leaves: next}}
		}
	}
	admit := func(was job.Permit) []move {
		return append(moves, move{was: was, is: job.Permit{N: was.N, Ticket: next, At: now}, leaves: next})
	}
	for _, p := range g.Permits {
		if !over(p.Ticket) {
			continue
		}
		if len(g.Waiting) > 0 && p.N < below {
			return admit(p)
		}
		moves = append(moves, move{was: p, is: job.Permit{N: p.N}})
	}
	for n := range below {
		if len(g.Waiting) > 0 && !taken[n] {
			return admit(job.Permit{N: n})
		}
	}
	return moves
}

// room returns below which number permits may be given, and the numbers that are taken. Together with the permits from
// there on, which may be of a limit that was higher, all of them are no more than the limit. The number only rises
// while attempts end, so that decisions over older states give no more.
func room(g store.Gate, most int, over func(job.Ticket) bool) (below int, taken map[int]bool) {
	taken = map[int]bool{}
	var stand []int
	for _, p := range g.Permits {
		if taken[p.N] = true; !over(p.Ticket) {
			stand = append(stand, p.N)
		}
	}
	for below = most; below > 0; below-- {
		above := 0
		for _, n := range stand {
			if n >= below {
				above++
			}
		}
		if below+above <= most {
			break
		}
	}
	return below, taken
}

// free returns the lowest number that may be given; ok is false if there is none.
func free(g store.Gate, most int) (n int, ok bool) {
	below, taken := room(g, most, func(job.Ticket) bool { return false })
	for n := range below {
		if !taken[n] {
			return n, true
		}
	}
	return 0, false
}

// holds reports whether the attempt of a ticket has a permit.
func holds(permits []job.Permit, t job.Ticket) bool {
	return slices.ContainsFunc(permits, func(p job.Permit) bool { return p.Ticket.Same(t) })
}

// isDue reports whether the attempt of a permit is looked at that has this age, and had another at the look before: at
// the ages of 1, 2, 4 ... 32 and 60, 120 ... times every. A look may come late, so it has what came due since the one
// before it.
func isDue(before, age, every time.Duration) bool { return looks(age, every) > looks(before, every) }

// looks returns how many looks are due until an age.
func looks(age, every time.Duration) int {
	n := max(0, int(age/every))
	return bits.Len(uint(min(n, 32))) + n/60
}
