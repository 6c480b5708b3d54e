package agent

import (
	"context"
	"errors"
	"time"

	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// KeepAlive heartbeats in the background until stop is called or ctx ends. It is for work that cannot report itself
// that it goes on, such as one call that takes an hour: it keeps alive also a call that hangs. Work in parts calls
// Heartbeat between the parts.
//
// When the attempt is withdrawn, or over, ctx ends, with ErrWithdrawn or ErrOver as its cause. A failed heartbeat is
// tried again sooner. stop waits for the heartbeat that is under way; call it before the action returns.
func KeepAlive(ctx context.Context) (stop func()) {
	a, _ := agentctx.Of(ctx)
	if a.Lease == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		keepAlive(ctx, a)
	}()
	return func() {
		cancel()
		<-stopped
	}
}

// keepAlive heartbeats three times while the attempt may be silent, so that one heartbeat may fail.
func keepAlive(ctx context.Context, a agentctx.Attempt) {
	every := max(domain.Silence(*a.Task).Std()/3, limits.MinTimeout)
	next := time.NewTimer(every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		err := a.Lease.Heartbeat(ctx)
		switch {
		case err == nil:
			next.Reset(every)
		case errors.Is(err, ErrWithdrawn) || errors.Is(err, ErrOver) || !Failure(err).Retryable:
			return
		default:
			next.Reset(every / 4)
		}
	}
}
