package engine

import (
	"context"
	"errors"

	"github.com/makegood-dev/makegood"
)

// ErrNoChanges: neither Options.Notify.Changes nor Options.Notify.LiveChanges is set, so the engine keeps no changes.
var ErrNoChanges = errors.New("changes are not kept: set Options.Notify.Changes or Options.Notify.LiveChanges")

// Change is a change of a job, for watchers.
type Change struct {
	// Job is the job's id, Workflow the name of its workflow.
	Job      string
	Workflow string
	// Missed counts the changes, of any jobs, that were left out before this one because the watcher was too slow.
	Missed int64
	makegood.Change
}

// WatchChanges returns the changes of all jobs as they happen, until ctx ends or the engine is closed; then the
// channel is closed. A slow watcher delays no job: up to 1000 changes wait for it, and after more the next change says
// how many were Missed. After a restart some changes may appear again. A program that must miss no change sets
// Options.Notify.Changes.
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
