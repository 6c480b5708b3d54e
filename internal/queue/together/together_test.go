package together

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/queue/queuetest"
)

// joined are local queues, sent to by a Sender.
type joined struct {
	*Sender
	queue.Receiver
}

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		local, err := localqueue.New(localqueue.Options{Queues: []localqueue.Queue{
			{Name: "main", Visibility: 10 * time.Second, MaxReceives: 4, DeadLetter: "dead"},
			{Name: "dead", Visibility: 10 * time.Second},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return queuetest.Harness{
			Queues: joined{New(local), local}, Name: "main", DeadLetter: "dead", Visibility: 10 * time.Second, MaxReceives: 4,
			Unit: time.Second, Patience: 11 * time.Second, InProcess: true,
		}
	})
}

// wire is a queue.Sender that takes ten milliseconds, or hangs, and notes each request.
type wire struct {
	began time.Time
	hang  time.Duration

	mu       sync.Mutex
	requests []string
}

func (w *wire) Depth(context.Context, string) (queue.Depth, error) { return queue.Depth{}, nil }

var errNo = errors.New("no")

// Send takes all but a message "no", and panics at "panic".
func (w *wire) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	w.mu.Lock()
	var bodies []string
	errs := make([]error, len(messages))
	for i, m := range messages {
		bodies = append(bodies, m.Body)
		switch m.Body {
		case "no":
			errs[i] = errNo
		case "panic":
			defer panic("at the wire")
		}
	}
	slices.Sort(bodies)
	w.requests = append(w.requests, fmt.Sprintf("%s at %v: %s", name, time.Since(w.began), strings.Join(bodies, " ")))
	hang := w.hang
	w.hang = 0
	w.mu.Unlock()
	select {
	case <-time.After(10*time.Millisecond + hang):
		return errs
	case <-ctx.Done():
		return slices.Repeat([]error{ctx.Err()}, len(messages))
	}
}

// call is a call of Send.
type call struct {
	after  time.Duration
	within time.Duration // 0: as long as it takes
	queue  string
	bodies string
}

// outcome is what became of a call: its errors, and how long it took.
type outcome struct {
	errs []error
	took time.Duration
}

// play makes calls side by side, and returns the requests that they became.
func play(t *testing.T, w *wire, calls ...call) (requests []string, outcomes []outcome) {
	t.Helper()
	w.began = time.Now()
	s := New(w)
	outcomes = make([]outcome, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() {
			defer func() { _ = recover() }() // The caller of a request that panics hears of it.
			time.Sleep(c.after)
			ctx := t.Context()
			if c.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.within)
				defer cancel()
			}
			var messages []queue.Message
			for body := range strings.FieldsSeq(c.bodies) {
				messages = append(messages, queue.Message{Body: body})
			}
			began := time.Now()
			outcomes[i].errs = s.Send(ctx, c.queue, messages...)
			outcomes[i].took = time.Since(began)
		})
	}
	all.Wait()
	return w.requests, outcomes
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// ten are calls of one message each, at once.
func ten(after time.Duration) (calls []call) {
	for i := range limits.MaxBatch {
		calls = append(calls, call{after: after, queue: "q", bodies: fmt.Sprint(i)})
	}
	return calls
}

