package localqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/queuetest"
)

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		q := open(t, Options{Queues: []Queue{
			{Name: "main", Visibility: 10 * time.Second, MaxReceives: 4, DeadLetter: "dead"},
			{Name: "dead", Visibility: 10 * time.Second},
		}})
		return queuetest.Harness{
			Queues: q, Name: "main", DeadLetter: "dead", Visibility: 10 * time.Second, MaxReceives: 4,
			Unit: time.Second, Patience: 11 * time.Second, InProcess: true,
		}
	})
}

func open(t testing.TB, o Options) *Queues {
	t.Helper()
	q, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", q.Seed())
	return q
}

func send(t testing.TB, q *Queues, name string, messages ...queue.Message) {
	t.Helper()
	if errs := q.Send(t.Context(), name, messages...); errs != nil {
		t.Fatalf("send: got %v, want nil", errs)
	}
}

// receive returns what is there now. It must be called in a bubble.
func receive(t testing.TB, q *Queues, name string, limit int) []events.SQSMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	records, err := q.Receive(ctx, name, limit)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return records
}

func TestARecordLooksAsSQSMakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		sent := time.Now().UnixMilli()
		send(t, q, "main", queue.Message{Body: "hello", Group: "job-1"})
		time.Sleep(time.Minute)
		receive(t, q, "main", 1)
		time.Sleep(time.Minute)
		got := receive(t, q, "main", 1)[0]

		if len(got.MessageId) != 36 || !strings.HasPrefix(got.ReceiptHandle, got.MessageId) {
			t.Errorf("id %q, receipt %q: want an id of 36 characters, and it in the receipt", got.MessageId, got.ReceiptHandle)
		}
		got.MessageId, got.ReceiptHandle = "", ""
		want := events.SQSMessage{
			Body:        "hello",
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:local:000000000000:main", AWSRegion: "local",
			Attributes: map[string]string{
				"ApproximateReceiveCount": "2", "MessageGroupId": "job-1",
				"SentTimestamp": strconv.FormatInt(sent, 10),
			},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Unlike SQS this queue rounds no time: a message comes back at its very moment.
func TestTimesAreKeptToExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main", Visibility: 7 * time.Second}}})
		wait := func(what string, want time.Duration) string {
			t.Helper()
			begun := time.Now()
			records, err := q.Receive(t.Context(), "main", 1)
			if waited := time.Since(begun); err != nil || waited != want {
				t.Fatalf("%s: received after %v, %v, want %v", what, waited, err, want)
			}
			return records[0].ReceiptHandle
		}
		send(t, q, "main", queue.Message{Body: "a", Delay: 1500 * time.Microsecond})
		receipt := wait("delay", 1500*time.Microsecond)
		if err := q.Return(t.Context(), "main", 333*time.Millisecond, receipt); err != nil {
			t.Fatal(err)
		}
		wait("returned", 333*time.Millisecond)
		receipt = wait("visibility", 7*time.Second)
		if err := q.Return(t.Context(), "main", time.Hour, receipt); err != nil {
			t.Fatal(err)
		}
		wait("returned for later", time.Hour)
	})
}

// A receiver that waits for a late message must be woken for one that has become due earlier.
func TestAWaitingReceiverIsWokenForTheEarliest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		send(t, q, "main", queue.Message{Body: "late", Delay: 10 * time.Minute})
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			q.Send(t.Context(), "main", queue.Message{Body: "early", Delay: time.Minute})
		}()
		records, err := q.Receive(t.Context(), "main", 1)
		if waited := time.Since(begun); err != nil || records[0].Body != "early" || waited != 61*time.Second {
			t.Errorf("got %v, %v after %v, want early after 1m1s", records, err, waited)
		}
	})
}

// The timer that woke one receiver must be set again for the next.
func TestEachWaitingReceiverIsWokenInItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		begun := time.Now()
		got := make(chan time.Duration)
		for range 3 {
			go func() {
				_, _ = q.Receive(t.Context(), "main", 10)
				got <- time.Since(begun)
			}()
		}
		for i := range 3 {
			send(t, q, "main", queue.Message{Body: "a", Delay: time.Duration(i+1) * time.Second})
		}
		for i := range 3 {
			if waited, want := <-got, time.Duration(i+1)*time.Second; waited != want {
				t.Errorf("receiver %d: woken after %v, want %v", i, waited, want)
			}
		}
	})
}

func TestAReturnWakesAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		send(t, q, "main", queue.Message{Body: "a"})
		receipt := receive(t, q, "main", 1)[0].ReceiptHandle
		go func() {
			time.Sleep(time.Second)
			_ = q.Return(t.Context(), "main", 0, receipt)
		}()
		begun := time.Now()
		_, err := q.Receive(t.Context(), "main", 1)
		if waited := time.Since(begun); err != nil || waited != time.Second {
			t.Errorf("received after %v, %v, want it after 1s", waited, err)
		}
	})
}

