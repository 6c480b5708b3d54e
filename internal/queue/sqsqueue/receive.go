package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
)

const (
	// maxVisibility is the longest time that SQS hides a message.
	maxVisibility = 12 * time.Hour
	// longPoll is how long SQS lets one request wait for messages.
	longPoll = 20 * time.Second
	// shortPause is the pause between requests that do not wait.
	shortPause = 100 * time.Millisecond
)

// Receive receives as queue.Receiver says, at most limits.MaxBatch at once, by long polling. When
// ctx has a deadline no request outlasts it, for what SQS hands to a request that is gone stays hidden
// for the visibility timeout; a ctx that is cancelled has that effect.
func (q *Queues) Receive(ctx context.Context, name string, limit int) ([]events.SQSMessage, error) {
	if limit < 1 {
		return nil, fmt.Errorf("receive from queue %s: limit %d, want at least 1", name, limit)
	}
	messages, arn, err := q.poll(ctx, name, min(limit, limits.MaxBatch))
	if err != nil {
		// The SDK's word for the end of ctx is not that of ctx itself.
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("receive from queue %s: %w", name, err)
	}
	return render(messages, arn), nil
}

func (q *Queues) poll(ctx context.Context, name string, limit int) ([]types.Message, string, error) {
	url, err := q.url(ctx, name)
	if err != nil {
		return nil, "", err
	}
	arn, err := q.arn(ctx, name)
	if err != nil {
		return nil, "", err
	}
	for waited := false; ; waited = true {
		wait := waitFor(ctx)
		if waited && wait == 0 {
			// The remaining time is not worth requests that do not wait.
			<-ctx.Done()
			return nil, "", ctx.Err()
		}
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: int32(limit), WaitTimeSeconds: int32(wait / time.Second),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			MessageAttributeNames:       []string{queue.AttributeShare},
		}, retryKMS)
		var full *types.OverLimit
		switch {
		case errors.As(err, &full):
			// Too many in flight: no message can be received until some are dealt with.
		case err != nil:
			return nil, "", known(err)
		case len(out.Messages) > 0:
			return out.Messages, arn, nil
		}
		if wait == 0 || full != nil {
			_ = pause.For(ctx, shortPause) // whether ctx has ended is asked in any case
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
	}
}

// waitFor is how long the next request may wait: whole seconds, and none past the deadline of ctx.
func waitFor(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return longPoll
	}
	return max(0, min(longPoll, time.Until(deadline).Truncate(time.Second)))
}

// render writes messages as Lambda's event source mapping hands them to a function.
func render(messages []types.Message, arn string) []events.SQSMessage {
	records := make([]events.SQSMessage, len(messages))
	for i, m := range messages {
		records[i] = events.SQSMessage{
			MessageId: aws.ToString(m.MessageId), ReceiptHandle: aws.ToString(m.ReceiptHandle),
			Body: aws.ToString(m.Body), Md5OfBody: aws.ToString(m.MD5OfBody),
			Attributes: m.Attributes, EventSource: "aws:sqs", EventSourceARN: arn,
		}
		if share, ok := m.MessageAttributes[queue.AttributeShare]; ok {
			records[i].MessageAttributes = map[string]events.SQSMessageAttribute{
				queue.AttributeShare: {DataType: aws.ToString(share.DataType), StringValue: share.StringValue},
			}
		}
	}
	return records
}

// Delete deletes as queue.Receiver says. After an error some messages may be deleted.
func (q *Queues) Delete(ctx context.Context, name string, receipts ...string) error {
	return q.each(ctx, "delete from", name, receipts, func(url string, places []int) (answer, error) {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(places))
		for n, i := range places {
			entries[n] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &receipts[i]}
		}
		out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries}, retryKMS)
		if err != nil {
			return answer{}, known(err)
		}
		return answerOf(out.Failed, out.Successful, func(e types.DeleteMessageBatchResultEntry) *string { return e.Id }), nil
	})
}

// Return makes messages visible again as queue.Receiver says, after 0 to 12 hours, in whole seconds rounded up. A
// message that is not in flight any more is passed over. After an error some messages may have been returned; the
// others come back after their visibility timeout.
func (q *Queues) Return(ctx context.Context, name string, after time.Duration, receipts ...string) error {
	if after < 0 || after > maxVisibility {
		return fmt.Errorf("return to queue %s after %v: want 0 to %v", name, after, maxVisibility)
	}
	return q.each(ctx, "return to", name, receipts, func(url string, places []int) (answer, error) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(places))
		for n, i := range places {
			entries[n] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &receipts[i], VisibilityTimeout: seconds(after),
			}
		}
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: entries}, retryKMS)
		if err != nil {
			return answer{}, known(err)
		}
		return answerOf(out.Failed, out.Successful, func(e types.ChangeMessageVisibilityBatchResultEntry) *string { return e.Id }), nil
	})
}

// each makes a request for every ten receipts, and returns the errors of all. A receipt that SQS does
// not know any more is no error: its message is gone, or visible.
func (q *Queues) each(ctx context.Context, doing, name string, receipts []string, request func(url string, places []int) (answer, error)) error {
	if len(receipts) == 0 {
		return nil
	}
	url, err := q.url(ctx, name)
	if err != nil {
		return fmt.Errorf("%s queue %s: %w", doing, name, err)
	}
	all := make([]int, len(receipts))
	for i := range all {
		all[i] = i
	}
	errs := make([]error, len(receipts))
	for places := range slices.Chunk(all, limits.MaxBatch) {
		inRounds(ctx, places, errs, func(places []int) (answer, error) { return request(url, places) })
	}
	var problems []error
	for i, err := range errs {
		if err == nil || forgotten(err) || i > 0 && err == errs[i-1] {
			continue
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s queue %s: %w", doing, name, errors.Join(problems...))
}

// forgotten reports whether SQS says of a receipt that it stands for no message in flight.
func forgotten(err error) bool {
	var entry *entryError
	if !errors.As(err, &entry) {
		return false
	}
	return slices.Contains([]string{"ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"}, entry.code)
}
