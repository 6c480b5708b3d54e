package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
)

// Lease is an attempt's right to run, as its runner keeps it. Many goroutines may use one at once.
type Lease interface {
	// CompleteBy is when silence becomes failure, as it stands now.
	CompleteBy() time.Time
	// Heartbeat moves CompleteBy; see the function Heartbeat for what it answers.
	Heartbeat(ctx context.Context) error
	// Progress reports a value, of at most makegood.MaxProgressBytes, with a heartbeat; see the function Progress.
	Progress(ctx context.Context, value json.RawMessage) error
}

type contextKey struct{}

type attempt struct {
	task  makegood.Task
	lease Lease
}

// NewContext returns the context in which a task is handled. It is for what runs agents, and for tests
// of actions; those may pass a nil lease, which never runs out and lets every heartbeat succeed.
func NewContext(ctx context.Context, task makegood.Task, lease Lease) context.Context {
	return context.WithValue(ctx, contextKey{}, attempt{task, lease})
}

func attemptOf(ctx context.Context) (attempt, bool) {
	a, ok := ctx.Value(contextKey{}).(attempt)
	return a, ok
}

// TaskOf returns the task that is being done in ctx: its job, step, attempt and round, the Key that
// goes to the remote service, and for an undo what it undoes. It is zero where no task is done.
func TaskOf(ctx context.Context) makegood.Task {
	a, _ := attemptOf(ctx)
	return a.task
}

// CompleteBy is when the attempt that runs in ctx must have replied; heartbeats move it. The context
// ends a little earlier, while there is still time to reply. It is zero where no attempt runs.
func CompleteBy(ctx context.Context) time.Time {
	a, _ := attemptOf(ctx)
	if a.lease == nil {
		return time.Time{}
	}
	return a.lease.CompleteBy()
}

// Heartbeat says that the work goes on: it moves CompleteBy, and the context's deadline with it, to
// the step's heartbeat from now (its timeout, where the workflow says no heartbeat). Work that may take longer than
// that calls it at least twice in that time, or uses KeepAlive.
//
// Where the workflow says heartbeat, CompleteBy is never moved past the step's timeout, and a heartbeat within a quarter
// of that time after the last one, at most 10 seconds, is not written: it may be called in a loop. Where it says none,
// each call is a write.
//
// ErrWithdrawn: nobody wants the result any more; the context has ended with that as its cause, and
// CompleteBy was moved all the same, so that there is time to stop tidily. ErrOver: the attempt has
// run out of time or was replaced; the context has ended. Any other error leaves the deadline where
// it was, and the next heartbeat may succeed, except on a step with "exclusive: false": nobody claims
// its attempts, so their CompleteBy cannot move, and the error is final.
func Heartbeat(ctx context.Context) error {
	a, _ := attemptOf(ctx)
	if a.lease == nil {
		return nil
	}
	return a.lease.Heartbeat(ctx)
}

// Progress says how far the work has come, for people to see: value, as JSON, at most makegood.MaxProgressBytes. It is a
// heartbeat, too. The last one is kept beside the attempt's claim, never in the job; the result of the step belongs into
// its output. It may be called in a loop: a call within a quarter of the time that the attempt may be silent after the
// last heartbeat, at most 10 seconds, is written with the next one.
//
// What is too large, or no JSON, is refused with an error that is final, and is no heartbeat. Else it returns what
// Heartbeat does.
func Progress(ctx context.Context, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return Final(fmt.Errorf("progress: %w", err))
	}
	if len(text) > makegood.MaxProgressBytes {
		return Final(fmt.Errorf("progress: %d bytes as JSON, the limit is %d", len(text), makegood.MaxProgressBytes))
	}
	a, _ := attemptOf(ctx)
	if a.lease == nil {
		return nil
	}
	return a.lease.Progress(ctx, text)
}
