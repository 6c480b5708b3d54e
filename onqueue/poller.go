package onqueue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
)

const (
	// window is how long one Receive may take: a long poll of SQS, and a little. A stop waits for the one that is under
	// way, for what SQS hands to a request that is gone stays hidden.
	window = 20*time.Second + 500*time.Millisecond
	// pauseMin and pauseMax bound the wait after a Receive that gave an error; it doubles from one to the other.
	pauseMin = 500 * time.Millisecond
	pauseMax = 30 * time.Second
	// settleWithin is how long it may take to delete a message, or to hand it back.
	settleWithin = 5 * time.Second
	// sharedSpare is how much longer than its timeout the message of a shared task stays hidden, since it has no claim.
	sharedSpare = time.Minute
	// sickAfter is how long the queue may not be reached until health says so.
	sickAfter = time.Minute
)

// poller takes messages of one queue and has each handled by itself, so that a long one holds up no other.
type poller struct {
	receiver queue.Receiver
	queue    string
	options  Options
	handler  queue.Handler

	slots *agentrun.Slots
	// deleted are the receipts of messages that are under way and deleted already.
	deleted sync.Map
	// polled is when the queue answered last, in Unix ns; stopping: no more is taken.
	polled   atomic.Int64
	stopping atomic.Bool
}

func newPoller(r queue.Receiver, name string, o Options) *poller {
	return &poller{receiver: r, queue: name, options: o, slots: agentrun.NewSlots(o.Concurrency)}
}

// run takes messages until ctx ends, and returns when no task runs any more.
func (p *poller) run(ctx context.Context) error {
	p.polled.Store(time.Now().UnixNano())
	asked := context.AfterFunc(ctx, func() { p.stopping.Store(true) })
	defer asked()
	cut := p.slots.Run(ctx, p.options.Grace, p.poll)
	if cut == 0 {
		return nil
	}
	p.options.Logger.WarnContext(ctx, "work was told to stop", "queue", p.queue, "attempts", cut, "grace", p.options.Grace)
	return agent.ErrCutOff
}

// poll takes messages until ctx ends, and has them handled in work.
func (p *poller) poll(ctx, work context.Context) {
	wait := pauseMin
	for {
		free := p.slots.Reserve(ctx)
		if free == 0 {
			return
		}
		records, err := p.receive(work, free)
		p.slots.Free(free - len(records))
		if ctx.Err() != nil {
			p.handBack(work, records)
			return
		}
		if err != nil {
			p.options.Logger.WarnContext(ctx, "no tasks can be received, and it is tried again", "queue", p.queue, "pause", wait, "error", err)
			_ = pause.For(ctx, wait) // the loop asks whether ctx has ended
			wait = min(2*wait, pauseMax)
			continue
		}
		wait = pauseMin
		p.polled.Store(time.Now().UnixNano())
		for _, record := range records {
			p.slots.Do(func() { p.handle(work, record) })
		}
	}
}

// receive polls once. No message is no error.
func (p *poller) receive(work context.Context, limit int) ([]events.SQSMessage, error) {
	within, cancel := context.WithTimeout(work, window)
	defer cancel()
	records, err := p.receiver.Receive(within, p.queue, limit)
	if errors.Is(err, context.DeadlineExceeded) && within.Err() != nil {
		return nil, nil
	}
	return records, err
}

// handBack makes messages visible at once that were received and not begun.
func (p *poller) handBack(ctx context.Context, records []events.SQSMessage) {
	if len(records) == 0 {
		return
	}
	receipts := make([]string, len(records))
	for i, r := range records {
		receipts[i] = r.ReceiptHandle
	}
	p.slots.Free(len(records))
	p.settle(ctx, "hand back", len(records), func(ctx context.Context) error {
		return p.receiver.Return(ctx, p.queue, 0, receipts...)
	})
}

// handle has one message handled, and deletes it on success.
func (p *poller) handle(work context.Context, record events.SQSMessage) {
	defer p.deleted.Delete(record.ReceiptHandle)
	handler := sqsbatch.Backoff(p.handler, unlessDeleted{p}, p.queue, sqsbatch.BackoffOptions{Logger: p.options.Logger})
	response, err := handler(work, events.SQSEvent{Records: []events.SQSMessage{record}})
	if _, gone := p.deleted.Load(record.ReceiptHandle); gone || err != nil || len(response.BatchItemFailures) > 0 {
		return
	}
	p.delete(work, record)
}

// begun hears that the attempt of a message has begun. From here on its claim is what counts, however long it takes.
func (p *poller) begun(ctx context.Context, record events.SQSMessage, task makegood.Task) {
	if !task.Shared {
		p.deleted.Store(record.ReceiptHandle, true)
		p.delete(ctx, record)
		return
	}
	p.settle(ctx, "hide", 1, func(ctx context.Context) error {
		return p.receiver.Return(ctx, p.queue, task.Timeout.Std()+sharedSpare, record.ReceiptHandle)
	})
}

func (p *poller) delete(ctx context.Context, record events.SQSMessage) {
	p.settle(ctx, "delete", 1, func(ctx context.Context) error { return p.receiver.Delete(ctx, p.queue, record.ReceiptHandle) })
}

// settle deletes, hides or hands back messages. A failure is only logged: a message that comes again finds its
// attempt claimed.
func (p *poller) settle(ctx context.Context, doing string, messages int, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	if err := do(ctx); err != nil {
		p.options.Logger.LogAttrs(ctx, slog.LevelWarn, "messages come again after their visibility timeout",
			slog.String("queue", p.queue), slog.String("could not", doing), slog.Int("messages", messages), slog.Any("error", err))
	}
}

// unlessDeleted makes messages visible again, but for those that are deleted: their receipts would be refused.
type unlessDeleted struct{ *poller }

func (u unlessDeleted) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	var left []string
	for _, r := range receipts {
		if _, gone := u.deleted.Load(r); !gone {
			left = append(left, r)
		}
	}
	return u.receiver.Return(ctx, name, after, left...)
}
