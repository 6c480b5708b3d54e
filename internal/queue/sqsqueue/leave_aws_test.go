//go:build aws

package sqsqueue_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// hurried are queues whose delays are as short as SQS can make them.
type hurried struct{ queue.Sender }

func (h hurried) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	for i := range messages {
		messages[i].Delay = min(messages[i].Delay, time.Second)
	}
	return h.Sender.Send(ctx, name, messages...)
}

// A message that is left comes again after its delay, as a new one: however often it is received, SQS does not count it
// towards the dead letters.
func TestALeftMessageComesAgainAndIsNeverADeadLetter(t *testing.T) {
	h := harness(t, sqs.NewFromConfig(standin.SQS(t).Config(t)))
	l := sqsbatch.Leaving{
		Sender: hurried{h.Queues}, Queue: h.Name, Quarantine: h.DeadLetter, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	const body = `{"v":2,"type":"StepWaits","job":"j"}`
	if errs := h.Queues.Send(t.Context(), h.Name, queue.Message{Body: body}); errs != nil {
		t.Fatal(errs)
	}
	first := ""
	for round := range 2 * h.MaxReceives {
		records, err := h.Queues.Receive(t.Context(), h.Name, 10)
		if err != nil || len(records) != 1 || sqsbatch.ReceiveCount(records[0]) != 1 {
			t.Fatalf("round %d: got %+v, %v, want the message, received once", round, records, err)
		}
		if round == 1 {
			first = records[0].Body
		}
		if round > 1 && records[0].Body != first {
			t.Errorf("round %d: got %s, want %s", round, records[0].Body, first)
		}
		left, begun := l.Leave(t.Context(), []sqsbatch.Unread{{Record: records[0], Why: errors.New("newer")}}), time.Now()
		if left.Again != 1 || len(left.Failed) > 0 || left.Poisoned > 0 {
			t.Fatalf("round %d: got %+v, want it sent again", round, left)
		}
		if err := h.Queues.Delete(t.Context(), h.Name, records[0].ReceiptHandle); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithDeadline(t.Context(), begun.Add(500*time.Millisecond))
		if early, err := h.Queues.Receive(short, h.Name, 1); err == nil {
			t.Errorf("round %d: got %v at once, want it delayed", round, early)
		}
		cancel()
	}
	if depth, err := h.Queues.Depth(t.Context(), h.DeadLetter); err != nil || depth != (queue.Depth{}) {
		t.Errorf("got %+v, %v among the dead letters and in quarantine, want none", depth, err)
	}
}
