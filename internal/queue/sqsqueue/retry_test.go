package sqsqueue_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
)

// kmsThrottled answers as SQS does when KMS has had enough: with the code of the new protocol, and with that
// of the old one beside it for those who asked for it, which the SDK then puts first.
func kmsThrottled(w http.ResponseWriter, old bool) {
	if old {
		w.Header().Set("X-Amzn-Query-Error", "KMS.ThrottlingException;Sender")
	}
	says(w, http.StatusBadRequest, "KmsThrottled")
}

// A throttle of the key's service passes as any other does: each request is made again by the SDK.
func TestAThrottleOfKMSIsTriedAgain(t *testing.T) {
	for _, old := range []bool{false, true} {
		for operation, ask := range map[string]func(q *sqsqueue.Queues) error{
			"SendMessageBatch": func(q *sqsqueue.Queues) error {
				if errs := q.Send(t.Context(), "q", bodies("a")...); errs != nil {
					return errs[0]
				}
				return nil
			},
			"DeleteMessageBatch": func(q *sqsqueue.Queues) error { return q.Delete(t.Context(), "q", "r") },
			"GetQueueAttributes": func(q *sqsqueue.Queues) error {
				_, err := q.Depth(t.Context(), "q")
				return err
			},
		} {
			t.Run(fmt.Sprintf("%s, old word: %t", operation, old), func(t *testing.T) {
				s := serve(t)
				s.whole = func(w http.ResponseWriter, r request, try int) bool {
					if r.Operation != operation || try > 2 {
						return false
					}
					kmsThrottled(w, old)
					return true
				}
				if err := ask(s.queues(sqsqueue.Config{})); err != nil {
					t.Errorf("got %v, want it done at the third try", err)
				}
				if got := len(s.of(operation)); got != 3 {
					t.Errorf("got %d requests, want 3", got)
				}
			})
		}
	}
}

// There is one layer of tries: a throttle that lasts is the SDK's number of requests, and an error that
// blames no message.
func TestAThrottleOfKMSThatLastsIsAnErrorOfUnknownOutcome(t *testing.T) {
	s := serve(t)
	s.whole = func(w http.ResponseWriter, r request, _ int) bool {
		if r.Operation != "SendMessageBatch" {
			return false
		}
		kmsThrottled(w, true)
		return true
	}
	if got := words(s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies("a")...)); got[0] != "unknown" {
		t.Errorf("got %v, want unknown", got)
	}
	if got := len(s.of("SendMessageBatch")); got != 3 {
		t.Errorf("got %d requests, want the 3 of the SDK", got)
	}
}

// The same of an entry of a batch: it is tried again, and the others are not.
func TestAnEntryThatKMSThrottledIsTriedAgain(t *testing.T) {
	for _, code := range []string{"KMS.ThrottlingException", "KmsThrottled"} {
		s := serve(t)
		s.entry = func(_ request, e entry, try int) *refusal {
			if e.MessageBody != "b" || try > 2 {
				return nil
			}
			return &refusal{code, true}
		}
		if errs := s.queues(sqsqueue.Config{}).Send(t.Context(), "q", bodies("a", "b")...); errs != nil {
			t.Errorf("%s: got %v, want both sent", code, errs)
		}
		if s.tries["a"] != 1 || s.tries["b"] != 3 {
			t.Errorf("%s: a was sent %d times, b %d times, want 1 and 3", code, s.tries["a"], s.tries["b"])
		}
	}
}
