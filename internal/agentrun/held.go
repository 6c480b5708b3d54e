package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// Held is a task with an attempt that another party claimed for this process; that party keeps the claim. Everything
// must be set, except that a shared task has no Claim.LockedBy and no use for Heartbeat.
type Held struct {
	Task  makegood.Task
	Claim job.Claim
	// Expires is when silence becomes failure, by this process's monotonic clock.
	Expires time.Time
	// Heartbeat moves the claim's CompleteBy, keeps progress if given, and returns how long after the call silence becomes
	// failure now. Errors are those of store.Claims.Heartbeat, with the same meaning for CompleteBy; after any other, but a
	// refusal (queue.RefusedError), it is called again as long as the attempt has time.
	Heartbeat func(ctx context.Context, progress json.RawMessage) (left time.Duration, err error)
	// Reply tells the outcome, as the message that would go to a queue. It may be told again. Errors are those of
	// queue.Sender.
	Reply func(ctx context.Context, body string) error
	// Large is where the attempt writes and reads large payloads. Nil: it cannot.
	Large payload.Bytes
}

// minPause and maxPause bound the wait between two tries of a heartbeat that was not answered.
const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// Do does a task that is claimed already, and sends its outcome, under the same rules as HandleSQS. It works until ctx
// ends, and may send a reply after that. After an error no reply was sent, and the attempt ends at its CompleteBy.
func (r *Runner) Do(ctx context.Context, h Held) error {
	handler, err := r.handlerOf(h.Task)
	if err != nil {
		return err
	}
	r.tell(func(t *Stats) { t.Claimed++ })
	a := &attempt{
		Runner: r, batch: ctx, task: h.Task, handler: handler, to: &h, large: h.Large,
	}
	a.lease.takeOver(ctx, r.config.Now, &h)
	defer a.lease.close()
	return a.do()
}

func (h *Held) say(ctx context.Context, a *attempt, reply job.Event, _ time.Time) error {
	body, err := a.bodyOf(ctx, &h.Task, reply)
	if err != nil {
		return err
	}
	return h.Reply(ctx, body)
}

// takeOver takes over the clock of an attempt that was claimed elsewhere. It uses no time of day of the other clock.
func (l *lease) takeOver(ctx context.Context, now func() time.Time, h *Held) {
	silence := domain.Silence(h.Task).Std()
	*l = lease{
		now: now, task: &h.Task, margin: min(maxMargin, silence/10), claim: h.Claim,
		completeBy: domain.Instant(now().Add(time.Until(h.Expires))), expires: h.Expires, extended: h.Expires.Add(-silence),
	}
	l.move = func(ctx context.Context, _ time.Time) (completeBy, expires time.Time, err error) {
		left, began, err := l.say(ctx, h.Heartbeat)
		expires = earlier(began.Add(left), l.lapses)
		return domain.Instant(now().Add(time.Until(expires))), expires, err
	}
	l.start(ctx)
}

// say repeats a heartbeat until the keeper of the claim answers, ctx ends, or the work must stop: a restart of the
// keeper costs no attempt. It returns when the answered try began. l.heartbeat is held.
func (l *lease) say(ctx context.Context, heartbeat func(context.Context, json.RawMessage) (time.Duration, error)) (left time.Duration, began time.Time, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.Context, cancel)()
	pauses := &scattered{of: l.claim.LockedBy, BackOff: &backoff.ExponentialBackOff{InitialInterval: minPause, Multiplier: 2, MaxInterval: maxPause}}
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		var err error
		began = time.Now()
		left, err = heartbeat(ctx, json.RawMessage(l.progress.Value))
		if errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrWithdrawn) || errors.As(err, new(*queue.RefusedError)) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(0), backoff.WithBackOff(pauses))
	return left, began, err
}