// A receiver that was woken may find that its time is up; the message it was woken for must then
// wake another.
func TestAWakingIsNotLostWithItsReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		dying, die := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := q.Receive(dying, "main", 10)
			failed <- err
		}()
		synctest.Wait()
		got := make(chan int, 1)
		go func() {
			records, _ := q.Receive(t.Context(), "main", 10)
			got <- len(records)
		}()
		synctest.Wait()
		die()
		// The lock is held, so that the first receiver cannot leave before it is woken.
		q.mu.Lock()
		q.lines["main"].send(newMessage(queue.Message{Body: "a"}), time.Now())
		q.lines["main"].settle(time.Now())
		q.mu.Unlock()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Fatalf("the first receiver got %v, want %v", err, context.Canceled)
		}
		if n := <-got; n != 1 {
			t.Errorf("the second receiver got %d messages, want 1", n)
		}
	})
}

func TestNoTimerRunsWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		send(t, q, "main", queue.Message{Body: "a", Delay: time.Minute})
		receive(t, q, "main", 1)
		q.mu.Lock()
		defer q.mu.Unlock()
		if l := q.lines["main"]; l.timer != nil || len(l.waiters) != 0 || l.coming != 0 {
			t.Errorf("after the receiver left: timer %v, %d waiters, %d coming, want none", l.timer, len(l.waiters), l.coming)
		}
	})
}

// drain receives everything, one at a time, and returns the bodies in their order.
func drain(t testing.TB, q *Queues, name string) (bodies []string) {
	t.Helper()
	for {
		records := receive(t, q, name, 1)
		if len(records) == 0 {
			return bodies
		}
		bodies = append(bodies, records[0].Body)
	}
}

func orderOf(t *testing.T, seed uint64) (order []string) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Seed: seed, Queues: []Queue{{Name: "main"}}})
		for i := range 200 {
			send(t, q, "main", queue.Message{Body: strconv.Itoa(i)})
		}
		order = drain(t, q, "main")
	})
	return order
}

func TestTheSeedDecidesTheOrder(t *testing.T) {
	first, same, other := orderOf(t, 1), orderOf(t, 1), orderOf(t, 2)
	if !slices.Equal(first, same) {
		t.Errorf("seed 1 gave two orders:\n%v\n%v", first, same)
	}
	if slices.Equal(first, other) {
		t.Errorf("seeds 1 and 2 gave the same order: %v", first)
	}
	if slices.IsSortedFunc(first, func(a, b string) int { return number(a) - number(b) }) {
		t.Errorf("the messages came in the order in which they were sent")
	}
}

func number(body string) int {
	n, _ := strconv.Atoi(body)
	return n
}

// None is overtaken by more than those near it are, and the oldest has its turn at every window-th
// pick, however many come after it.
func TestNoMessageStarves(t *testing.T) {
	for place, body := range orderOf(t, 3) {
		if early := number(body) - place; early >= window {
			t.Errorf("message %s came in place %d, want it among the %d oldest", body, place, window)
		}
	}
	for seed := range uint64(20) {
		if picks := picksUntilOldest(t, seed+1); picks > window {
			t.Errorf("seed %d: the oldest message came at pick %d, want %d at the latest", seed+1, picks, window)
		}
	}
}

func picksUntilOldest(t *testing.T, seed uint64) (picks int) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Seed: seed, Queues: []Queue{{Name: "main"}}})
		send(t, q, "main", queue.Message{Body: "oldest"})
		for range 10 * window {
			send(t, q, "main", queue.Message{Body: "newer"})
		}
		picks = 1 + slices.Index(drain(t, q, "main"), "oldest")
	})
	return picks
}

