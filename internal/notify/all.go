package notify

import (
	"context"
	"errors"
	"sync"
)

// All tells several, all at once, so that a slow one costs the others nothing. It gives the errors of
// all that failed; told again, those that had heard hear it twice.
func All(notifiers ...Notifier) Notifier { return all(notifiers) }

type all []Notifier

func (a all) Announce(ctx context.Context, n Notice) error {
	return a.each(func(to Notifier) error { return to.Announce(ctx, n) })
}

func (a all) AgentSilent(ctx context.Context, agent string) error {
	return a.each(func(to Notifier) error { return to.AgentSilent(ctx, agent) })
}

func (a all) each(tell func(Notifier) error) error {
	errs := make([]error, len(a))
	var wg sync.WaitGroup
	for i, to := range a {
		wg.Go(func() { errs[i] = tell(to) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
