package faultqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/queue/queuetest"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// wrap returns local queues with faults.
func wrap(t *testing.T, o Options) (*Queues, *localqueue.Queues) {
	t.Helper()
	if o.Seed == 0 {
		o.Seed = seed.Of(t)
	}
	local, err := localqueue.New(localqueue.Options{Seed: o.Seed, Queues: []localqueue.Queue{
		{Name: "main", Visibility: 10 * time.Second, MaxReceives: 4, DeadLetter: "dead"}, {Name: "dead"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return New(local, o), local
}

// many are n messages, each with its number.
func many(n int) []queue.Message {
	messages := make([]queue.Message, n)
	for i := range messages {
		messages[i].Body = fmt.Sprint(i)
	}
	return messages
}

// drain receives all that comes within a minute, and returns the bodies.
func drain(t *testing.T, q queue.Receiver) (bodies []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		records, err := q.Receive(ctx, "main", 10)
		if err != nil {
			return bodies
		}
		for _, record := range records {
			bodies = append(bodies, record.Body)
			if err := q.Delete(ctx, "main", record.ReceiptHandle); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Without faults the wrapper keeps to everything that it wraps.
func TestConformanceWithoutFaults(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		q, _ := wrap(t, Options{Plan: func(Call) Fault { return None }})
		return queuetest.Harness{
			Queues: q, Name: "main", DeadLetter: "dead", Visibility: 10 * time.Second, MaxReceives: 4,
			Unit: time.Second, Patience: 11 * time.Second, InProcess: true,
		}
	})
}

func TestWhatIsLostDoubledAndDelayedIsAnsweredAsSent(t *testing.T) {
	const n = 2000
	for name, test := range map[string]struct {
		options Options
		// counted is how many messages were struck; now and later are how many are then to be had.
		counted    func(Injected) int
		now, later func(counted int) int
	}{
		"lose": {
			Options{Lose: 0.2},
			func(i Injected) int { return i.Lost },
			func(lost int) int { return n - lost }, func(lost int) int { return n - lost },
		},
		"duplicate": {
			Options{Duplicate: 0.2},
			func(i Injected) int { return i.Duplicated },
			func(doubled int) int { return n + doubled }, func(doubled int) int { return n + doubled },
		},
		"delay": {
			Options{Delay: 0.2},
			func(i Injected) int { return i.Delayed },
			func(delayed int) int { return n - delayed }, func(int) int { return n },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, local := wrap(t, test.options)
				if errs := q.Send(t.Context(), "main", many(n)...); errs != nil {
					t.Errorf("got errors, want all answered as sent")
				}
				counted := test.counted(q.Injected())
				if counted < n/10 || counted > 3*n/10 {
					t.Errorf("%d of %d messages at a rate of 0.2", counted, n)
				}
				if depth, _ := local.Depth(t.Context(), "main"); depth.Waiting != test.now(counted) {
					t.Errorf("at once: got %d messages, want %d", depth.Waiting, test.now(counted))
				}
				time.Sleep(MaxDelay)
				if depth, _ := local.Depth(t.Context(), "main"); depth.Waiting != test.later(counted) {
					t.Errorf("after %v: got %d messages, want %d", MaxDelay, depth.Waiting, test.later(counted))
				}
			})
		})
	}
}

// Of the messages of one Send, those with an error and those without are distinguished correctly,
// whatever else happens to them.
func TestAMessageThatFailedIsDistinguishedFromItsNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		for _, o := range []Options{{FailBefore: 0.2, Reorder: 1, Duplicate: 0.1}, {FailAfter: 0.2, Reorder: 1}} {
			q, local := wrap(t, o)
			errs := q.Send(t.Context(), "main", many(n)...)
			arrived := map[string]bool{}
			for _, body := range drain(t, local) {
				arrived[body] = true
			}
			failed := 0
			for i, err := range errs {
				want := err == nil || o.FailAfter > 0
				if arrived[fmt.Sprint(i)] != want {
					t.Fatalf("message %d: error %v, arrived %v, want %v", i, err, !want, want)
				}
				if err != nil {
					failed++
					if !errors.Is(err, ErrInjected) {
						t.Fatalf("message %d: got %v, want %v", i, err, ErrInjected)
					}
				}
			}
			i := q.Injected()
			if counted := i.FailedBefore + i.FailedAfter; counted != failed || failed < n/10 || failed > 3*n/10 {
				t.Errorf("%d errors, %d counted, of %d messages at a rate of 0.2", failed, counted, n)
			}
			if i.Reordered != 1 {
				t.Errorf("reordered: got %d, want 1", i.Reordered)
			}
		}
	})
}

