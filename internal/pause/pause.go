// Package pause waits, no longer than a context lasts: for a while, or for code of others that may hang.
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
