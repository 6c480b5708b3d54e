package localqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
)

// polled is a queue with a poller on it, in a bubble.
type polled struct {
	*Queues
	log   *bytes.Buffer
	stop  context.CancelFunc
	ended chan error
}

// poll starts a poller on the queue "main", of these messages, and waits until all is at rest.
func poll(t *testing.T, concurrency int, handler queue.Handler, bodies ...string) polled {
	t.Helper()
	p := polled{
		Queues: open(t, Options{Queues: []Queue{{Name: "main"}}}),
		log:    &bytes.Buffer{},
		ended:  make(chan error, 1),
	}
	for _, body := range bodies {
		send(t, p.Queues, "main", queue.Message{Body: body})
	}
	p.start(t, strictReceiver{p.Queues}, concurrency, handler)
	return p
}

// strictReceiver does nothing for a caller whose context has ended, as a queue behind a network.
type strictReceiver struct{ *Queues }

func (r strictReceiver) Delete(ctx context.Context, name string, receipts ...string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.Queues.Delete(ctx, name, receipts...)
}

func (r strictReceiver) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.Queues.Return(ctx, name, after, receipts...)
}

func (p *polled) start(t *testing.T, receiver queue.Receiver, concurrency int, handler queue.Handler) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	p.stop = stop
	poller := Poller{
		Receiver: receiver, Queue: "main", Concurrency: concurrency, Handler: handler,
		Logger: slog.New(slog.NewTextHandler(p.log, nil)),
	}
	go func() { p.ended <- poller.Run(ctx) }()
	synctest.Wait()
}

func (p polled) wantDeleted(t *testing.T, want int) {
	t.Helper()
	if got := p.Counts()["main"].Deleted; got != want {
		t.Errorf("deleted: got %d messages, want %d", got, want)
	}
}

// wantEnd stops the poller and waits for it.
func (p polled) wantEnd(t *testing.T) {
	t.Helper()
	p.stop()
	if err := <-p.ended; err != nil {
		t.Errorf("the poller ended with %v, want nil", err)
	}
}

func answer(ids ...string) (response events.SQSEventResponse, err error) {
	for _, id := range ids {
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return response, nil
}

// Whatever was received could not be handled by anybody else, so nothing is received ahead.
func TestThePollerReceivesOnlyWhatItCanHandleAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var batches []int
		gate := make(chan struct{})
		p := poll(t, 3, func(_ context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			mu.Lock()
			batches = append(batches, len(event.Records))
			mu.Unlock()
			<-gate
			return answer()
		}, slices.Repeat([]string{"x"}, 35)...)

		mu.Lock()
		if want := []int{10, 10, 10}; !slices.Equal(batches, want) {
			t.Errorf("at once: got batches of %v, want %v", batches, want)
		}
		mu.Unlock()
		if depth, _ := p.Depth(t.Context(), "main"); depth.Waiting != 5 {
			t.Errorf("depth: got %d, want 5 that are not received yet", depth.Waiting)
		}
		close(gate)
		synctest.Wait()
		p.wantDeleted(t, 35)
		p.wantEnd(t)
	})
}

func TestThePollerDoesNotWaitForABatchToFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		handled := make(chan int, 1)
		p := poll(t, 2, func(_ context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			handled <- len(event.Records)
			return answer()
		}, "alone")
		if got := <-handled; got != 1 || time.Since(begun) != 0 {
			t.Errorf("got a batch of %d after %v, want 1 at once", got, time.Since(begun))
		}
		p.wantEnd(t)
	})
}

// What failed is left to its visibility timeout, or to the time that the handler gave it by Return.
func TestOnlyWhatSucceededIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var again []string
		var q *Queues
		p := poll(t, 1, func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			var failed []string
			for _, record := range event.Records {
				if record.Attributes["ApproximateReceiveCount"] != "1" {
					again = append(again, fmt.Sprint(record.Body, " after ", time.Since(begun)))
					continue
				}
				switch record.Body {
				case "returned":
					if err := q.Return(ctx, "main", 3*time.Second, record.ReceiptHandle); err != nil {
						t.Error(err)
					}
					fallthrough
				case "failed":
					failed = append(failed, record.MessageId)
				}
			}
			return answer(failed...)
		})
		q = p.Queues
		send(t, q, "main", queue.Message{Body: "failed"}, queue.Message{Body: "good"}, queue.Message{Body: "returned"})
		synctest.Wait()
		p.wantDeleted(t, 1)
		time.Sleep(time.Hour)
		p.wantDeleted(t, 3)
		if want := []string{"returned after 3s", "failed after 30s"}; !slices.Equal(again, want) {
			t.Errorf("came again: %q, want %q", again, want)
		}
		p.wantEnd(t)
	})
}

