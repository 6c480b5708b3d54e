// Package sqsbatch holds the small pieces that every handler of SQS batches shares: run the records
// of a batch beside one another, answer with those that failed, let failed ones come back after a
// backoff, and put poison into quarantine with its reason.
//
// It does not know jobs, and makes no decision about a record: its caller names the failed ones and the poison.
package sqsbatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/crew"
)

// receiveCountAttribute is the name that SQS gives to the count of a message's deliveries.
const receiveCountAttribute = "ApproximateReceiveCount"

// Response is the answer of a handler; the records with these message ids failed: they stay on the queue, all others
// are deleted. Its list is never nil, so that it is never written as null, and it names each id once.
//
// An empty id is kept: Lambda takes a list with one in it as the failure of the whole batch, which
// is the safe reading of a record that cannot be named.
func Response(failed []string) events.SQSEventResponse {
	if len(failed) == 0 {
		return events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	}
	failures := make([]events.SQSBatchItemFailure, 0, len(failed))
	seen := make(map[string]bool, len(failed))
	for _, id := range failed {
		if seen[id] {
			continue
		}
		seen[id] = true
		failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return events.SQSEventResponse{BatchItemFailures: failures}
}

// Each runs do on every record of the batch, all at once, and returns the message ids of those that failed, in the
// order of the batch: do returned an error, panicked, or ended its goroutine. It returns when every call has: no part
// of a batch runs on while Lambda freezes the process.
//
// Each reports no error, only ids: do logs what it wants known. A panic is logged here, with its
// stack, and fails its own record alone.
//
// The calling goroutine handles a single record, and do must not end it; each of several records has a goroutine of the
// crew. The batch size of the event source is the limit.
func Each(ctx context.Context, c *crew.Crew, records []events.SQSMessage, do func(context.Context, events.SQSMessage) error) []string {
	if len(records) == 1 { // It needs no lists.
		if guarded(ctx, records[0], do) == nil {
			return nil
		}
		return []string{records[0].MessageId}
	}
	succeeded := make([]bool, len(records))
	c.Each(len(records), len(records), func(i int) {
		// It is false until do has returned, so that runtime.Goexit is a failure too.
		succeeded[i] = guarded(ctx, records[i], do) == nil
	})
	var failed []string
	for i, record := range records {
		if !succeeded[i] {
			failed = append(failed, record.MessageId)
		}
	}
	return failed
}

func guarded(ctx context.Context, record events.SQSMessage, do func(context.Context, events.SQSMessage) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
			slog.ErrorContext(ctx, "a record panicked", "messageId", record.MessageId,
				"source", record.EventSourceARN, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		}
	}()
	return do(ctx, record)
}

// ReceiveCount is how often the record was delivered, this time included. A record that does not
// say so was delivered once.
func ReceiveCount(record events.SQSMessage) int {
	count, err := strconv.Atoi(record.Attributes[receiveCountAttribute])
	if err != nil || count < 1 {
		return 1
	}
	return count
}

// failedRecords are the records that stay on the queue after this answer, read on the safe side: an
// error fails the whole batch, and so does an id that is empty (Lambda says so) or of no record in it.
func failedRecords(event events.SQSEvent, response events.SQSEventResponse, err error) []events.SQSMessage {
	if err != nil {
		return event.Records
	}
	if len(response.BatchItemFailures) == 0 {
		return nil
	}
	ids := make(map[string]bool, len(event.Records))
	for _, record := range event.Records {
		ids[record.MessageId] = false
	}
	for _, failure := range response.BatchItemFailures {
		if _, known := ids[failure.ItemIdentifier]; !known || failure.ItemIdentifier == "" {
			return event.Records
		}
		ids[failure.ItemIdentifier] = true
	}
	var failed []events.SQSMessage
	for _, record := range event.Records {
		if ids[record.MessageId] {
			failed = append(failed, record)
		}
	}
	return failed
}
