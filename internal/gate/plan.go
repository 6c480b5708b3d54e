// Package gate lets so many attempts of an agent be with it at once, and so many begin in a time. Each of them has a
// permit (store.Gates) from before its task is sent until it is over, takes a token, or both; the others wait before
// the gate, as tickets.
//
// # Exact
//
// A permit is an item of its own with a number below the limit, written on the condition that it is free: so there are
// never more than the limit. A limit that was lowered leaves permits with higher numbers; until their attempts are
// over, fewer of the lower numbers are given out (room). Whether an attempt is over is a question about its job,
// so no permit is lost, and none is freed by a clock: its process dies, and the next look at the gate asks the job
// (Look). A token is taken for a time (job.Limit.Cools), by the clock of the process that takes it: there are as many
// as the burst, so no more attempts are admitted in any such time. An attempt that needs both takes its token just
// before its permit, and another one if it does not get that: a token is never kept for later.
//
// # Woken
//
// A process that enters a ticket reads the gate after that, and one that frees a permit does, too. So the later of the
// two sees both. The attempt that gets a permit is told by a hint, and its job looks for itself at doubling intervals.
// Where the first ticket waits for a token to cool, a hint to its job is delayed until then. The process sends it that
// made the ticket the first, or that freed the permit for which the ticket waited, too. When the job has passed the
// gate, it sends the next hint: so there are no more such hints than changes of a gate. A look sends a lost one again.
package gate

import (
	"math/bits"
	"slices"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// change puts one permit, or token, in the place of another. Two that are the same: there is no change.
type change struct{ was, is job.Permit }

// move has the changes of one turn: a permit is freed, given, or handed to the next ticket, or a token is taken.
type move struct {
	permit, token change
	// leaves is the ticket that stops waiting; the zero value: none does.
	leaves job.Ticket
}

// admits reports whether a ticket leaves with a permit or a token.
func (m move) admits() bool {
	return m.leaves != job.Ticket{} && (m.permit.was != m.permit.is || m.token.was != m.token.is)
}

// give returns the change that gives an attempt a permit, or a token.
func give(was job.Permit, t job.Ticket, now time.Time) change {
	return change{was, job.Permit{N: was.N, Ticket: t, At: now}}
}

// apart returns the permits and the tokens of a gate.
func apart(g store.Gate) (permits, tokens []job.Permit) {
	i := slices.IndexFunc(g.Permits, job.Permit.Token)
	if i < 0 {
		i = len(g.Permits)
	}
	return g.Permits[:i:i], g.Permits[i:len(g.Permits):len(g.Permits)]
}

// plan returns what a gate lets happen now, where the first ticket that waits is the next, with these tokens to take:
// one ticket at a time is let in. over reports whether an attempt is over.
func plan(g store.Gate, l job.Limit, cooled []job.Permit, over func(job.Ticket) bool, now time.Time) (moves []move) {
	permits, tokens := apart(g)
	below, taken := room(permits, l.Most, over)
	var free []job.Permit
	for _, p := range permits {
		switch {
		case !over(p.Ticket):
		case p.N < below:
			free = append(free, p)
		default:
			moves = append(moves, move{permit: change{p, job.Permit{N: p.N}}})
		}
	}
	for n := range below {
		if !taken[n] {
			free = append(free, job.Permit{N: n})
		}
	}
	if len(g.Waiting) > 0 {
		m := move{leaves: g.Waiting[0]}
		permit, token := needs(l, permits, tokens, m.leaves)
		if over(m.leaves) || !permit && !token { // It may wait twice.
			return []move{m}
		}
		if (len(free) > 0 || !permit) && (len(cooled) > 0 || !token) {
			if permit {
				m.permit = give(free[0], m.leaves, now)
			}
			if token {
				m.token = give(cooled[0], m.leaves, now)
				m.token.is.Told = !permit
			}
			return append(moves, m)
		}
	}
	for _, p := range free {
		if !p.Free() {
			moves = append(moves, move{permit: change{p, job.Permit{N: p.N}}})
		}
	}
	return moves
}

// needs reports whether an attempt needs a permit to go on, and a token. One that gets a permit takes a token for it,
// and one that has a permit had its token.
func needs(l job.Limit, permits, tokens []job.Permit, t job.Ticket) (permit, token bool) {
	permit = l.Most > 0 && of(permits, t) < 0
	return permit, l.Rate > 0 && (permit || l.Most == 0 && of(tokens, t) < 0)
}

// room returns below which number permits may be given, and the numbers that are taken. Together with the permits from
// there on, which may be of a limit that was higher, all of them are no more than the limit. The number only rises
// while attempts end, so that decisions over older states give no more.
func room(permits []job.Permit, most int, over func(job.Ticket) bool) (below int, taken map[int]bool) {
	taken = map[int]bool{}
	var stand []int
	for _, p := range permits {
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
func free(permits []job.Permit, most int) (n int, ok bool) {
	below, taken := room(permits, most, func(job.Ticket) bool { return false })
	for n := range below {
		if !taken[n] {
			return n, true
		}
	}
	return 0, false
}

// of returns the index of the permit that the attempt of a ticket has; -1: it has none.
func of(permits []job.Permit, t job.Ticket) int {
	return slices.IndexFunc(permits, func(p job.Permit) bool { return p.Ticket.Same(t) })
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
