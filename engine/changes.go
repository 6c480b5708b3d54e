package engine

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood"
)

// ErrNoChanges: neither Options.Notify.Changes nor Options.Notify.LiveChanges is set, so nothing is kept of what
// changes.
var ErrNoChanges = errors.New("changes are not kept: set Options.Notify.Changes or Options.Notify.LiveChanges")

// Change is a change of a job as it is shown to those who look on.
type Change struct {
	// Job is the job's id, Workflow the name of its workflow.
	Job      string
	Workflow string
	// Missed is how many changes, of whatever jobs, were left out before this one, since whoever looks on was too slow.
	Missed int64
	makegood.Change
}

// WatchChanges returns the changes of all jobs as they happen, until ctx ends, or the engine is closed; then the channel is closed. It holds nobody up: up to
// 1000 changes wait for who is slow, and of more the next that is shown says how many were Missed. After a restart some may
// be shown again. Whoever may miss none sets Options.Notify.Changes.
func (e *Engine) WatchChanges(ctx context.Context) (<-chan Change, error) {
	hub := e.inner.Hub()
	if hub == nil {
		return nil, ErrNoChanges
	}
	all, stop := hub.Watch(0)
	out := make(chan Change)
	go func() {
		defer close(out)
		defer stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-hub.Ended():
				return
			case s := <-all:
				select {
				case out <- Change{Job: s.Job, Workflow: s.Workflow, Missed: s.Missed, Change: s.Change}:
				case <-ctx.Done():
					return
				case <-hub.Ended():
					return
				}
			}
		}
	}()
	return out, nil
}
