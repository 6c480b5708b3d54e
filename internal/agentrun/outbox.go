package agentrun

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
)

// errTooLate: CompleteBy passed before the reply was sent.
var errTooLate = errors.New("CompleteBy has passed")

// outbox sends the replies of one batch, several with one request: at once when no record of the
// batch works any more, and soon otherwise (patience), so that a slow neighbour does not cost a
// fast one its deadline. It has no goroutine; those of the records do its work.
type outbox struct {
	sender queue.Sender
	began  time.Time

	mu      sync.Mutex
	working int
	waiting []*envelope
	// room has the first that waits, and only is the worker of a record that is alone: most batches have one record.
	room [1]*envelope
	only worker
}

// envelope is a reply that waits to be sent.
type envelope struct {
	queue string
	// message is a list of one: a reply that is alone is sent as it is.
	message [1]queue.Message
	// until is when it must not be sent any more.
	until time.Time
	// answered: the queue has said err. heard is closed then, where the reply is waited for. The outbox is locked.
	answered bool
	err      error
	heard    chan struct{}
}

// worker is one record of the batch: while it works, the replies of others may wait for its own.
type worker struct {
	*outbox
	ended bool
	// first is the reply; where it has to be sent again, the next ones are others.
	first envelope
}

// open makes an outbox of one that has no worker any more.
func (o *outbox) open(sender queue.Sender, records int) {
	*o = outbox{sender: sender, began: time.Now(), working: records}
	if o.waiting = o.room[:0]; records == 1 {
		o.only.outbox = o
	}
}

func (o *outbox) worker() *worker {
	if o.only.outbox != nil {
		return &o.only
	}
	return &worker{outbox: o}
}

// say sends the reply of an attempt to the queue that waits for it.
func (w *worker) say(ctx context.Context, a *attempt, reply job.Event, until time.Time) error {
	body, err := a.bodyOf(ctx, &a.task, reply)
	if err != nil {
		return err
	}
	e := &w.first
	if w.ended {
		e = new(envelope) // The one before may be on its way still.
	}
	*e = envelope{queue: a.task.ReplyTo, message: [1]queue.Message{{Body: body, Group: a.task.Job}}, until: until}
	return w.send(ctx, e)
}

// end marks the record as done. The last one to end sends the waiting replies.
func (w *worker) end(ctx context.Context) {
	w.mu.Lock()
	if !w.ended {
		w.ended = true
		w.working--
	}
	last := w.working == 0
	w.mu.Unlock()
	if last {
		w.flush(ctx)
	}
}

// send ends the work, and sends a reply soon. It tries once. It returns what the queue said, or the cause of
// ctx's end; then the reply may have been sent.
func (w *worker) send(ctx context.Context, e *envelope) error {
	w.mu.Lock()
	w.waiting = append(w.waiting, e)
	w.mu.Unlock()
	w.end(ctx)
	heard := w.await(e)
	if heard == nil {
		return e.err // Nearly always: it was the last of its batch, or alone.
	}

	patience := time.NewTimer(w.patience(e))
	defer patience.Stop()
	select {
	case <-heard:
		return e.err
	case <-patience.C:
		w.flush(ctx)
	case <-ctx.Done():
	}
	select {
	case <-heard:
		return e.err
	case <-ctx.Done():
	}
	select {
	case <-heard: // A reply that was sent counts as told.
		return e.err
	default:
		return context.Cause(ctx)
	}
}

// patience is how long a reply waits while others of its batch work. One that has little time left must not spend it on
// waiting for company.
func (o *outbox) patience(e *envelope) time.Duration {
	company := min(max(replyWithin, time.Since(o.began)/4), maxReplyWithin)
	return min(company, time.Until(e.until)/2)
}

// await returns the channel that is closed when a reply was answered; nil: it was.
func (o *outbox) await(e *envelope) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.answered {
		return nil
	}
	e.heard = make(chan struct{})
	return e.heard
}

// answer notes what the queue has said of a reply.
func (o *outbox) answer(e *envelope, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e.answered, e.err = true, err
	if e.heard != nil {
		close(e.heard)
	}
}

// flush sends everything that waits, each queue's with one call.
func (o *outbox) flush(ctx context.Context) {
	o.mu.Lock()
	waiting := o.waiting
	o.waiting = nil
	o.mu.Unlock()

	for len(waiting) > 0 {
		now, others := waiting[:0], []*envelope(nil)
		for _, e := range waiting {
			switch {
			case !time.Now().Before(e.until):
				o.answer(e, errTooLate)
			case len(now) == 0 || e.queue == now[0].queue:
				now = append(now, e)
			default:
				others = append(others, e)
			}
		}
		o.sendAll(ctx, now)
		waiting = others
	}
}

// sendAll sends replies that go to one queue. Its deadline is the latest of theirs: the caller's own may be the
// earliest.
func (o *outbox) sendAll(ctx context.Context, group []*envelope) {
	if len(group) == 0 {
		return
	}
	until, messages := group[0].until, group[0].message[:]
	for _, e := range group[1:] {
		messages = append(messages, e.message[0])
		if e.until.After(until) {
			until = e.until
		}
	}
	if has, ok := ctx.Deadline(); !ok || !has.Equal(until) { // That of a reply which is alone is made for it.
		var cancel context.CancelFunc
		ctx, cancel = pause.Until(ctx, until)
		defer cancel()
	}
	errs := o.sender.Send(ctx, group[0].queue, messages...)
	for i, e := range group {
		var err error
		if i < len(errs) {
			err = errs[i]
		}
		o.answer(e, err)
	}
}