func TestABatchMayFailAsAWhole(t *testing.T) {
	for name, test := range map[string]struct {
		handler queue.Handler
		log     string
	}{
		"error": {func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			return events.SQSEventResponse{}, errors.New("the table is down")
		}, "the table is down"},
		"panic": {func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			panic("out of cheese")
		}, "poller_test.go"},
		"goexit": {func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			runtime.Goexit()
			return answer()
		}, ""},
		"unknown id": {func(_ context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			return answer(event.Records[0].MessageId, "stranger")
		}, ""},
		"empty id": {func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			return answer("")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []time.Duration
				begun := time.Now()
				p := poll(t, 1, func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
					calls = append(calls, time.Since(begun))
					if len(calls) == 2 {
						return answer()
					}
					return test.handler(ctx, event)
				}, "a", "b")
				p.wantDeleted(t, 0)
				time.Sleep(time.Hour)
				p.wantDeleted(t, 2)
				if want := []time.Duration{0, DefaultVisibility}; !slices.Equal(calls, want) {
					t.Errorf("calls at %v, want %v", calls, want)
				}
				if !strings.Contains(p.log.String(), test.log) {
					t.Errorf("the log does not say %q:\n%s", test.log, p.log)
				}
				p.wantEnd(t)
			})
		})
	}
}

func TestThePollerEndsWithItsInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := poll(t, 2, func(ctx context.Context, _ events.SQSEvent) (events.SQSEventResponse, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return answer()
		}, "a")
		begun := time.Now()
		p.wantEnd(t)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("ended after %v, want it to wait 1s for its invocation", took)
		}
		p.wantDeleted(t, 1)
	})
}

// lateReceiver receives while its caller is told to stop.
type lateReceiver struct {
	strictReceiver
	stop context.CancelFunc
}

func (r lateReceiver) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	records, err := r.Queues.Receive(ctx, name, limit)
	r.stop()
	return records, err
}

func TestWhatIsReceivedInTheLastMomentGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		send(t, q, "main", queue.Message{Body: "a"})
		ctx, stop := context.WithCancel(t.Context())
		err := Poller{
			Receiver: lateReceiver{strictReceiver{q}, stop}, Queue: "main", Concurrency: 1,
			Handler: func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
				t.Errorf("the handler was called, want the message to go back")
				return answer()
			},
		}.Run(ctx)
		if depth, _ := q.Depth(t.Context(), "main"); depth.Waiting != 1 || err != nil {
			t.Errorf("got error %v, depth %d, want nil and 1", err, depth.Waiting)
		}
	})
}

// sickReceiver gives an error at its first nine calls, and at its eleventh.
type sickReceiver struct {
	*Queues
	calls atomic.Int32
}

func (r *sickReceiver) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	if n := r.calls.Add(1); n <= 9 || n == 11 {
		return nil, errors.New("not today")
	}
	return r.Queues.Receive(ctx, name, 1)
}

func TestAQueueThatFailsIsTriedAgainAfterPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		handled := make(chan time.Duration, 2)
		p := polled{
			Queues: open(t, Options{Queues: []Queue{{Name: "main"}}}),
			log:    &bytes.Buffer{}, ended: make(chan error, 1),
		}
		send(t, p.Queues, "main", queue.Message{Body: "a"}, queue.Message{Body: "b"})
		p.start(t, &sickReceiver{Queues: p.Queues}, 1,
			func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
				handled <- time.Since(begun)
				return answer()
			})
		// 10, 20, 40, ... 640 ms, and twice a second; then from 10 ms again.
		for _, want := range []time.Duration{3270 * time.Millisecond, 3280 * time.Millisecond} {
			if got := <-handled; got != want {
				t.Errorf("handled after %v, want %v", got, want)
			}
		}
		p.wantEnd(t)
		if !strings.Contains(p.log.String(), "not today") {
			t.Errorf("the log does not say what happened:\n%s", p.log)
		}
	})
}

func TestAPollerThatCannotWorkSaysSo(t *testing.T) {
	q := open(t, Options{Queues: []Queue{{Name: "main"}}})
	handler := func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) { return answer() }
	if err := (Poller{Receiver: q, Queue: "other", Concurrency: 1, Handler: handler}).Run(t.Context()); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("an unknown queue: got %v, want %v", err, queue.ErrNoQueue)
	}
	if err := (Poller{Receiver: q, Queue: "main", Handler: handler}).Run(t.Context()); err == nil {
		t.Errorf("no concurrency: got no error")
	}
}

// The bubbles of the other tests would show a goroutine that is left behind; this one also shows that
// none is left in real time, with messages delayed, in flight and waiting.
func TestThePollerLeavesNoGoroutineBehind(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	q := open(t, Options{Queues: []Queue{{Name: "main", Visibility: 5 * time.Millisecond}}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	handled := make(chan struct{}, 100)
	for range 2 {
		poller := Poller{
			Receiver: q, Queue: "main", Concurrency: 4, Logger: slog.New(slog.DiscardHandler),
			Handler: func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
				select {
				case handled <- struct{}{}:
				default:
				}
				return events.SQSEventResponse{}, errors.New("again")
			},
		}
		go func() { ended <- poller.Run(ctx) }()
	}
	for i := range 100 {
		send(t, q, "main", queue.Message{Body: "a", Delay: time.Duration(i%3) * time.Millisecond})
	}
	for range 50 {
		<-handled
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("got %v, want nil", err)
		}
	}
}
