// Package pause waits for a while, and no longer than a context lasts. How long a while is, its callers say.
package pause

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends. The error is ctx's; nil: there was time enough.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
