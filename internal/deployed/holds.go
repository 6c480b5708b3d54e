package deployed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/gate"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// holds makes the Keeper of a stack's pauses. knows says why there is no workflow of a name.
func (s *stack) holds(agents []string, knows func(ctx context.Context, workflow string) error) *holds.Keeper {
	return holds.New(holds.Config{
		Store: s.store, Gates: s.gates(), Queue: s.queues, Events: EventsQueue, Agents: agents, Knows: knows, Changed: s.release, Logger: s.log,
	})
}

// gates makes the Keeper of the gates of a stack's agents.
func (s *stack) gates() *gate.Keeper {
	return gate.New(gate.Config{Store: s.store, Jobs: s.store, Queue: s.queues, Events: EventsQueue, Logger: s.log})
}

// release has the Scheduler release the first jobs of a resumed agent or workflow at once, and let a probe through in
// time: before the next sweep. A sweep finds what comes later.
func (s *stack) release(ctx context.Context, key time.Time) {
	after := max(0, time.Until(key))
	if key.IsZero() || after >= SweepPeriod {
		return
	}
	body, err := wire.EncodeHoldsDue(key)
	if err == nil {
		err = errors.Join(s.queues.Send(ctx, EventsQueue, queue.Message{Body: body, Delay: (after + time.Second - 1).Truncate(time.Second)})...)
	}
	if err != nil {
		// It spares a wait, and no more: the Supervisor comes anyway.
		s.log.WarnContext(ctx, "the jobs of the resumed pause go on at the Supervisor's next run", "error", err)
	}
}

// knows says why the stack has no workflow of a name.
func (o *operator) knows(ctx context.Context, workflow string) error {
	return orUnknown(workflow, o.known(ctx, workflow))
}

// orUnknown says of store.ErrNotFound that there is no workflow of a name.
func orUnknown(workflow string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: there is no workflow %q", scheduler.ErrInvalid, workflow)
	}
	return err
}
