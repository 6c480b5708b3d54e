package onhttp

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/pause"
)

const (
	// pauseMin and pauseMax bound the wait after tasks could not be taken; it doubles from one to the other.
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
	// lastWithin is how long the last answer may take at the end, with the tasks on their way.
	lastWithin = 5 * time.Second
)

// errStopped is why work is told to stop.
var errStopped = errors.New("the process is stopping")

// taker takes tasks at a door, and has each done by itself, so that a long one holds up no other.
type taker struct {
	door    *door
	options working
	runner  *agentrun.Runner

	slots   chan struct{}
	running sync.WaitGroup
	working atomic.Int64
}

func newTaker(d *door, o working) *taker {
	return &taker{
		door: d, options: o, slots: make(chan struct{}, o.Concurrency),
		runner: agentrun.New(agentrun.Config{Handlers: []agent.Handler{o.Agent}, Instance: o.Instance, Secrets: o.Secrets, Logger: o.Logger}),
	}
}

// run takes tasks until ctx ends, and returns when no task runs any more.
func (t *taker) run(ctx context.Context) error {
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.take(ctx, work)
		t.running.Wait()
	}()
	<-ctx.Done()
	grace := time.NewTimer(t.options.Grace)
	defer grace.Stop()
	select {
	case <-done:
		return nil
	case <-grace.C:
	}
	cut := t.working.Load()
	stop(errStopped)
	<-done
	if cut == 0 {
		return nil
	}
	t.options.Logger.WarnContext(ctx, "work was told to stop", "agent", t.options.Agent.Name(), "attempts", cut, "grace", t.options.Grace)
	return agent.ErrCutOff
}

// take takes tasks until ctx ends, and has them done in work.
func (t *taker) take(ctx, work context.Context) {
	for free := t.reserve(ctx); free > 0; free = t.reserve(ctx) {
		taken := t.ask(ctx, work, free)
		for range free - len(taken) {
			<-t.slots
		}
		for _, held := range taken {
			t.begin(work, held)
		}
	}
}

// reserve waits for a free slot, and takes it and what else is free, a batch at most. 0: ctx has ended.
func (t *taker) reserve(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case t.slots <- struct{}{}:
	}
	if ctx.Err() != nil {
		return 0 // the slot stays taken: no other is asked for
	}
	for n := 1; n < limits.MaxBatch; n++ {
		select {
		case t.slots <- struct{}{}:
		default:
			return n
		}
	}
	return limits.MaxBatch
}

// ask asks for tasks until it is answered or ctx ends. All its tries have one name, so that the tasks of a lost
// answer are given again; the last one, after ctx, does not wait.
func (t *taker) ask(ctx, work context.Context, most int) []agentrun.Held {
	request := rand.Text()
	for wait := pauseMin; ctx.Err() == nil; wait = min(2*wait, pauseMax) {
		taken, err := t.door.take(ctx, request, most, limits.MaxTaskWait)
		if err == nil {
			return taken
		}
		if ctx.Err() == nil {
			_ = t.door.unanswered(ctx, "a request for tasks", err) // every error is asked again
			_ = pause.For(ctx, wait/2+mathrand.N(wait/2))          // the loop asks whether ctx has ended
		}
	}
	last, cancel := context.WithTimeout(work, lastWithin)
	defer cancel()
	taken, err := t.door.take(last, request, most, 0)
	if err != nil {
		t.options.Logger.WarnContext(ctx, "tasks that the last request was given, if any, get no reply", "agent", t.options.Agent.Name(), "error", err)
	}
	return taken
}

// begin has a task done. Its slot is taken already.
func (t *taker) begin(work context.Context, held agentrun.Held) {
	t.working.Add(1)
	t.running.Go(func() {
		defer func() {
			t.working.Add(-1)
			<-t.slots
		}()
		_ = t.runner.Do(work, held) // the log has the reason of a missing reply
	})
}
