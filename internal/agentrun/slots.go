package agentrun

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// ErrStopped is the cause with which work is told to stop that outlasts its grace.
var ErrStopped = errors.New("the process is stopping")

// Slots bound the attempts at once of a process that takes its tasks itself. Each attempt has a slot, so a long one
// holds up no other.
type Slots struct {
	taken   chan struct{}
	running sync.WaitGroup
	working atomic.Int64
}

// NewSlots returns n slots.
func NewSlots(n int) *Slots { return &Slots{taken: make(chan struct{}, n)} }

// Run calls take, which takes tasks until ctx ends and has them done under work (Do), and returns when no attempt runs
// any more. Attempts that outlast the grace after the end of ctx are told to stop: cut is their number.
func (s *Slots) Run(ctx context.Context, grace time.Duration, take func(ctx, work context.Context)) (cut int64) {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		take(ctx, work)
		s.running.Wait()
	}()
	<-ctx.Done()
	over := time.NewTimer(grace)
	defer over.Stop()
	select {
	case <-done:
		return 0
	case <-over.C:
	}
	cut = s.working.Load()
	stop(ErrStopped)
	<-done
	return cut
}

// Reserve waits for a free slot, and reserves it and what else is free, a batch at most. 0: ctx has ended.
func (s *Slots) Reserve(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case s.taken <- struct{}{}:
	}
	if ctx.Err() != nil {
		s.Free(1)
		return 0
	}
	for n := 1; n < limits.MaxBatch; n++ {
		select {
		case s.taken <- struct{}{}:
		default:
			return n
		}
	}
	return limits.MaxBatch
}

// Free gives back n reserved slots for which there was no task.
func (s *Slots) Free(n int) {
	for range n {
		<-s.taken
	}
}

// Do does a task in a reserved slot, in a goroutine of its own.
func (s *Slots) Do(task func()) {
	s.working.Add(1)
	s.running.Go(func() {
		defer func() {
			s.working.Add(-1)
			s.Free(1)
		}()
		task()
	})
}

// Working returns how many attempts run.
func (s *Slots) Working() int64 { return s.working.Load() }

// Full reports whether an attempt runs in every slot.
func (s *Slots) Full() bool {
	return s.working.Load() == int64(cap(s.taken)) && len(s.taken) == cap(s.taken)
}
