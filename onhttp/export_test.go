package onhttp

import (
	"context"
	"time"

	"github.com/makegood-dev/makegood/agent"
)

// RunPausing is Run with another wait after a payload did not come through for the first time.
func RunPausing(ctx context.Context, a agent.Handler, options Options, pause time.Duration) error {
	o, err := working{options, a}.complete()
	if err != nil {
		return err
	}
	d, err := newDoor(o)
	if err != nil {
		return err
	}
	d.pause = pause
	return d.run(ctx, o)
}
