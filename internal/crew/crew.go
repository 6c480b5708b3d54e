// Package crew runs work on goroutines that are used again. A used goroutine has the stack that the next piece of work
// needs; a new one would have to grow it, by copies of all that lies on it.
package crew

import (
	"sync"
	"sync/atomic"
)

// A Crew is a set of goroutines, each with one piece of work after another. All end once none has work, unless Hold
// keeps them.
// The zero value is ready; it must not be copied.
type Crew struct {
	mu      sync.Mutex
	working int
	// idle are the goroutines that wait for work while others have some. Each receives a piece of work, or nil to end.
	idle []chan func()
}

// Go does work on a goroutine of its own, as the go statement does.
func (c *Crew) Go(work func()) {
	c.mu.Lock()
	c.working++
	if n := len(c.idle); n > 0 {
		member := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		member <- work
		return
	}
	c.mu.Unlock()
	go c.member(work)
}

// Hold keeps goroutines without work until release.
func (c *Crew) Hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working++
	return func() { c.rest(nil) }
}

func (c *Crew) member(work func()) {
	var next chan func()
	returned := true
	defer func() {
		if !returned { // Work may end its goroutine.
			c.rest(nil)
		}
	}()
	for work != nil {
		returned = false
		work()
		returned = true
		if next == nil {
			next = make(chan func(), 1)
		}
		c.rest(next)
		work = <-next
	}
}

// rest notes that a piece of work is done, and that its goroutine waits for the next; nil: it ends.
func (c *Crew) rest(member chan func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if member != nil {
		c.idle = append(c.idle, member)
	}
	if c.working--; c.working > 0 {
		return
	}
	for _, member := range c.idle {
		member <- nil
	}
	c.idle = nil
}

// Each calls do for 0 to n-1, so many at once at most, and returns when all have returned.
func (c *Crew) Each(n, atOnce int, do func(i int)) {
	switch n {
	case 0:
		return
	case 1:
		do(0)
		return
	}
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	var begun atomic.Int64
	all.Add(n)
	next := func() {
		defer all.Done()
		defer func() { <-room }()
		do(int(begun.Add(1)) - 1)
	}
	for range n {
		room <- struct{}{}
		c.Go(next)
	}
	all.Wait()
}
