package spend

import (
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// Clock shares the time of a function among the jobs that it works for: at every moment evenly among those under way.
// Time that passes without one, or was not kept, is charged to the next jobs in this process. A nil clock counts no
// time. The time of a process that ends is lost, and so is that of its start, which comes before the clock.
type Clock struct {
	memoryMB int
	now      func() time.Time

	mu sync.Mutex
	// invocations are under way; without one no time is paid for: Lambda freezes the process.
	invocations int
	last        time.Time
	busy        int
	// each is the charge of a turn busy all the time, owed the time that no turn has paid yet.
	each, owed time.Duration
}

// NewClock returns the clock of a function with so many megabytes of memory. now must be monotonic.
func NewClock(memoryMB int, now func() time.Time) *Clock { return &Clock{memoryMB: memoryMB, now: now} }

// Invoked begins an invocation, and returns what ends it.
func (c *Clock) Invoked() (end func()) {
	if c == nil {
		return func() {}
	}
	c.change(func() { c.invocations++ })
	return func() { c.change(func() { c.invocations-- }) }
}

// change accounts for the time since the last change, and makes one.
func (c *Clock) change(to func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass()
	to()
}

func (c *Clock) pass() {
	now := c.now()
	passed := now.Sub(c.last)
	switch {
	case c.invocations == 0:
	case c.busy == 0:
		c.owed += passed
	default:
		c.each += passed / time.Duration(c.busy)
	}
	c.last = now
}

// Turn is one that the function works for.
type Turn struct {
	clock *Clock
	from  time.Duration
	owed  time.Duration
}

// Begin begins a turn, which takes over the time owed.
func (c *Clock) Begin() *Turn {
	if c == nil {
		return nil
	}
	t := &Turn{clock: c}
	c.change(func() {
		c.busy++
		t.from, t.owed, c.owed = c.each, c.owed, 0
	})
	return t
}

// Take returns what the turn has to pay since it began, or since it was asked last.
func (t *Turn) Take() job.Spent {
	if t == nil {
		return job.Spent{}
	}
	var due time.Duration
	t.clock.change(func() {
		due = t.owed + t.clock.each - t.from
		t.owed, t.from = 0, t.clock.each
	})
	return job.Spent{GBMicros: due.Microseconds() * int64(t.clock.memoryMB) / 1024}
}

// End ends the turn. Its unclaimed time is owed again.
func (t *Turn) End() {
	if t == nil {
		return
	}
	t.clock.change(func() {
		t.clock.owed += t.owed + t.clock.each - t.from
		t.clock.busy--
	})
}
