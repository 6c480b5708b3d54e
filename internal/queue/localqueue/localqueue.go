// Package localqueue keeps queues in the memory of the process, with the semantics of SQS standard queues: visibility
// timeouts, delays, dead letters, batches of at most ten, no order. Its Poller plays the event source mapping that
// feeds a Lambda function.
//
// Queued messages are gone when the process is. No job depends on them: the Scheduler derives its commands from the
// stored jobs. Each message is delivered once unless its visibility timeout passes; to get the duplicates, losses and
// delays of a bad day, wrap the queues into a faultqueue. There is no retention period, and no limit on messages in
// flight.
//
// No goroutine runs here: a timer is set while a receiver waits, and only then. Time is that of the standard library,
// so everything works inside a testing/synctest bubble.
package localqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// DefaultVisibility is the visibility timeout of a queue that names none; that of SQS.
const DefaultVisibility = 30 * time.Second

// MaxVisibility is the longest visibility timeout, and the longest that Return takes; that of SQS.
const MaxVisibility = 12 * time.Hour

// Options say which queues there are.
type Options struct {
	Queues []Queue
	// Seed decides the order of messages and their ids, so that a run can be had again. Zero: one is
	// picked, and Queues.Seed tells it.
	Seed uint64
}

// Queue describes one queue.
type Queue struct {
	Name string
	// Visibility is how long a message that was received stays hidden. Default: DefaultVisibility.
	Visibility time.Duration
	// MaxReceives is how often a message is delivered before it goes to the queue DeadLetter. Both
	// are given, or neither: then it is delivered for ever.
	MaxReceives int
	DeadLetter  string
}

// Counts are the totals of a queue so far. A message delivered twice was received twice; one that came from another
// queue as a dead letter was not sent here.
type Counts struct{ Sent, Received, Deleted, DeadLettered int }

// Queues are some queues. They are safe for use by many goroutines at once, and need no closing.
type Queues struct {
	seed  uint64
	lines map[string]*line

	// mu guards everything that the lines point at, and random.
	mu     sync.Mutex
	random *rand.Rand
}

var (
	_ queue.Sender   = (*Queues)(nil)
	_ queue.Receiver = (*Queues)(nil)
)

// New makes empty queues. Its error names everything that is wrong with the options.
func New(options Options) (*Queues, error) {
	seed := options.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	q := &Queues{
		seed:   seed,
		lines:  make(map[string]*line, len(options.Queues)),
		random: rand.New(rand.NewPCG(seed, 0)),
	}
	var wrong []error
	for _, described := range options.Queues {
		if err := described.check(); err != nil {
			wrong = append(wrong, err)
		}
		if q.lines[described.Name] != nil {
			wrong = append(wrong, fmt.Errorf("queue %q is there twice", described.Name))
		}
		l := newLine(described, q.random)
		l.ring = func() { q.ring(l) }
		q.lines[described.Name] = l
	}
	for _, described := range options.Queues {
		l := q.lines[described.Name]
		l.deadLetter = q.lines[described.DeadLetter]
		if described.DeadLetter != "" && (l.deadLetter == nil || l.deadLetter == l) {
			wrong = append(wrong, fmt.Errorf("queue %q: its dead letter queue %q is not another one of these", described.Name, described.DeadLetter))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return q, nil
}

func (d Queue) check() error {
	switch {
	case d.Name == "":
		return errors.New("a queue has no name")
	case d.Visibility < 0 || d.Visibility > MaxVisibility:
		return fmt.Errorf("queue %q: visibility %v, want 0 to %v", d.Name, d.Visibility, MaxVisibility)
	case d.MaxReceives < 0:
		return fmt.Errorf("queue %q: %d receives, want 0 or more", d.Name, d.MaxReceives)
	case (d.MaxReceives == 0) != (d.DeadLetter == ""):
		return fmt.Errorf("queue %q: MaxReceives and DeadLetter need each other", d.Name)
	}
	return nil
}

// Seed is the seed in use.
func (q *Queues) Seed() uint64 { return q.seed }

// Counts returns the counts of every queue by its name.
func (q *Queues) Counts() map[string]Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := make(map[string]Counts, len(q.lines))
	for name, l := range q.lines {
		counts[name] = l.counts
	}
	return counts
}

func (q *Queues) line(name string) (*line, error) {
	l := q.lines[name]
	if l == nil {
		return nil, fmt.Errorf("queue %q: %w", name, queue.ErrNoQueue)
	}
	return l, nil
}

// Send sends as queue.Sender says. It refuses exactly the messages that SQS refuses. After ctx has ended it sends no
// message.
func (q *Queues) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	l, err := q.line(name)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("send to %s: %w", name, ctx.Err())
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(messages))
	}
	var errs []error // nil: none was refused
	fresh := make([]*message, 0, len(messages))
	for i, m := range messages {
		err := queue.Check(m)
		if err == nil {
			fresh = append(fresh, newMessage(m))
			continue
		}
		if errs == nil {
			errs = make([]error, len(messages))
		}
		errs[i] = err
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, m := range fresh {
		l.send(m, now)
	}
	l.settle(now)
	return errs
}

