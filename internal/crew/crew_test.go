package crew_test

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood/internal/crew"
)

// All work is done, beside that which takes long, and no goroutine is left.
func TestAllWorkIsDone(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var c crew.Crew
		var done atomic.Int64
		hold := make(chan struct{})
		c.Go(func() { <-hold })
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				for range 100 {
					var one sync.WaitGroup
					one.Add(1)
					c.Go(func() {
						defer one.Done()
						done.Add(1)
					})
					one.Wait()
				}
			})
		}
		callers.Wait()
		close(hold)
		if done.Load() != 2000 {
			t.Errorf("done: got %d pieces of work, want 2000", done.Load())
		}
	})
}

// Goroutines are distinguished by their numbers: how many the process has also depends on those of earlier tests, which
// may end late.
func TestAGoroutineIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var c crew.Crew
		release := c.Hold()
		used := map[string]bool{}
		for range 100 {
			c.Go(func() { used[goroutine()] = true })
			synctest.Wait()
		}
		if len(used) != 1 {
			t.Errorf("goroutines for 100 pieces of work, one after the other: got %d, want 1", len(used))
		}
		release()
	})
}

// goroutine is the number of the one that calls, from the first line of its stack: "goroutine 7 [running]:".
func goroutine() string {
	stack := make([]byte, 64)
	fields := bytes.Fields(stack[:runtime.Stack(stack, false)])
	return string(fields[1])
}

// Work that ends its goroutine takes no other work with it.
func TestWorkMayEndItsGoroutine(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var c crew.Crew
		var done atomic.Int64
		c.Each(100, 10, func(i int) {
			if i%3 == 0 {
				runtime.Goexit()
			}
			done.Add(1)
		})
		if done.Load() != 66 {
			t.Errorf("done: got %d pieces of work, want 66", done.Load())
		}
	})
}

func TestNoMoreAtOnceThanAllowed(t *testing.T) {
	var c crew.Crew
	var now, most atomic.Int64
	c.Each(200, 7, func(int) {
		n := now.Add(1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		runtime.Gosched()
		now.Add(-1)
	})
	if most.Load() > 7 {
		t.Errorf("at once: got %d, want at most 7", most.Load())
	}
}
