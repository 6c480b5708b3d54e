//go:build linux

package lambdahost

import (
	"context"
	"sync"
	"time"
)

// Schedule invokes a function again and again, as EventBridge Scheduler does, in whose place a tick may also
// come twice or not at all. An invocation that fails is not repeated: the next tick is soon.
type Schedule struct {
	Function *Function
	// Every is the time between two ticks; on AWS it is a minute.
	Every time.Duration
	// Event is what the function is given.
	Event []byte
	// Times says how often the n-th tick comes, counted from 1. Nil: once.
	Times func(n int) int

	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start starts the ticks; the first comes after Every.
func (s *Schedule) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() {
		ticker := time.NewTicker(s.Every)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				s.tick(n)
			case <-ctx.Done():
				return
			}
		}
	})
}

// tick invokes as often as the tick comes, at the same time.
func (s *Schedule) tick(n int) {
	times := 1
	if s.Times != nil {
		times = s.Times(n)
	}
	for range times {
		s.running.Go(func() { _, _ = s.Function.Invoke(context.Background(), s.Event, "") })
	}
}

// Stop ends the ticks, and waits for the invocations under way.
func (s *Schedule) Stop() {
	s.stop()
	s.running.Wait()
}