// Depth counts as queue.Sender says, and exactly. A message without deliveries left counts until a receiver comes and
// finds it so.
func (q *Queues) Depth(_ context.Context, name string) (queue.Depth, error) {
	l, err := q.line(name)
	if err != nil {
		return queue.Depth{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l.surface(time.Now())
	return queue.Depth{Waiting: l.visible, InFlight: l.inFlight}, nil
}

// Oldest is the sending time of the next message to be received, or nearly so: the one that has waited longest,
// except for those that came back. Zero: none waits.
func (q *Queues) Oldest(name string) (time.Time, error) {
	l, err := q.line(name)
	if err != nil {
		return time.Time{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l.surface(time.Now())
	return l.oldest(), nil
}

// Receive receives as queue.Receiver says, at most limits.MaxBatch at once. It takes the present messages and does
// not wait for more. When ctx ends first its error is that of ctx.
func (q *Queues) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	l, err := q.line(name)
	if err != nil {
		return nil, err
	}
	if limit < 1 {
		return nil, fmt.Errorf("receive from %s: limit %d, want at least 1", name, limit)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("receive from %s: %w", name, ctx.Err())
	}
	limit = min(limit, limits.MaxBatch)
	var w *waiter
	var room [limits.MaxBatch]delivery // on the stack
	for {
		taken := room[:0]
		if taken, w = q.takeOrWait(l, w, limit, taken); w == nil {
			return l.render(taken), nil
		}
		select {
		case <-w.woken:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			q.leave(l, w)
			return nil, fmt.Errorf("receive from %s: %w", name, ctx.Err())
		}
	}
}

// takeOrWait takes messages, appended to taken, or puts the receiver among the waiters. w is where it has waited, and
// next where it waits now; nil: it does not.
func (q *Queues) takeOrWait(l *line, w *waiter, limit int, taken []delivery) (all []delivery, next *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	l.arrive(w)
	if taken = l.take(taken, limit, now); len(taken) == 0 {
		next = l.wait(limit)
	}
	l.settle(now)
	return taken, next
}

// leave takes w away from the waiters. If it had been woken, another one may have to be in its place.
func (q *Queues) leave(l *line, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.arrive(w)
	l.settle(time.Now())
}

// ring is called by a line's timer when one of its hidden messages may have become visible.
func (q *Queues) ring(l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.settle(time.Now())
}

// Delete deletes as queue.Receiver says. A receipt serves until its message is delivered again, so
// also for a while after its visibility timeout. It cannot fail, but for ErrNoQueue.
func (q *Queues) Delete(_ context.Context, name string, receipts ...string) error {
	l, err := q.line(name)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, receipt := range receipts {
		l.delete(receipt)
	}
	return nil
}

// Return makes messages visible again as queue.Receiver says, after 0 to MaxVisibility. A receipt of a message that
// is not in flight is passed over. It fails only with ErrNoQueue or for a wrong time, and then has no effect.
func (q *Queues) Return(_ context.Context, name string, after time.Duration, receipts ...string) error {
	l, err := q.line(name)
	if err != nil {
		return err
	}
	if after < 0 || after > MaxVisibility {
		return fmt.Errorf("return to %s after %v: want 0 to %v", name, after, MaxVisibility)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	l.surface(now)
	for _, receipt := range receipts {
		l.giveBack(receipt, now.Add(after))
	}
	l.settle(now)
	return nil
}
