// Package queuetest is the conformance suite of queue.Sender and queue.Receiver. It holds an adapter to the behaviour
// of every SQS standard queue, and no more: a rule asks for an order, a single delivery or an exact time as real queues
// do.
package queuetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
)

// minReceives is how often the rules receive one message that must not become a dead letter.
const minReceives = 4

// Harness is an adapter under test, with two empty queues of its own and the times that they keep.
type Harness struct {
	Queues Queues
	// Name is the queue that is tested. Its messages stay hidden for Visibility after each delivery,
	// and go to the queue DeadLetter after MaxReceives deliveries, at least 4.
	Name        string
	Visibility  time.Duration
	MaxReceives int
	// DeadLetter is a queue with a Visibility of its own, as long at least.
	DeadLetter string
	// Unit is the rounding of the adapter's times (a second on SQS); rules use multiples alone. Visibility is two or more.
	Unit time.Duration
	// Patience is how long a rule waits for an effect; Visibility and all that the adapter may be late, below 3 minutes.
	Patience time.Duration
	// InProcess: each rule runs in a testing/synctest bubble, with its harness made inside, so that
	// waiting takes no time. For adapters that use no network.
	InProcess bool
}

// Queues is what the suite tests.
type Queues interface {
	queue.Sender
	queue.Receiver
}

// Run holds an adapter to the rules, each in a subtest with a harness of its own. It calls open once more than there
// are rules, to ask whether the adapter is InProcess. What open makes it cleans up itself, by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	probe := open(t)
	if probe.MaxReceives < minReceives || probe.Unit <= 0 || probe.Visibility < 2*probe.Unit || probe.Patience <= probe.Visibility {
		t.Fatalf("the harness is not fit to test with: %+v", probe)
	}
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			check := func(t *testing.T) { rule.check(t, open(t)) }
			if probe.InProcess {
				synctest.Test(t, check)
				return
			}
			check(t)
		})
	}
}

type rule struct {
	name  string
	check func(t *testing.T, h Harness)
}

func rules() []rule {
	return []rule{
		{"what is sent is received", whatIsSentIsReceived},
		{"a receive takes no more than its limit and ten", aReceiveKeepsItsLimit},
		{"a receive waits until there is a message", aReceiveWaits},
		{"a receive ends with its context", aReceiveEndsWithItsContext},
		{"receivers share the messages", receiversShare},
		{"a message comes back after the visibility timeout and its count rises", aMessageComesBack},
		{"a deleted message does not come back", aDeletedMessageStaysAway},
		{"a receipt that is no longer known is deleted with success", deleteIsIdempotent},
		{"an expired receipt deletes no other message", anExpiredReceiptDeletesNoOther},
		{"a message that is returned is visible at once", returnAtOnce},
		{"a message that is returned for later is visible then", returnForLater},
		{"a delayed message is received after its delay", aDelayIsKept},
		{"a message that was received too often is a dead letter", deadLetter},
		{"a message that can never be sent is refused and its neighbours are sent", refusal},
		{"a message of the largest size is sent", theLargestMessage},
		{"a send of more than a batch can hold is split", aLargeSendIsSplit},
		{"nothing to send is sent", nothingIsSent},
		{"an unknown queue is ErrNoQueue", unknownQueue},
		{"depth is what waits", depth},
	}
}

// send sends messages that must be sent.
func (h Harness) send(t *testing.T, messages ...queue.Message) {
	t.Helper()
	for i, err := range h.Queues.Send(t.Context(), h.Name, messages...) {
		if err != nil {
			t.Fatalf("send message %d of %d: got %v, want it sent", i, len(messages), err)
		}
	}
}

func (h Harness) sendBodies(t *testing.T, bodies ...string) {
	t.Helper()
	messages := make([]queue.Message, len(bodies))
	for i, body := range bodies {
		messages[i].Body = body
	}
	h.send(t, messages...)
}

// receive receives once from a queue, and returns no message if none came in that time.
func (h Harness) receive(t *testing.T, name string, limit int, within time.Duration) []events.SQSMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	records, err := h.Queues.Receive(ctx, name, limit)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("receive from %s: got error %v, want none", name, err)
	}
	if err == nil && len(records) == 0 {
		t.Fatalf("receive from %s: got no message and no error, want it to wait for one", name)
	}
	return records
}

// receiveFrom receives until every one of these bodies was there, and returns the latest delivery of
// each. What else comes is a failure.
func (h Harness) receiveFrom(t *testing.T, name string, bodies ...string) map[string]events.SQSMessage {
	t.Helper()
	wanted := make(map[string]bool, len(bodies))
	for _, body := range bodies {
		wanted[body] = true
	}
	got := make(map[string]events.SQSMessage, len(bodies))
	until := time.Now().Add(h.Patience)
	for len(got) < len(wanted) {
		records := h.receive(t, name, limits.MaxBatch, time.Until(until))
		if len(records) == 0 {
			t.Fatalf("received %d of %d messages from %s within %v", len(got), len(wanted), name, h.Patience)
		}
		for _, record := range records {
			if !wanted[record.Body] {
				t.Fatalf("received %.100q from %s, which was not to be there", record.Body, name)
			}
			got[record.Body] = record
		}
	}
	return got
}

// long is how long a message is hidden that must not be seen in its rule.
func (h Harness) long() time.Duration { return (4 * h.Patience).Round(h.Unit) }

func (h Harness) receiveAll(t *testing.T, bodies ...string) map[string]events.SQSMessage {
	t.Helper()
	return h.receiveFrom(t, h.Name, bodies...)
}

// receiveNothing fails if anything is received within that time.
func (h Harness) receiveNothing(t *testing.T, name string, within time.Duration, why string) {
	t.Helper()
	for _, record := range h.receive(t, name, limits.MaxBatch, within) {
		t.Errorf("received %.100q from %s within %v, want nothing: %s", record.Body, name, within, why)
	}
}

func (h Harness) delete(t *testing.T, receipts ...string) {
	t.Helper()
	if err := h.Queues.Delete(t.Context(), h.Name, receipts...); err != nil {
		t.Fatalf("delete %d messages: got %v, want success", len(receipts), err)
	}
}

func (h Harness) giveBack(t *testing.T, after time.Duration, receipts ...string) {
	t.Helper()
	if err := h.Queues.Return(t.Context(), h.Name, after, receipts...); err != nil {
		t.Fatalf("return %d messages after %v: got %v, want success", len(receipts), after, err)
	}
}
