package notify

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Patience is how long all notifiers together may take, before they are told again another time. It is short: the
// caller has other jobs to see to, and on Lambda half a minute for a whole batch.
const Patience = 3 * time.Second

// All tells several notifiers, all at once, so that a slow one delays no other, and gives up on those that take
// longer than Patience. It returns the errors of all that failed; on a repeat, the successful ones are told twice.
func All(notifiers ...Notifier) Notifier { return all(notifiers) }

type all []Notifier

func (a all) Announce(ctx context.Context, n Notice) error {
	return a.each(ctx, func(ctx context.Context, to Notifier) error { return to.Announce(ctx, n) })
}

func (a all) AgentAlert(ctx context.Context, agent, paused string) error {
	return a.each(ctx, func(ctx context.Context, to Notifier) error { return to.AgentAlert(ctx, agent, paused) })
}

func (a all) each(ctx context.Context, tell func(context.Context, Notifier) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	errs := make([]error, len(a))
	var wg sync.WaitGroup
	for i, to := range a {
		wg.Go(func() { errs[i] = tell(ctx, to) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
