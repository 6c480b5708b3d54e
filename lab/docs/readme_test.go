package docs

import (
	"context"
	"fmt"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/makegoodtest"
	"github.com/makegood-dev/makegood/workflows/order"
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

var anOrder = makegoodtest.Case{
	YAML:  order.YAML,
	Input: map[string]any{"id": "o-1", "customer": "c-1", "total": 9.5},
	Services: func() makegoodtest.Services {
		shop := makegoodtest.NewFake("shop") // a thing once for a key, and a ledger
		return makegoodtest.Services{
			Agents: order.Agents("http://shop", makegoodtest.Client(shop)),
			HTTP:   shop, // what the built-in http agent reaches
			Ledger: shop.Ledger,
			Check: func(job makegoodtest.Job) error {
				n := shop.Stands("charge")
				if n > 1 || n == 0 && job.ProcessState == makegood.JobProcessed {
					return fmt.Errorf("the order is %s, and charge stands %d times", job.ProcessState, n)
				}
				return nil
			},
		}
	},
}

func TestAnOrderIsChargedOnce(t *testing.T) {
	makegoodtest.CrashEverywhere(t, anOrder) // the engine dies at every point of the job
	makegoodtest.Chaos(t, anOrder, 25)       // bad days, from seeds
}
