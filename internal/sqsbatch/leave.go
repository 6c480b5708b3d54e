package sqsbatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// groupAttribute is the name that SQS gives to the group of a message.
const groupAttribute = "MessageGroupId"

// Unread is a record that this release must not decide about, and why.
type Unread struct {
	Record events.SQSMessage
	Why    error
}

// Leaving leaves records to a later release: they are sent again, delayed, to the queue that they came from, and the
// received ones deleted. Returned to the queue they would be counted, and end among its dead letters.
type Leaving struct {
	Sender queue.Sender
	// Queue is where the records came from, Quarantine where they go when they were left for too long.
	Queue, Quarantine string
	Now               func() time.Time
	Logger            *slog.Logger
}

// Left is what became of records: Failed are the message ids of those that must come again, Again is how many were sent
// again, Poisoned how many went into quarantine.
type Left struct {
	Failed          []string
	Again, Poisoned int
}

// Leave leaves records. One that was left for longer than limits.MaxLeft, or cannot be sent again, goes into
// quarantine. Where it is unknown whether a record was sent, it fails, and may then be there twice.
func (l Leaving) Leave(ctx context.Context, unread []Unread) (left Left) {
	var again []Unread
	var messages []queue.Message
	now := l.Now()
	for _, u := range unread {
		body, since := wire.Leave(u.Record.Body, now)
		switch waited := now.Sub(since); {
		case waited > limits.MaxLeft:
			l.giveUp(ctx, &left, u, fmt.Sprintf("no release that understands it came in %d days: %v", limits.MaxLeft/(24*time.Hour), u.Why))
		case len(body) > limits.MaxMessageBytes:
			l.giveUp(ctx, &left, u, fmt.Sprintf("too large to be left: %v", u.Why))
		default:
			again = append(again, u)
			hidden := min(max(waited, limits.LeaveFor), limits.MaxLeaveFor).Truncate(time.Second)
			messages = append(messages, queue.Message{Body: body, Group: u.Record.Attributes[groupAttribute], Delay: hidden})
		}
	}
	if len(again) == 0 {
		return left
	}
	errs := l.Sender.Send(ctx, l.Queue, messages...)
	for i, u := range again {
		var err error
		if i < len(errs) {
			err = errs[i]
		}
		l.sent(ctx, &left, u, err)
	}
	return left
}

// sent notes what became of a record that was sent again.
func (l Leaving) sent(ctx context.Context, left *Left, u Unread, err error) {
	var refused *queue.RefusedError
	switch {
	case err == nil:
		left.Again++
		l.Logger.WarnContext(ctx, "messages are left to a newer release", "queue", l.Queue, "messageId", u.Record.MessageId, "bytes", len(u.Record.Body))
	case errors.As(err, &refused):
		l.giveUp(ctx, left, u, fmt.Sprintf("cannot be left, %s: %v", refused.Reason, u.Why))
	default:
		l.Logger.WarnContext(ctx, "a message that is to be left comes again", "queue", l.Queue, "messageId", u.Record.MessageId, "error", err)
		left.Failed = append(left.Failed, u.Record.MessageId)
	}
}

// giveUp puts a record into quarantine.
func (l Leaving) giveUp(ctx context.Context, left *Left, u Unread, reason string) {
	if err := Quarantine(ctx, l.Sender, l.Quarantine, u.Record, reason); err != nil {
		l.Logger.ErrorContext(ctx, "a message could not be put into quarantine", "queue", l.Quarantine, "messageId", u.Record.MessageId, "error", err)
		left.Failed = append(left.Failed, u.Record.MessageId)
		return
	}
	left.Poisoned++
	l.Logger.WarnContext(ctx, "a message that could not be understood goes into quarantine", "queue", l.Queue, "messageId", u.Record.MessageId)
}
