package notify

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
)

// Logged logs the announcements that it passes to another notifier: each when it is first brought, and again if the
// other failed, but not because it waits for others of its kind.
func Logged(log Log, to Notifier) Notifier { return logged{log, to} }

type logged struct {
	log Log
	to  Notifier
}

// Announce tells both.
func (l logged) Announce(ctx context.Context, n Notice) error {
	err := l.to.Announce(ctx, n)
	if errors.Is(err, ErrGathered) && time.Since(n.At) > limits.TellAgain/2 {
		return err
	}
	return errors.Join(l.log.Announce(ctx, n), err)
}

// AgentAlert tells both.
func (l logged) AgentAlert(ctx context.Context, agent, paused string) error {
	return errors.Join(l.log.AgentAlert(ctx, agent, paused), l.to.AgentAlert(ctx, agent, paused))
}