func TestADeadLetterKeepsItsIdAndSaysWhereItCameFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{
			{Name: "main", MaxReceives: 2, DeadLetter: "dead"}, {Name: "dead", MaxReceives: 3, DeadLetter: "main"},
		}})
		send(t, q, "main", queue.Message{Body: "a"})
		var ids []string
		for i, want := range []struct{ queue, count, source string }{
			{"main", "1", ""},
			{"main", "2", ""},
			{"dead", "3", "arn:aws:sqs:local:000000000000:main"},
			{"dead", "4", "arn:aws:sqs:local:000000000000:main"},
			{"dead", "5", "arn:aws:sqs:local:000000000000:main"},
			{"main", "6", "arn:aws:sqs:local:000000000000:dead"},
		} {
			if i > 0 {
				// The other queue finds the message used up only when a receiver comes.
				receive(t, q, map[string]string{"main": "dead", "dead": "main"}[want.queue], 1)
			}
			records := receive(t, q, want.queue, 1)
			if len(records) != 1 {
				t.Fatalf("delivery %d: nothing on %s", i+1, want.queue)
			}
			attributes := records[0].Attributes
			if attributes["ApproximateReceiveCount"] != want.count || attributes["DeadLetterQueueSourceArn"] != want.source {
				t.Errorf("delivery %d: got attributes %v, want count %s and source %q", i+1, attributes, want.count, want.source)
			}
			ids = append(ids, records[0].MessageId)
			time.Sleep(DefaultVisibility)
		}
		if ids = slices.Compact(ids); len(ids) != 1 {
			t.Errorf("ids: got %v, want one", ids)
		}
		want := map[string]Counts{"main": {Sent: 1, Received: 3, DeadLettered: 1}, "dead": {Received: 3, DeadLettered: 1}}
		if got := q.Counts(); !maps.Equal(got, want) {
			t.Errorf("counts: got %+v, want %+v", got, want)
		}
		if left := len(q.lines["dead"].received); left != 0 {
			t.Errorf("the queue that it left still knows %d receipts, want none", left)
		}
	})
}

// A receiver may wait on the dead letter queue while another makes the dead letter.
func TestADeadLetterWakesAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main", MaxReceives: 1, DeadLetter: "dead"}, {Name: "dead"}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				_, _ = q.Receive(ctx, "main", 1)
			}
		}()
		begun := time.Now()
		send(t, q, "main", queue.Message{Body: "a"})
		records, err := q.Receive(ctx, "dead", 1)
		if waited := time.Since(begun); err != nil || len(records) != 1 || waited != DefaultVisibility {
			t.Errorf("got %d dead letters, %v after %v, want 1 after %v", len(records), err, waited, DefaultVisibility)
		}
		cancel()
	})
}

func TestWhatSQSRefusesIsRefused(t *testing.T) {
	q := open(t, Options{Queues: []Queue{{Name: "main"}}})
	errs := q.Send(t.Context(), "main",
		queue.Message{Body: "a", Delay: -time.Second},
		queue.Message{Body: "a", Delay: 15*time.Minute + 1},
		queue.Message{Body: "a", Group: strings.Repeat("g", 129)},
		queue.Message{Body: "a", Group: "two words"},
		queue.Message{Body: "a", Group: "é"},
		queue.Message{Body: "a", Group: strings.Repeat("~", 128), Delay: 15 * time.Minute},
	)
	for i, want := range []string{"delay -1s", "delay 15m0.000000001s", "129 bytes", `"two words"`, `"é"`, "<nil>"} {
		var refused *queue.RefusedError
		if got := fmt.Sprint(errs[i]); !strings.Contains(got, want) || errs[i] != nil && !errors.As(errs[i], &refused) {
			t.Errorf("message %d: got error %s, want it refused with %s", i, got, want)
		}
	}
}

func TestAWrongCallChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, Options{Queues: []Queue{{Name: "main"}}})
		ended, end := context.WithCancel(t.Context())
		end()
		if errs := q.Send(ended, "main", queue.Message{Body: "a"}); len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("send after the end: got %v, want %v", errs, context.Canceled)
		}
		if _, err := q.Receive(t.Context(), "main", 0); err == nil {
			t.Errorf("receive with limit 0: got no error")
		}
		send(t, q, "main", queue.Message{Body: "a"})
		receipt := receive(t, q, "main", 1)[0].ReceiptHandle
		for _, after := range []time.Duration{-1, MaxVisibility + 1} {
			if err := q.Return(t.Context(), "main", after, receipt); err == nil {
				t.Errorf("return after %v: got no error", after)
			}
		}
		if depth, _ := q.Depth(t.Context(), "main"); depth.Waiting != 0 {
			t.Errorf("depth: got %d, want 0", depth.Waiting)
		}
	})
}

func TestOptionsThatAreWrongAreAllNamed(t *testing.T) {
	_, err := New(Options{Queues: []Queue{
		{Name: ""},
		{Name: "twice"},
		{Name: "twice"},
		{Name: "hidden", Visibility: 13 * time.Hour},
		{Name: "negative", MaxReceives: -1},
		{Name: "half", MaxReceives: 1},
		{Name: "lost", MaxReceives: 1, DeadLetter: "nowhere"},
		{Name: "self", MaxReceives: 1, DeadLetter: "self"},
	}})
	for _, want := range []string{
		"no name", `"twice" is there twice`, `"hidden": visibility 13h`, `"negative": -1 receives`,
		`"half": MaxReceives and DeadLetter`, `letter queue "nowhere"`, `letter queue "self"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to say %s", err, want)
		}
	}
}
