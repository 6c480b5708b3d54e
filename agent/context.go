package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentctx"
)

// TaskOf returns the task of ctx: its job, step, attempt and round, the Key for the remote service, and for an undo
// the step that it undoes. It is zero where ctx belongs to no task.
func TaskOf(ctx context.Context) makegood.Task {
	a, _ := agentctx.Of(ctx)
	return *a.Task
}

// Heartbeat reports that the work goes on: it moves CompleteBy, and the context's deadline with it, to the step's
// heartbeat from now (its timeout, where the workflow has no heartbeat). Work that may take longer than that calls it
// at least twice in that time, or uses KeepAlive.
//
// Where the workflow has a heartbeat, CompleteBy is never moved past the step's timeout, and a heartbeat within a
// quarter of that time after the last one, at most 10 seconds, is not written: it may be called in a loop. Where it
// has none, each call is a write.
//
// ErrWithdrawn: the job no longer needs the result; the context has ended with that as its cause, and CompleteBy was
// moved all the same, so that there is time to stop tidily. ErrOver: the attempt has run out of time or was replaced;
// the context has ended. Any other error leaves the deadline as it was, and the next heartbeat may succeed, except on
// a step with "exclusive: false": its attempts are not claimed, so their CompleteBy cannot move, and the error is
// final.
func Heartbeat(ctx context.Context) error {
	a, _ := agentctx.Of(ctx)
	if a.Lease == nil {
		return nil
	}
	return a.Lease.Heartbeat(ctx)
}

// Progress reports how far the work has come, for people to see: value, as JSON, at most makegood.MaxProgressBytes. It
// is a heartbeat, too. The last report is kept beside the attempt's claim, never in the job; the result of the step
// belongs into its output. It may be called in a loop: a call within a quarter of the time that the attempt may be
// silent after the last heartbeat, at most 10 seconds, is written with the next one.
//
// A value that is too large, or no JSON, is refused with a final error, and is no heartbeat. Otherwise Progress
// returns the error of Heartbeat.
func Progress(ctx context.Context, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return Final(fmt.Errorf("progress: %w", err))
	}
	if len(text) > makegood.MaxProgressBytes {
		return Final(fmt.Errorf("progress: %d bytes as JSON, the limit is %d", len(text), makegood.MaxProgressBytes))
	}
	a, _ := agentctx.Of(ctx)
	if a.Lease == nil {
		return nil
	}
	return a.Lease.Progress(ctx, text)
}
