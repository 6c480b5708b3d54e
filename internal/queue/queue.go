// Package queue says what Makegood needs of a queue, which is what an SQS standard queue gives:
// messages are delivered at least once, in any order, in batches of at most ten, and come back when
// they are not deleted within the visibility timeout. It holds contracts; the adapters and the suite
// that holds them to it stand beside it.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// ErrNoQueue: there is no queue of this name.
var ErrNoQueue = errors.New("no such queue")

// Message is a message to send.
type Message struct {
	// Body is text of at most limits.MaxMessageBytes, of characters that SQS takes: #x9 #xA #xD,
	// #x20 to #xD7FF, #xE000 to #xFFFD, #x10000 to #x10FFFF.
	Body string
	// Group may keep one receiver's messages from crowding out the others: a tenant or a workflow with a task, a job with
	// an event; optional.
	Group string
	// Delay is how long the message stays hidden, 0 to 15 minutes, in whole seconds on SQS.
	Delay time.Duration
}

// AttributeShare is the message attribute with the message's share of the request that sent it, in parts of one
// (job.SpentParts). It is for counting the cost of jobs, and may be missing.
const AttributeShare = "Share"

// RefusedError says that a message was not sent and never can be: it is our fault, not the queue's.
type RefusedError struct{ Reason string }

// Error names the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Refused makes a RefusedError.
func Refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Sender sends. It is all that most code needs of a queue.
type Sender interface {
	// Send sends messages to a queue, any number, in as few batches as the limits of batch and message allow. It returns
	// one error a message, in their order, nil for those that were sent: a *RefusedError for one that can never be sent,
	// any other error where it is unknown whether it was. A nil slice means that all were sent.
	Send(ctx context.Context, queue string, messages ...Message) []error

	// Depth is about how many messages are in the queue, delayed ones left out.
	Depth(ctx context.Context, queue string) (Depth, error)
}

// Depth is how full a queue is. If messages wait for long and none is in flight, the queue has no receiver.
type Depth struct {
	// Waiting ones can be received, InFlight ones were received, and are hidden until they are deleted or
	// returned, or come back by themselves.
	Waiting, InFlight int
}

// Receiver is what feeds a handler: the SQS event source mapping on AWS, a poller when embedded.
type Receiver interface {
	// Receive waits until there are messages, or ctx ends, and takes at most limit. Each carries its ReceiptHandle, and
	// ApproximateReceiveCount among its Attributes.
	Receive(ctx context.Context, queue string, limit int) ([]events.SQSMessage, error)
	// Delete removes messages that were dealt with. A receipt that is no longer known is success.
	Delete(ctx context.Context, queue string, receipts ...string) error
	// Return makes messages visible again after a while (0: at once).
	Return(ctx context.Context, queue string, after time.Duration, receipts ...string) error
}

// Handler is what a Lambda function on an SQS queue is.
type Handler func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error)