func TestWhatComesWhileARequestIsUnderWayGoesWithTheNext(t *testing.T) {
	for _, c := range []struct {
		name  string
		hang  time.Duration
		calls []call
		want  []string
		// took is how long each call took.
		took []time.Duration
	}{
		{
			"alone: at once", 0,
			[]call{{queue: "q", bodies: "a"}, {after: ms(20), queue: "q", bodies: "b"}},
			[]string{"q at 0s: a", "q at 20ms: b"},
			[]time.Duration{ms(10), ms(10)},
		},
		{
			"the next takes along all that waits", 0,
			[]call{{queue: "q", bodies: "a"}, {after: ms(2), queue: "q", bodies: "b"}, {after: ms(4), queue: "q", bodies: "c d"}},
			[]string{"q at 0s: a", "q at 10ms: b c d"},
			[]time.Duration{ms(10), ms(18), ms(16)},
		},
		{
			"a queue does not wait for another", 0,
			[]call{{queue: "q", bodies: "a"}, {after: ms(2), queue: "p", bodies: "b"}},
			[]string{"q at 0s: a", "p at 2ms: b"},
			[]time.Duration{ms(10), ms(10)},
		},
		{
			"a full batch does not wait", 0, append([]call{{queue: "q", bodies: "a"}}, ten(ms(3))...),
			[]string{"q at 0s: a", "q at 3ms: 0 1 2 3 4 5 6 7 8 9"},
			slices.Repeat([]time.Duration{ms(10)}, 11),
		},
		{
			"a request that hangs holds up none but its own", ms(500),
			[]call{{queue: "q", bodies: "a"}, {after: ms(1), queue: "q", bodies: "b"}, {after: ms(2), queue: "q", bodies: "c"}},
			[]string{"q at 0s: a", "q at 51ms: b c"},
			[]time.Duration{ms(510), ms(60), ms(59)},
		},
		{
			"who leaves takes nothing along and leaves nothing behind", 0,
			[]call{{queue: "q", bodies: "a"}, {after: ms(1), within: ms(3), queue: "q", bodies: "b"}, {after: ms(2), queue: "q", bodies: "c"}},
			[]string{"q at 0s: a", "q at 10ms: c"},
			[]time.Duration{ms(10), ms(3), ms(18)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, outcomes := play(t, &wire{hang: c.hang}, c.calls...)
				if !slices.Equal(requests, c.want) {
					t.Errorf("requests: got %q, want %q", requests, c.want)
				}
				for i, o := range outcomes {
					if o.took != c.took[i] {
						t.Errorf("call %d took %v, want %v", i, o.took, c.took[i])
					}
					if left := c.calls[i].within > 0; (errors.Join(o.errs...) != nil) != left {
						t.Errorf("call %d: got %v, left: %v", i, o.errs, left)
					}
				}
			})
		})
	}
}

// Each caller gets the errors of its own messages: one that is not taken harms no other.
func TestAMessageThatIsNotTakenHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, outcomes := play(t, &wire{},
			call{queue: "q", bodies: "a"}, call{after: ms(1), queue: "q", bodies: "b"},
			call{after: ms(2), queue: "q", bodies: "c no d"}, call{after: ms(3), queue: "q", bodies: "e"})
		if errs := outcomes[2].errs; len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], errNo) || errs[2] != nil {
			t.Errorf("got %v, want the error of the second alone", errs)
		}
		for _, i := range []int{0, 1, 3} {
			if err := errors.Join(outcomes[i].errs...); err != nil {
				t.Errorf("call %d: got %v, want none", i, err)
			}
		}
	})
}

// A caller with little time left makes the request for those beside it, and does not cut theirs.
func TestAHurriedCallerDoesNotCutItsCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, outcomes := play(t, &wire{},
			call{queue: "q", bodies: "a"}, call{after: ms(1), within: ms(12), queue: "q", bodies: "hurried"},
			call{after: ms(2), within: ms(1000), queue: "q", bodies: "b"})
		if want := []string{"q at 0s: a", "q at 10ms: b hurried"}; !slices.Equal(requests, want) {
			t.Errorf("requests: got %q, want %q", requests, want)
		}
		if err := errors.Join(outcomes[2].errs...); err != nil {
			t.Errorf("its company: got %v, want that it was sent", err)
		}
	})
}

// A panic reaches the caller of its request alone: the other callers get an error, and wait no longer.
func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		requests, outcomes := play(t, w,
			call{queue: "q", bodies: "a"}, call{after: ms(1), queue: "q", bodies: "panic"}, call{after: ms(2), queue: "q", bodies: "b"},
			call{after: ms(100), queue: "q", bodies: "c"})
		failed := 0
		for _, o := range outcomes[1:3] {
			if o.took == 0 || errors.Is(errors.Join(o.errs...), errNoAnswer) {
				failed++
			}
		}
		if failed != 2 || len(requests) != 3 || errors.Join(outcomes[3].errs...) != nil {
			t.Errorf("got %d failed, requests %q, and then %v", failed, requests, outcomes[3].errs)
		}
	})
}