func TestOtherCallsFailBeforeAndAfterTheirEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, local := wrap(t, Options{Seed: 1})
		local.Send(t.Context(), "main", many(2)...)
		before, after := New(local, Options{FailBefore: 1}), New(local, Options{FailAfter: 1})
		wantFault := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, ErrInjected) {
				t.Errorf("%s: got %v, want %v", what, err, ErrInjected)
			}
		}
		wantDepth := func(what string, want int) {
			t.Helper()
			if depth, _ := local.Depth(t.Context(), "main"); depth.Waiting != want {
				t.Errorf("%s: got depth %d, want %d", what, depth.Waiting, want)
			}
		}
		_, err := before.Depth(t.Context(), "main")
		wantFault("depth", err)
		_, err = before.Receive(t.Context(), "main", 2)
		wantFault("receive, failed before", err)
		wantDepth("receive, failed before", 2)
		_, err = after.Receive(t.Context(), "main", 1)
		wantFault("receive, failed after", err)
		wantDepth("receive, failed after", 1)
		records, err := local.Receive(t.Context(), "main", 1)
		if err != nil {
			t.Fatal(err)
		}
		receipt := records[0].ReceiptHandle
		wantFault("return, failed before", before.Return(t.Context(), "main", 0, receipt))
		wantDepth("return, failed before", 0)
		wantFault("return, failed after", after.Return(t.Context(), "main", 0, receipt))
		wantDepth("return, failed after", 1)
		wantFault("delete, failed before", before.Delete(t.Context(), "main", receipt))
		wantDepth("delete, failed before", 1)
		wantFault("delete, failed after", after.Delete(t.Context(), "main", receipt))
		wantDepth("delete, failed after", 0)
		if b, a := before.Injected().FailedBefore, after.Injected().FailedAfter; b != 4 || a != 3 {
			t.Errorf("counted %d before and %d after, want 4 and 3", b, a)
		}
	})
}

func TestTheRecordsOfAReceiveAreReordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, local := wrap(t, Options{Seed: 1, Reorder: 1})
		same, _ := wrap(t, Options{Seed: 1})
		for _, sender := range []queue.Sender{local, same} {
			sender.Send(t.Context(), "main", many(10)...)
		}
		order := func(q *Queues) (bodies []string) {
			records, err := q.Receive(t.Context(), "main", 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range records {
				bodies = append(bodies, record.Body)
			}
			return bodies
		}
		if got, plain := order(q), order(same); slices.Equal(got, plain) || len(got) != 10 {
			t.Errorf("got %v, want another order than %v", got, plain)
		}
		if i := q.Injected(); i != (Injected{Reordered: 1}) {
			t.Errorf("injected: got %+v, want one reordering", i)
		}
	})
}

func TestAnErrorOfTheQueueItselfIsPassedOn(t *testing.T) {
	q, _ := wrap(t, Options{FailAfter: 1})
	if err := q.Delete(t.Context(), "nowhere"); !errors.Is(err, queue.ErrNoQueue) {
		t.Errorf("got %v, want %v", err, queue.ErrNoQueue)
	}
}

func TestARefusedMessageStaysRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := wrap(t, Options{FailAfter: 1, Duplicate: 1})
		errs := q.Send(t.Context(), "main", queue.Message{Body: "\x00"}, queue.Message{Body: "a"})
		var refused *queue.RefusedError
		if !errors.As(errs[0], &refused) || !errors.Is(errs[1], ErrInjected) {
			t.Errorf("got %v, want the first refused and %v for the second", errs, ErrInjected)
		}
	})
}

func TestADelayStaysWithinWhatAQueueTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := wrap(t, Options{Delay: 1})
		for _, delay := range []time.Duration{0, 15*time.Minute - time.Millisecond, 15 * time.Minute} {
			if errs := q.Send(t.Context(), "main", queue.Message{Body: "a", Delay: delay}); errs != nil {
				t.Errorf("delay %v: got %v, want it sent", delay, errs)
			}
		}
		for _, delay := range []time.Duration{-time.Nanosecond, 16 * time.Minute} {
			if errs := q.Send(t.Context(), "main", queue.Message{Body: "a", Delay: delay}); errs == nil {
				t.Errorf("delay %v: got it sent, want it refused as without faults", delay)
			}
		}
	})
}

func TestTheSeedDecidesTheFaults(t *testing.T) {
	run := func(seed uint64) (trace string) {
		synctest.Test(t, func(t *testing.T) {
			q, local := wrap(t, Options{Seed: seed, Lose: 0.2, Duplicate: 0.2, Delay: 0.2, Reorder: 0.5, FailBefore: 0.1, FailAfter: 0.1})
			for range 20 {
				trace += fmt.Sprint(q.Send(t.Context(), "main", many(5)...))
			}
			trace += fmt.Sprint(drain(t, local), q.Injected())
		})
		return trace
	}
	if first, same := run(7), run(7); first != same {
		t.Errorf("seed 7 gave two runs:\n%s\n%s", first, same)
	}
	if run(7) == run(8) {
		t.Errorf("seeds 7 and 8 gave the same run")
	}
}

