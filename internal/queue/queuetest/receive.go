package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

func whatIsSentIsReceived(t *testing.T, h Harness) {
	bodies := []string{
		`{"v":1}`,
		" spaces, a\ttab,\r\nlines ",
		"the first and last characters allowed: \t\n\r \uD7FF\uE000\uFFFD\U00010000\U0010FFFF",
		strings.Repeat("long ", 1000),
	}
	messages := make([]queue.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = queue.Message{Body: body, Group: "job-1"}
	}
	h.send(t, messages...)

	ids, receipts := map[string]bool{}, map[string]bool{}
	for body, record := range h.receiveAll(t, bodies...) {
		if record.MessageId == "" || record.ReceiptHandle == "" {
			t.Errorf("%.20q: got id %q, receipt %q, want both", body, record.MessageId, record.ReceiptHandle)
		}
		if got := record.Attributes["ApproximateReceiveCount"]; got != "1" {
			t.Errorf("%.20q: got receive count %q, want 1", body, got)
		}
		ids[record.MessageId], receipts[record.ReceiptHandle] = true, true
	}
	if len(ids) != len(bodies) || len(receipts) != len(bodies) {
		t.Errorf("got %d ids and %d receipts, want %d different ones of each", len(ids), len(receipts), len(bodies))
	}
}

func aReceiveKeepsItsLimit(t *testing.T, h Harness) {
	for _, limit := range []int{1, 3, 10, 1000} {
		h.sendBodies(t, numbered(12)...)
		most := min(limit, limits.MaxBatch)
		for left := 12; left > 0; {
			records := h.receive(t, h.Name, limit, h.Patience)
			if len(records) == 0 || len(records) > most {
				t.Fatalf("receive with limit %d: got %d messages, want 1 to %d", limit, len(records), most)
			}
			left -= len(records)
			for _, record := range records {
				h.delete(t, record.ReceiptHandle)
			}
		}
	}
}

func aReceiveWaits(t *testing.T, h Harness) {
	got := make(chan []string)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
		defer cancel()
		records, err := h.Queues.Receive(ctx, h.Name, 1)
		outcome := []string{fmt.Sprint(err)}
		for _, record := range records {
			outcome = append(outcome, record.Body)
		}
		got <- outcome
	}()
	select {
	case outcome := <-got:
		t.Errorf("receive from an empty queue: got %q at once, want it to wait", outcome)
		return
	case <-time.After(h.Unit):
	}
	h.sendBodies(t, "late")
	if outcome, want := fmt.Sprintf("%q", <-got), `["<nil>" "late"]`; outcome != want {
		t.Errorf("receive after the send: got %s, want %s", outcome, want)
	}
}

func aReceiveEndsWithItsContext(t *testing.T, h Harness) {
	for want, end := range map[error]func() (context.Context, context.CancelFunc){
		context.DeadlineExceeded: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), h.Unit)
		},
		context.Canceled: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel
		},
	} {
		ctx, cancel := end()
		records, err := h.Queues.Receive(ctx, h.Name, 1)
		cancel()
		if len(records) != 0 || !errors.Is(err, want) {
			t.Errorf("got %d messages, error %v, want none and %v", len(records), err, want)
		}
	}
}

func receiversShare(t *testing.T, h Harness) {
	const receivers = 4
	bodies := numbered(60)
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	defer cancel()

	var mu sync.Mutex
	seen := map[string]bool{}
	var running sync.WaitGroup
	for range receivers {
		running.Go(func() {
			for {
				records, err := h.Queues.Receive(ctx, h.Name, 3)
				if err != nil {
					return
				}
				receipts := []string{}
				mu.Lock()
				for _, record := range records {
					seen[record.Body] = true
					receipts = append(receipts, record.ReceiptHandle)
				}
				if len(seen) == len(bodies) {
					cancel()
				}
				mu.Unlock()
				if err := h.Queues.Delete(t.Context(), h.Name, receipts...); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	h.sendBodies(t, bodies...)
	running.Wait()
	if len(seen) != len(bodies) {
		t.Errorf("%d receivers got %d of %d messages within %v", receivers, len(seen), len(bodies), h.Patience)
	}
}

// Messages that must not be counted are hidden for long, because SQS tells the depth up to a minute late.
func depth(t *testing.T, h Harness) {
	long := h.long()
	h.wantDepth(t, 0, 0)
	bodies := numbered(7)
	h.sendBodies(t, bodies...)
	h.wantDepth(t, 7, 0)
	received := h.receiveAll(t, bodies...)
	for _, record := range received {
		h.giveBack(t, long, record.ReceiptHandle)
	}
	h.send(t, queue.Message{Body: "delayed", Delay: long})
	h.wantDepth(t, 0, 7)
	h.giveBack(t, 0, received["0"].ReceiptHandle, received["1"].ReceiptHandle)
	h.wantDepth(t, 2, 5)
	h.delete(t, received["2"].ReceiptHandle)
	h.wantDepth(t, 2, 4)
}

// wantDepth waits until the queue has this depth.
func (h Harness) wantDepth(t *testing.T, waiting, inFlight int) {
	t.Helper()
	want := queue.Depth{Waiting: waiting, InFlight: inFlight}
	got, err := h.Queues.Depth(t.Context(), h.Name)
	for until := time.Now().Add(h.Patience); got != want && err == nil && time.Now().Before(until); {
		time.Sleep(h.Patience / 50)
		got, err = h.Queues.Depth(t.Context(), h.Name)
	}
	if got != want || err != nil {
		t.Fatalf("depth: got %+v, %v, want %+v within %v", got, err, want, h.Patience)
	}
}

// numbered are n bodies.
func numbered(n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprint(i)
	}
	return bodies
}
