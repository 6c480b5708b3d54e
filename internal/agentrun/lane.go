package agentrun

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
)

const (
	// inlineAtOnce is how many inline attempts run at once in an invocation.
	inlineAtOnce = 64
	// inlineReserve is how much of an invocation's time no inline attempt may take: for the save of its outcome, and for
	// what that makes due.
	inlineReserve = 3 * time.Second
)

// Lane runs inline attempts within invocations of the Scheduler's function; it implements scheduler.Lane. It reads no
// secrets.
type Lane struct {
	runner *Runner
	agents []string
}

// NewLane returns the lane of agents that are linked into the Scheduler's function. large is where they write and read
// large payloads; nil: nowhere. now is the Scheduler's clock.
func NewLane(agents []agent.Handler, large payload.Bytes, now func() time.Time, log *slog.Logger) Lane {
	l := Lane{runner: New(Config{
		Handlers: agents, Slots: []chan struct{}{make(chan struct{}, inlineAtOnce)}, Large: large, Now: now, Logger: log,
	})}
	for _, a := range agents {
		l.agents = append(l.agents, a.Name())
	}
	return l
}

// Agents implements scheduler.Lane.
func (l Lane) Agents(ctx context.Context) (agents []string, until time.Time) {
	if end, ends := ctx.Deadline(); ends {
		until = end.Add(-inlineReserve)
	}
	return l.agents, until
}

// Secrets implements scheduler.Lane.
func (l Lane) Secrets() bool { return false }

// Enter implements scheduler.Lane.
func (l Lane) Enter(string, bool) (leave func(), ok bool) { return l.runner.TryEnter() }

// Run implements scheduler.Lane.
func (l Lane) Run(ctx context.Context, task makegood.Task, lockedBy string, since time.Time) job.Event {
	return l.runner.Inline(ctx, task, lockedBy, since)
}

// Drive implements scheduler.Lane. It returns when all drivers have: the invocation must not end before.
func (l Lane) Drive(ctx context.Context, drivers []func(context.Context)) {
	var wg sync.WaitGroup
	for _, drive := range drivers {
		wg.Go(func() { drive(ctx) })
	}
	wg.Wait()
}
