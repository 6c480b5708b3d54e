package docs

import (
	"context"

	"github.com/makegood-dev/makegood/agent"
)

// What the README shows, so that it compiles.

type Reservation struct{ SKU string }

type Reserved struct{ ID string }

type remote struct{}

func (remote) Reserve(context.Context, string, Reservation) (Reserved, error) { return Reserved{}, nil }
func (remote) Release(context.Context, string, Reservation) error             { return nil }

var warehouse remote

var Inventory = agent.New("inventory",
	agent.Do("reserve", reserve).Undo("release", release),
)

func reserve(ctx context.Context, in Reservation) (Reserved, error) {
	key := agent.TaskOf(ctx).Key // the same over all attempts: pass it on
	return warehouse.Reserve(ctx, key, in)
}

// done is nil when nobody knows whether the reservation was made.
func release(ctx context.Context, in Reservation, done *Reserved) error {
	return warehouse.Release(ctx, agent.TaskOf(ctx).Undo.ForwardKey, in)
}
