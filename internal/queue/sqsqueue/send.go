package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
)

// Send sends as queue.Sender says, in batches of at most limits.MaxBatch messages and
// limits.MaxMessageBytes together, one after another. What SQS could not take of a batch for reasons
// of its own is sent again a few times, within ctx.
func (q *Queues) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	errs := make([]error, len(messages))
	var good []int
	for i, m := range messages {
		if errs[i] = queue.Check(m); errs[i] == nil {
			good = append(good, i)
		}
	}
	url, err := q.url(ctx, name)
	if err != nil {
		err = fmt.Errorf("send to queue %s: %w", name, err)
		for _, i := range good {
			errs[i] = err
		}
		return allOrNil(errs)
	}
	for _, places := range pack(messages, good) {
		inRounds(ctx, places, errs, func(places []int) (answer, error) {
			return q.sendBatch(ctx, url, messages, places)
		})
	}
	for _, i := range good {
		errs[i] = sendError(name, errs[i])
	}
	return allOrNil(errs)
}

// sendError makes a *queue.RefusedError of what SQS says is the message's own fault.
func sendError(name string, err error) error {
	var entry *entryError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &entry) && entry.ours:
		return queue.Refused("queue %s: %s: %s", name, entry.code, entry.message)
	default:
		return fmt.Errorf("send to queue %s: %w", name, err)
	}
}

// pack puts the messages at these places into batches, in their order.
func pack(messages []queue.Message, places []int) [][]int {
	var batches [][]int
	var batch []int
	size := 0
	for _, i := range places {
		more := len(messages[i].Body)
		if len(batch) == limits.MaxBatch || size+more > limits.MaxMessageBytes && len(batch) > 0 {
			batches, batch, size = append(batches, batch), nil, 0
		}
		batch, size = append(batch, i), size+more
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

func (q *Queues) sendBatch(ctx context.Context, url string, messages []queue.Message, places []int) (answer, error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(places))
	for n, i := range places {
		entries[n] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: &messages[i].Body,
			DelaySeconds: seconds(messages[i].Delay),
		}
		if messages[i].Group != "" {
			entries[n].MessageGroupId = &messages[i].Group
		}
	}
	addShares(entries)
	out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}, retryKMS)
	if err != nil {
		return answer{}, known(err)
	}
	return answerOf(out.Failed, out.Successful, func(e types.SendMessageBatchResultEntry) *string { return e.Id }), nil
}

// maxShareBytes is how many bytes the attribute of a message's share has at most.
const maxShareBytes = 32

// addShares adds to each message of a batch its share of the request, if there is room for that.
func addShares(entries []types.SendMessageBatchRequestEntry) {
	bytes := maxShareBytes * len(entries)
	for _, e := range entries {
		bytes += len(aws.ToString(e.MessageBody))
	}
	if bytes > limits.MaxMessageBytes {
		return
	}
	share := strconv.FormatInt(spend.Share(bytes, len(entries)), 10)
	for i := range entries {
		entries[i].MessageAttributes = map[string]types.MessageAttributeValue{
			queue.AttributeShare: {DataType: aws.String("Number"), StringValue: &share},
		}
	}
}

// seconds rounds up: a delayed message may come late, never early.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

func allOrNil(errs []error) []error {
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}
