// Package faultqueue wraps queues and gives them bad days: messages lost, doubled, delayed and
// reordered, calls that fail before or after they had their effect, and the death of the process at
// an exact call. It is for tests and simulations.
//
// Random faults come from one seeded source: the same calls in the same order meet the same faults.
// Goroutines that call at once share it, so there the seed gives the same faults to other calls.
package faultqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/queue"
)

var (
	// ErrInjected is the error of a call that was made to fail. Whether it had its effect only
	// Injected counts.
	ErrInjected = errors.New("injected fault")
	// ErrCrashed is the error of the call at which the process died, and of every one after it.
	ErrCrashed = errors.New("crashed")
)

// MaxDelay is the longest delay of a message that is delayed by a fault.
const MaxDelay = 5 * time.Second

// Options select the faults. Rates are probabilities of 0 to 1; the zero value injects none.
type Options struct {
	// Seed of all random faults.
	Seed uint64

	// Lose is the rate at which a message that is sent is dropped, and answered as sent.
	Lose float64
	// Duplicate is the rate at which a message is sent twice.
	Duplicate float64
	// Delay is the rate at which a message is delayed by a random time up to MaxDelay on top of its own. Each of two
	// duplicates is delayed by a time of its own.
	Delay float64
	// Reorder is the rate at which the messages of a Send, or of a Receive, are put in random order.
	Reorder float64
	// FailBefore and FailAfter are the rates at which a message is answered with ErrInjected without being sent, or after
	// being sent; and at which a call of another kind fails as a whole, before or after its effect. A Receive that fails
	// after its effect leaves its messages to their visibility timeout.
	FailBefore, FailAfter float64

	// Plan returns the fault of exactly this call, whatever the rates are. Nil: none. It is called by one goroutine at a
	// time, and must not call the queues.
	Plan func(Call) Fault
	// OnCrash is called once, when the process dies, before the call returns.
	OnCrash func(Call)
}

// Call is one call of a method.
type Call struct {
	// N counts all calls from 1.
	N     int
	Op    Op
	Queue string
}

// Op is the method that was called.
type Op string

// The methods.
const (
	Send    Op = "Send"
	Depth   Op = "Depth"
	Receive Op = "Receive"
	Delete  Op = "Delete"
	Return  Op = "Return"
)

// Fault is what Plan wants to happen at a call.
type Fault int

// The faults of a plan. A call to Send fails for all of its messages.
const (
	// None leaves the call to the rates.
	None Fault = iota
	// FailBefore is ErrInjected, without an effect.
	FailBefore
	// FailAfter is ErrInjected, after the effect.
	FailAfter
	// CrashBefore is the death of the process before the call has its effect.
	CrashBefore
	// CrashAfter is the death of the process after the call had its effect, before it is answered.
	CrashAfter
)

// Injected counts the faults so far: messages lost, duplicated, delayed; Sends and Receives
// reordered; messages and calls failed; and whether the process died, 0 or 1.
type Injected struct{ Lost, Duplicated, Delayed, Reordered, FailedBefore, FailedAfter, Crashed int }

// Inner is the wrapped queue.
type Inner interface {
	queue.Sender
	queue.Receiver
}

// Queues are the wrapped queues, as one process sees them. After a crash wrap the same Inner again:
// that is the process's next life.
type Queues struct {
	inner   Inner
	options Options
	// dead ends when the process does, and with it every Receive that waits.
	dead context.Context
	die  context.CancelFunc

	// mu guards everything below.
	mu       sync.Mutex
	random   *rand.Rand
	calls    int
	injected Injected
}

var (
	_ queue.Sender   = (*Queues)(nil)
	_ queue.Receiver = (*Queues)(nil)
)

// New wraps inner. In a testing/synctest bubble it must be called inside.
func New(inner Inner, options Options) *Queues {
	q := &Queues{inner: inner, options: options, random: rand.New(rand.NewPCG(options.Seed, 0))}
	q.dead, q.die = context.WithCancel(context.Background())
	return q
}

