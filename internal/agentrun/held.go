package agentrun

import (
	"context"
	"encoding/json"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
)

// Held is a task whose attempt was claimed for this process by somebody else, who keeps the claim. Everything must be set,
// but that a shared task has no Claim.LockedBy and no use for Heartbeat.
type Held struct {
	Task  makegood.Task
	Claim job.Claim
	// Expires is when silence becomes failure, by this process's monotonic clock.
	Expires time.Time
	// Heartbeat moves the claim's CompleteBy, keeps progress if there is any, and returns how long after the call silence
	// becomes failure now. Errors are those of store.Claims.Heartbeat, and what is said there of CompleteBy holds.
	Heartbeat func(ctx context.Context, progress json.RawMessage) (left time.Duration, err error)
	// Reply tells the outcome, as the message that would go to a queue. It may be told again. Errors are those of
	// queue.Sender.
	Reply func(ctx context.Context, body string) error
	// Large is where the attempt writes and reads large payloads. Nil: it cannot.
	Large payload.Bytes
}

// Do does a task that is claimed already, and tells its outcome, under the same rules as HandleSQS. It works until ctx
// ends, and a reply may be told after that. An error means that nothing was told, and the attempt ends at its CompleteBy.
func (r *Runner) Do(ctx context.Context, h Held) error {
	handler, err := r.handlerOf(h.Task)
	if err != nil {
		return err
	}
	r.tell(func(t *Stats) { t.Claimed++ })
	a := &attempt{
		Runner: r, batch: ctx, task: h.Task, handler: handler, lease: newHeldLease(ctx, r.config.Now, h), large: h.Large,
		say: func(ctx context.Context, body string, _ time.Time) error { return h.Reply(ctx, body) },
	}
	defer a.lease.close()
	return a.do()
}

// newHeldLease takes over the clock of an attempt that was claimed elsewhere. No time of day of the other clock is used.
func newHeldLease(ctx context.Context, now func() time.Time, h Held) *lease {
	silence := h.Task.Silence().Std()
	l := &lease{
		now: now, task: h.Task, margin: min(maxMargin, silence/10), claim: h.Claim,
		completeBy: makegood.Instant(now().Add(time.Until(h.Expires))), expires: h.Expires, extended: h.Expires.Add(-silence),
	}
	l.move = func(ctx context.Context, began time.Time) (completeBy, expires time.Time, err error) {
		wall := now()
		left, err := h.Heartbeat(ctx, json.RawMessage(l.progress.Value))
		expires = earlier(began.Add(left), l.lapses)
		return makegood.Instant(wall.Add(expires.Sub(began))), expires, err
	}
	l.start(ctx)
	return l
}
