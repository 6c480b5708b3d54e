package embedded

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

var _ scheduler.Lane = (*lane)(nil)

// lane runs inline attempts beside the handlers of the queues, in the places of their agents. It is open while the
// engine works; before and after, attempts go through the queues.
type lane struct {
	workers map[string][]worker
	agents  []string

	mu  sync.Mutex
	ctx context.Context // has ended while the lane is shut
	wg  sync.WaitGroup
}

func newLane(workers map[string][]worker) *lane {
	shut, cancel := context.WithCancel(context.Background())
	cancel()
	return &lane{workers: workers, agents: slices.Sorted(maps.Keys(workers)), ctx: shut}
}

// open lets attempts begin until ctx ends.
func (l *lane) open(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx = ctx
}

// run waits until ctx, with which the lane was opened, has ended, all attempts have, and their replies are saved.
func (l *lane) run(ctx context.Context) error {
	<-ctx.Done()
	// A driver that was being enlisted is counted when the lock is free; no later one is.
	_, _ = l.enlist(0)
	l.wg.Wait()
	return nil
}

// Agents implements scheduler.Lane.
func (l *lane) Agents(context.Context) ([]string, time.Time) { return l.agents, time.Time{} }

// Secrets implements scheduler.Lane.
func (l *lane) Secrets() bool { return true }

// Enter implements scheduler.Lane.
func (l *lane) Enter(agent string, undo bool) (leave func(), ok bool) {
	if _, open := l.enlist(0); !open {
		return nil, false
	}
	return l.worker(agent, undo).TryEnter()
}

// Run implements scheduler.Lane. The attempt goes on when the caller of the save has hung up, until the work ends.
func (l *lane) Run(_ context.Context, task makegood.Task, lockedBy string, since time.Time) job.Event {
	ctx, open := l.enlist(1)
	if open {
		defer l.wg.Done()
	}
	w := l.worker(task.Agent, task.Undo != nil)
	w.inline.Add(1)
	defer w.inline.Add(-1)
	return w.Inline(ctx, task, lockedBy, since)
}

// Drive implements scheduler.Lane. Drivers go on until the replies of what they run are saved, also when the work ends
// meanwhile. Those that come after its end have only attempts that end at once, and the caller waits for them.
func (l *lane) Drive(ctx context.Context, drivers []func(context.Context)) {
	work, open := l.enlist(len(drivers))
	if !open {
		for _, drive := range drivers {
			drive(ctx)
		}
		return
	}
	ctx = context.WithoutCancel(work)
	for _, drive := range drivers {
		go func() {
			defer l.wg.Done()
			drive(ctx)
		}()
	}
}

// enlist returns the context of the work, and counts n more attempts or drivers: the work ends after they have ended.
// If the work has ended already, open is false, and nothing is counted.
func (l *lane) enlist(n int) (ctx context.Context, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return l.ctx, false
	}
	l.wg.Add(n)
	return l.ctx, true
}

// worker is the one of an agent for its steps, or for its undos.
func (l *lane) worker(agent string, undo bool) worker {
	if undo {
		return l.workers[agent][1]
	}
	return l.workers[agent][0]
}