// Injected returns the faults so far.
func (q *Queues) Injected() Injected {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.injected
}

// begin counts a call and asks the plan. Its error is that of a call that has no effect any more.
func (q *Queues) begin(op Op, name string) (Call, Fault, error) {
	q.mu.Lock()
	q.calls++
	call := Call{N: q.calls, Op: op, Queue: name}
	if q.dead.Err() != nil {
		q.mu.Unlock()
		return call, None, call.failed(ErrCrashed)
	}
	fault := None
	if q.options.Plan != nil {
		fault = q.options.Plan(call)
	}
	q.mu.Unlock()

	switch fault {
	case None, FailAfter, CrashAfter:
		return call, fault, nil
	case FailBefore:
		return call, fault, q.failBefore(call)
	case CrashBefore:
		return call, fault, q.crash(call)
	default:
		panic(fmt.Sprintf("faultqueue: plan wants fault %d", fault))
	}
}

// end returns the error of a call that had its effect: none of its answers reach a dead process.
func (q *Queues) end(call Call, fault Fault, err error) error {
	switch {
	case fault == CrashAfter:
		return q.crash(call)
	case q.dead.Err() != nil:
		return call.failed(ErrCrashed)
	case fault == FailAfter && err == nil:
		q.count(func(i *Injected) { i.FailedAfter++ })
		return call.failed(ErrInjected)
	}
	return err
}

func (q *Queues) failBefore(call Call) error {
	q.count(func(i *Injected) { i.FailedBefore++ })
	return call.failed(ErrInjected)
}

func (q *Queues) crash(call Call) error {
	q.mu.Lock()
	first := q.dead.Err() == nil
	if first {
		q.injected.Crashed++
		q.die()
	}
	q.mu.Unlock()
	if first && q.options.OnCrash != nil {
		q.options.OnCrash(call)
	}
	return call.failed(ErrCrashed)
}

func (c Call) failed(err error) error {
	return fmt.Errorf("call %d, %s %s: %w", c.N, c.Op, c.Queue, err)
}

func (q *Queues) count(raise func(*Injected)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	raise(&q.injected)
}

// roll throws the dice for a call that is not a Send.
func (q *Queues) roll() Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, after := q.hit(q.options.FailBefore), q.hit(q.options.FailAfter)
	switch {
	case before:
		return FailBefore
	case after:
		return FailAfter
	}
	return None
}

// hit throws the dice once. The caller holds mu.
func (q *Queues) hit(rate float64) bool { return q.random.Float64() < rate }

// call does a call that is not a Send.
func (q *Queues) call(op Op, name string, do func() error) error {
	call, fault, err := q.begin(op, name)
	if err != nil {
		return err
	}
	if fault == None {
		fault = q.roll()
	}
	if fault == FailBefore {
		return q.failBefore(call)
	}
	return q.end(call, fault, do())
}

// Depth is that of inner.
func (q *Queues) Depth(ctx context.Context, name string) (depth queue.Depth, err error) {
	err = q.call(Depth, name, func() (err error) {
		depth, err = q.inner.Depth(ctx, name)
		return err
	})
	if err != nil {
		return queue.Depth{}, err
	}
	return depth, nil
}

// Receive is that of inner. If the process dies while it waits, it takes no more messages.
func (q *Queues) Receive(ctx context.Context, name string, limit int) (records []events.SQSMessage, err error) {
	err = q.call(Receive, name, func() (err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(q.dead, cancel)()
		records, err = q.inner.Receive(ctx, name, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hit(q.options.Reorder) && len(records) > 1 {
		q.injected.Reordered++
		q.random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	}
	return records, nil
}

// Delete is that of inner.
func (q *Queues) Delete(ctx context.Context, name string, receipts ...string) error {
	return q.call(Delete, name, func() error { return q.inner.Delete(ctx, name, receipts...) })
}

// Return is that of inner.
func (q *Queues) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	return q.call(Return, name, func() error { return q.inner.Return(ctx, name, after, receipts...) })
}