// The rows come in pairs: the call failed and had no effect, the call failed and had its effect.
func TestAPlanStrikesAtExactlyItsCall(t *testing.T) {
	for _, test := range []struct {
		fault   Fault
		want    error
		effect  bool
		crashed bool
	}{
		{FailBefore, ErrInjected, false, false},
		{FailAfter, ErrInjected, true, false},
		{CrashBefore, ErrCrashed, false, true},
		{CrashAfter, ErrCrashed, true, true},
	} {
		t.Run(fmt.Sprint("fault ", test.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var planned, deaths []Call
				q, local := wrap(t, Options{
					Plan: func(c Call) Fault {
						planned = append(planned, c)
						if c == (Call{2, Send, "main"}) {
							return test.fault
						}
						return None
					},
					OnCrash: func(c Call) { deaths = append(deaths, c) },
				})
				if errs := q.Send(t.Context(), "main", many(1)...); errs != nil {
					t.Fatal(errs)
				}
				errs := q.Send(t.Context(), "main", queue.Message{Body: "x"}, queue.Message{Body: "y"})
				for i := range 2 {
					if !errors.Is(errs[i], test.want) || !strings.Contains(errs[i].Error(), "call 2, Send main") {
						t.Errorf("message %d: got %v, want %v at call 2", i, errs[i], test.want)
					}
				}
				_, err := q.Depth(t.Context(), "main")
				if crashed := errors.Is(err, ErrCrashed); crashed != test.crashed || !crashed && err != nil {
					t.Errorf("the next call: got %v, want a crash: %v", err, test.crashed)
				}
				want := []string{"0"}
				if test.effect {
					want = []string{"0", "x", "y"}
				}
				got := drain(t, local)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("arrived: got %q, want %q", got, want)
				}
				// A dead process asks its plan for nothing more.
				wantPlanned, wantDeaths := []Call{{1, Send, "main"}, {2, Send, "main"}, {3, Depth, "main"}}, 0
				if test.crashed {
					wantPlanned, wantDeaths = wantPlanned[:2], 1
				}
				if !slices.Equal(planned, wantPlanned) {
					t.Errorf("planned %v, want %v", planned, wantPlanned)
				}
				if len(deaths) != wantDeaths || wantDeaths == 1 && deaths[0] != planned[1] {
					t.Errorf("deaths at %v, want %d, at the second call", deaths, wantDeaths)
				}
			})
		})
	}
}

// A receiver of the dead process that was still waiting would take the messages of its next life.
func TestADeadProcessReceivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaths := 0
		q, local := wrap(t, Options{
			Plan: func(c Call) Fault {
				return map[Op]Fault{Delete: CrashBefore, Receive: CrashAfter}[c.Op]
			},
			OnCrash: func(Call) { deaths++ },
		})
		received := make(chan error)
		go func() {
			_, err := q.Receive(t.Context(), "main", 10)
			received <- err
		}()
		synctest.Wait()
		if err := q.Delete(t.Context(), "main", "any"); !errors.Is(err, ErrCrashed) {
			t.Errorf("delete: got %v, want %v", err, ErrCrashed)
		}
		if err := <-received; !errors.Is(err, ErrCrashed) {
			t.Errorf("receive: got %v, want %v", err, ErrCrashed)
		}
		next := New(local, Options{})
		if errs := next.Send(t.Context(), "main", many(1)...); errs != nil {
			t.Fatal(errs)
		}
		if got := drain(t, next); len(got) != 1 {
			t.Errorf("the next life received %q, want one message", got)
		}
		if i := q.Injected(); i != (Injected{Crashed: 1}) || deaths != 1 {
			t.Errorf("injected: got %+v, told of %d crashes, want one", i, deaths)
		}
	})
}

// In real time, too, nothing of a wrapper is left behind, whether its process died or not.
func TestNoGoroutineIsLeftBehind(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	for _, fault := range []Fault{None, CrashBefore, CrashAfter} {
		q, _ := wrap(t, Options{Plan: func(c Call) Fault {
			if c.Op == Send {
				return fault
			}
			return None
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				if _, err := q.Receive(ctx, "main", 1); errors.Is(err, ErrCrashed) {
					return
				}
			}
		}()
		q.Send(t.Context(), "main", many(3)...)
		cancel()
		<-ended
	}
}
