package sqsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
)

func receipts(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("r%d", i)
	}
	return all
}

func TestAQueueIsLookedUpOnceUnderThePrefix(t *testing.T) {
	s := serve(t)
	q := s.queues(sqsqueue.Config{Prefix: "stack-"})
	for range 3 {
		q.Send(t.Context(), "q", bodies("a")...)
		if depth, err := q.Depth(t.Context(), "q"); depth != (queue.Depth{Waiting: 17, InFlight: 4}) || err != nil {
			t.Errorf("depth: got %+v, %v, want 17 and 4", depth, err)
		}
	}
	found := s.of("GetQueueUrl")
	if len(found) != 1 || found[0].QueueName != "stack-q" {
		t.Errorf("got look-ups %+v, want one of stack-q", found)
	}
	if got, want := s.of("SendMessageBatch")[0].QueueURL, s.URL+"/1/stack-q"; got != want {
		t.Errorf("sent to %s, want %s", got, want)
	}
}

func TestAQueueThatIsNotInTheMapIsNoQueueAndIsNotAskedFor(t *testing.T) {
	s := serve(t)
	q := s.queues(sqsqueue.Config{URLs: map[string]string{"q": s.URL + "/1/q"}})
	if errs := q.Send(t.Context(), "other", bodies("a")...); !errors.Is(errs[0], queue.ErrNoQueue) {
		t.Errorf("got %v, want %v", errs, queue.ErrNoQueue)
	}
	if len(s.requests) > 0 {
		t.Errorf("got requests %+v, want none", s.requests)
	}
}

// SQS has an old and a new name for it, and MiniStack and ElasticMQ use both.
func TestSQSsWordsForAMissingQueueAreErrNoQueue(t *testing.T) {
	for _, code := range []string{"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"} {
		s := serve(t)
		s.whole = func(w http.ResponseWriter, _ request, _ int) bool {
			says(w, http.StatusBadRequest, code)
			return true
		}
		for where, q := range map[string]*sqsqueue.Queues{
			"on look-up": s.queues(sqsqueue.Config{}),
			"later":      s.queues(sqsqueue.Config{URLs: map[string]string{"q": s.URL + "/1/q"}}),
		} {
			_, depth := q.Depth(t.Context(), "q")
			_, receive := q.Receive(t.Context(), "q", 1)
			for call, err := range map[string]error{
				"send": q.Send(t.Context(), "q", bodies("a")...)[0], "depth": depth, "receive": receive,
				"delete": q.Delete(t.Context(), "q", "r"), "return": q.Return(t.Context(), "q", 0, "r"),
			} {
				if !errors.Is(err, queue.ErrNoQueue) {
					t.Errorf("%s, %s, %s: got %v, want %v", code, where, call, err, queue.ErrNoQueue)
				}
			}
		}
	}
}

// Twenty-five receipts: one that is forgotten, one that fails for a while, one that fails for good.
func TestDeleteAndReturnGoInTensAndTellWhatFailed(t *testing.T) {
	for operation, call := range map[string]func(q *sqsqueue.Queues) error{
		"DeleteMessageBatch": func(q *sqsqueue.Queues) error { return q.Delete(t.Context(), "q", receipts(25)...) },
		"ChangeMessageVisibilityBatch": func(q *sqsqueue.Queues) error {
			return q.Return(t.Context(), "q", 1500*time.Millisecond, receipts(25)...)
		},
	} {
		s := serve(t)
		lasting := false
		s.entry = func(_ request, e entry, try int) *refusal {
			switch {
			case e.ReceiptHandle == "r3":
				return &refusal{"ReceiptHandleIsInvalid", true}
			case e.ReceiptHandle == "r11" && (lasting || try < 3):
				return &refusal{"InternalError", false}
			}
			return nil
		}
		if err := call(s.queues(sqsqueue.Config{})); err != nil {
			t.Errorf("%s: got %v, want success", operation, err)
		}
		if got := len(s.taken); got != 24 {
			t.Errorf("%s: SQS took %d receipts, want 24", operation, got)
		}
		var sizes []int
		for _, r := range s.of(operation) {
			sizes = append(sizes, len(r.Entries))
			if want := map[bool]int{true: 2}[operation == "ChangeMessageVisibilityBatch"]; r.Entries[0].VisibilityTimeout != want {
				t.Errorf("%s: got a visibility timeout of %d, want %d", operation, r.Entries[0].VisibilityTimeout, want)
			}
		}
		if want := []int{10, 10, 1, 1, 5}; !slices.Equal(sizes, want) {
			t.Errorf("%s: got batches of %v, want %v", operation, sizes, want)
		}
		lasting = true
		if err := call(s.queues(sqsqueue.Config{})); err == nil {
			t.Errorf("%s: got success, want the error of r11", operation)
		}
	}
}

func TestAReturnIsWithinTwelveHours(t *testing.T) {
	s := serve(t)
	q := s.queues(sqsqueue.Config{})
	for _, wrong := range []time.Duration{-time.Second, 12*time.Hour + time.Second} {
		if err := q.Return(t.Context(), "q", wrong, "r"); err == nil {
			t.Errorf("return after %v: got success, want an error", wrong)
		}
	}
}

// A request that outlasts its caller may be handed messages that nobody sees.
func TestAReceiveDoesNotOutlastItsDeadline(t *testing.T) {
	s := serve(t)
	// Less than the longest wait that SQS allows, and long enough for a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 18500*time.Millisecond)
	defer cancel()
	deadline, _ := ctx.Deadline()
	var left time.Duration
	s.whole = func(_ http.ResponseWriter, r request, _ int) bool {
		if r.Operation == "ReceiveMessage" {
			left = time.Until(deadline)
			cancel()
		}
		return false
	}
	if _, err := s.queues(sqsqueue.Config{}).Receive(ctx, "q", 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	r := s.of("ReceiveMessage")[0]
	// The request was made before it came, with up to 18.5 s left.
	least := int(left.Seconds())
	if wait := r.WaitTimeSeconds; wait == nil || int(*wait) < least || int(*wait) > 18 || r.MaxNumberOfMessages != 10 || r.VisibilityTimeout != nil {
		t.Errorf("got request %+v, want 10 messages, a wait of %d to 18 s, and no visibility timeout", r, least)
	}
}

func TestAFullQueueIsWaitedFor(t *testing.T) {
	s := serve(t)
	s.whole = func(w http.ResponseWriter, r request, try int) bool {
		switch {
		case r.Operation != "ReceiveMessage":
			return false
		case try == 1:
			says(w, http.StatusForbidden, "OverLimit")
		default:
			fmt.Fprint(w, `{"Messages":[{"MessageId":"m","ReceiptHandle":"r","Body":"a","MD5OfBody":"0cc175b9c0f1b6a831c399e269772661","Attributes":{"ApproximateReceiveCount":"2"}}]}`)
		}
		return true
	}
	records, err := s.queues(sqsqueue.Config{}).Receive(t.Context(), "q", 1)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %v, %v, want one message", records, err)
	}
	got := records[0]
	if got.MessageId != "m" || got.ReceiptHandle != "r" || got.Body != "a" || got.EventSource != "aws:sqs" ||
		got.EventSourceARN != "arn:aws:sqs:eu-central-1:1:q" || got.Attributes["ApproximateReceiveCount"] != "2" {
		t.Errorf("got %+v", got)
	}
}
