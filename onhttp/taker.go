package onhttp

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
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

// taker takes tasks at a door, and has each done by itself, so that a long one holds up no other.
type taker struct {
	door    *door
	options working
	runner  *agentrun.Runner
	slots   *agentrun.Slots
}

func newTaker(d *door, o working) *taker {
	return &taker{
		door: d, options: o, slots: agentrun.NewSlots(o.Concurrency),
		runner: agentrun.New(agentrun.Config{Handlers: []agent.Handler{o.Agent}, Instance: o.Instance, Secrets: o.Secrets, Logger: o.Logger}),
	}
}

// run takes tasks until ctx ends, and returns when no task runs any more.
func (t *taker) run(ctx context.Context) error {
	cut := t.slots.Run(ctx, t.options.Grace, t.take)
	if cut == 0 {
		return nil
	}
	t.options.Logger.WarnContext(ctx, "work was told to stop", "agent", t.options.Agent.Name(), "attempts", cut, "grace", t.options.Grace)
	return agent.ErrCutOff
}

// take takes tasks until ctx ends, and has them done in work.
func (t *taker) take(ctx, work context.Context) {
	for free := t.slots.Reserve(ctx); free > 0; free = t.slots.Reserve(ctx) {
		taken := t.ask(ctx, work, free)
		t.slots.Free(free - len(taken))
		for _, held := range taken {
			t.slots.Do(func() {
				_ = t.runner.Do(work, held) // the log has the reason of a missing reply
			})
		}
	}
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
