package embedded

import (
	"context"
	"fmt"
	"time"
)

const (
	// MinRetention is the shortest retention, the same as on DynamoDB. Late replies and repeated tasks of an ended job
	// are over by then.
	MinRetention = 24 * time.Hour
	// expireEvery is how often the engine looks for jobs past their retention.
	expireEvery = time.Minute
	// filesEvery is how often the engine looks whether its files are still those that it has open.
	filesEvery = time.Second
)

// watchStore ends the engine when its store can go on no more.
func (e *Engine) watchStore(ctx context.Context) error {
	ticker := time.NewTicker(max(e.config.Tick, filesEvery))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.file.Lost():
			return e.file.Failure()
		case <-ticker.C:
			// It finds the loss of the store, or a failure that the store deals with.
			_ = e.file.CheckFiles(ctx)
		}
	}
}

// expire deletes jobs and quarantined messages past their retention, in small transactions between those of the
// others, and gives room back to the disk. It tries again a minute after a failure.
func (e *Engine) expire(ctx context.Context) error {
	ticker := time.NewTicker(expireEvery)
	defer ticker.Stop()
	for {
		if err := e.expireAll(ctx); err != nil && ctx.Err() == nil {
			e.config.Logger.WarnContext(ctx, "jobs past their retention stay for now", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (e *Engine) expireAll(ctx context.Context) error {
	finished := time.Now().Add(-e.config.Retention)
	deleted := 0
	for more := true; more; {
		ids, left, err := e.file.Expire(ctx, finished)
		if err != nil {
			return err
		}
		e.dropLarge(ctx, ids, finished)
		deleted, more = deleted+len(ids), left
	}
	for more := true; more; {
		left, err := e.file.ExpireQuarantined(ctx, finished)
		if err != nil {
			return err
		}
		more = left
	}
	if deleted > 0 {
		e.config.Logger.InfoContext(ctx, "jobs were deleted, their retention is over", "jobs", deleted)
	}
	for more := true; more; {
		left, err := e.file.Shrink(ctx)
		if err != nil {
			return fmt.Errorf("after %d jobs: %w", deleted, err)
		}
		more = left
	}
	return nil
}
