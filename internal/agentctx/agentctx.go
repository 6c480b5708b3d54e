// Package agentctx has what package agent and the runners of agents share, and no user's program calls: the context in
// which a task is handled, with the attempt's lease and its payloads, and the error of an action that leaves its step
// waiting.
package agentctx

import (
	"context"
	"encoding/json"
	"time"

	"github.com/makegood-dev/makegood"
)

// Lease is an attempt's right to run, as its runner keeps it. Many goroutines may use one at once.
type Lease interface {
	// CompleteBy is when silence becomes failure, as it stands now.
	CompleteBy() time.Time
	// Heartbeat moves CompleteBy to a later time. Its errors are those of agent.Heartbeat.
	Heartbeat(ctx context.Context) error
	// Progress reports a value, of at most makegood.MaxProgressBytes, with a heartbeat; see agent.Progress.
	Progress(ctx context.Context, value json.RawMessage) error
}

type contextKey struct{}

// Attempt is the attempt that runs in a context. Its task is not changed. Its Lease and its Payloads may be nil.
type Attempt struct {
	Task     *makegood.Task
	Lease    Lease
	Payloads Payloads
}

// NewContext returns the context in which a task is handled. A nil lease never runs out, and lets every heartbeat
// succeed: tests have one.
func NewContext(ctx context.Context, task makegood.Task, lease Lease) context.Context {
	return With(ctx, Attempt{Task: &task, Lease: lease})
}

// With returns the context in which an attempt runs.
func With(ctx context.Context, a Attempt) context.Context { return &running{ctx, a} }

// running is a context with its attempt, in one piece of memory.
type running struct {
	context.Context
	attempt Attempt
}

// Value implements context.Context.
func (r *running) Value(key any) any {
	if key == (contextKey{}) {
		return &r.attempt
	}
	return r.Context.Value(key)
}

// Of returns the attempt that runs in ctx; ok is false where none does, and its task is empty.
func Of(ctx context.Context) (Attempt, bool) {
	a, ok := ctx.Value(contextKey{}).(*Attempt)
	if !ok {
		return Attempt{Task: new(makegood.Task)}, false
	}
	return *a, true
}

// CompleteBy is when the attempt that runs in ctx must have replied; heartbeats move it. The context
// ends a little earlier, while there is still time to reply. It is zero where no attempt runs.
func CompleteBy(ctx context.Context) time.Time {
	a, _ := Of(ctx)
	if a.Lease == nil {
		return time.Time{}
	}
	return a.Lease.CompleteBy()
}
