package agentrun

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
)

// errTooLate: CompleteBy passed before the reply was sent.
var errTooLate = errors.New("CompleteBy has passed")

// replies sends the replies of one batch, several with one request: at once when no record of the
// batch works any more, and within replyWithin otherwise, so that a slow neighbour does not cost a
// fast one its deadline. It has no goroutine; those of the records do its work.
type replies struct {
	sender queue.Sender

	mu      sync.Mutex
	working int
	waiting []*reply
}

// reply is a message that waits to be sent.
type reply struct {
	queue   string
	message queue.Message
	// until is when it must not be sent any more.
	until time.Time
	// sent gets the answer; it has room for it, so that nobody waits for one who has left.
	sent chan error
}

// seat is the place of one record among the replies.
type seat struct {
	*replies
	left bool
}

func newReplies(sender queue.Sender, records int) *replies {
	return &replies{sender: sender, working: records}
}

func (b *replies) seat() *seat { return &seat{replies: b} }

// leave says that the record works no more. The last one to leave sends what waits.
func (s *seat) leave(ctx context.Context) {
	s.mu.Lock()
	if !s.left {
		s.left = true
		s.working--
	}
	last := s.working == 0
	s.mu.Unlock()
	if last {
		s.flush(ctx)
	}
}

// send leaves, and sends a reply soon. It tries once. It gives what the queue said, or the cause of
// ctx's end; then the reply may have been sent.
func (s *seat) send(ctx context.Context, r *reply) error {
	s.mu.Lock()
	s.waiting = append(s.waiting, r)
	s.mu.Unlock()
	s.leave(ctx)

	// A reply that has less time than that must not spend it on waiting for company.
	patience := time.NewTimer(min(replyWithin, time.Until(r.until)/2))
	defer patience.Stop()
	select {
	case err := <-r.sent:
		return err
	case <-patience.C:
		s.flush(ctx)
	case <-ctx.Done():
		return r.answer(ctx)
	}
	select {
	case err := <-r.sent:
		return err
	case <-ctx.Done():
		return r.answer(ctx)
	}
}

// answer is what the queue said, also where ctx has ended since: what was sent was told.
func (r *reply) answer(ctx context.Context) error {
	select {
	case err := <-r.sent:
		return err
	default:
		return context.Cause(ctx)
	}
}

// flush sends everything that waits, each queue's with one call.
func (b *replies) flush(ctx context.Context) {
	b.mu.Lock()
	waiting := b.waiting
	b.waiting = nil
	b.mu.Unlock()

	for len(waiting) > 0 {
		var now, others []*reply
		for _, r := range waiting {
			switch {
			case !time.Now().Before(r.until):
				r.sent <- errTooLate
			case len(now) == 0 || r.queue == now[0].queue:
				now = append(now, r)
			default:
				others = append(others, r)
			}
		}
		b.sendAll(ctx, now)
		waiting = others
	}
}

// sendAll sends replies that go to one queue. It has the time of the one that may take longest: the
// one whose goroutine this is may be the one with the least.
func (b *replies) sendAll(ctx context.Context, group []*reply) {
	if len(group) == 0 {
		return
	}
	until := group[0].until
	messages := make([]queue.Message, 0, len(group))
	for _, r := range group {
		messages = append(messages, r.message)
		if r.until.After(until) {
			until = r.until
		}
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	errs := b.sender.Send(ctx, group[0].queue, messages...)
	for i, r := range group {
		if i < len(errs) {
			r.sent <- errs[i]
			continue
		}
		r.sent <- nil
	}
}
