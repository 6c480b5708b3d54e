// Package sqsqueue is queue.Sender and queue.Receiver on Amazon SQS, or on a service with its API.
//
// It makes no queues and knows no messages. It retries the messages of a batch that SQS refused; whole requests are
// retried by the SDK's client alone.
//
// # After an error
//
// An error of Send that is no *queue.RefusedError leaves it unknown whether the message was sent: the SDK repeats a
// request after a lost answer, so a message may be sent twice. A standard queue does so anyway.
package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/together"
)

// Config is what Queues needs. Client must be set.
type Config struct {
	Client *sqs.Client
	// URLs gives the address of each queue by its name; a name that is not in it is queue.ErrNoQueue.
	// Nil: the queue of a name is looked up in the account, under Prefix and the name.
	URLs   map[string]string
	Prefix string
}

// Queues are the queues of an account. Its methods may be called by many goroutines at once.
type Queues struct {
	client *sqs.Client
	urls   map[string]string
	prefix string

	mu sync.Mutex
	// found are the queues that were looked up, by name: a queue's address and ARN never change.
	found map[string]location
}

var (
	_ queue.Sender   = (*Queues)(nil)
	_ queue.Receiver = (*Queues)(nil)
)

// location is where a queue is.
type location struct {
	url string
	// arn is empty until the first Receive, the only one to need it.
	arn string
}

// New makes Queues. It makes no request yet.
func New(c Config) *Queues {
	return &Queues{client: c.Client, urls: c.URLs, prefix: c.Prefix, found: make(map[string]location)}
}

// Together returns a Sender that sends to these queues, and puts messages into one request that several goroutines send
// at the same time.
func (q *Queues) Together() queue.Sender { return together.New(q) }

// Depth is SQS's ApproximateNumberOfMessages and ApproximateNumberOfMessagesNotVisible, which may be late
// by a minute.
func (q *Queues) Depth(ctx context.Context, name string) (queue.Depth, error) {
	const waiting, inFlight = types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	texts, err := q.attributes(ctx, name, waiting, inFlight)
	if err != nil {
		return queue.Depth{}, fmt.Errorf("depth of queue %s: %w", name, err)
	}
	var depth queue.Depth
	for attribute, number := range map[types.QueueAttributeName]*int{waiting: &depth.Waiting, inFlight: &depth.InFlight} {
		text := texts[string(attribute)]
		if *number, err = strconv.Atoi(text); err != nil {
			return queue.Depth{}, fmt.Errorf("depth of queue %s: SQS says %s is %q, want a number", name, attribute, text)
		}
	}
	return depth, nil
}

func (q *Queues) attributes(ctx context.Context, name string, names ...types.QueueAttributeName) (map[string]string, error) {
	url, err := q.url(ctx, name)
	if err != nil {
		return nil, err
	}
	answer, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names}, retryKMS)
	if err != nil {
		return nil, known(err)
	}
	return answer.Attributes, nil
}

// url returns a queue's address, and asks SQS for it the first time.
func (q *Queues) url(ctx context.Context, name string) (string, error) {
	if q.urls != nil {
		url, ok := q.urls[name]
		if !ok {
			return "", queue.ErrNoQueue
		}
		return url, nil
	}
	if at := q.location(name); at.url != "" {
		return at.url, nil
	}
	// Two that ask at once both ask SQS: it is only the first time, and the answer is the same.
	answer, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(q.prefix + name)}, retryKMS)
	if err != nil {
		return "", fmt.Errorf("look up %s%s: %w", q.prefix, name, known(err))
	}
	q.learn(name, func(at *location) { at.url = aws.ToString(answer.QueueUrl) })
	return aws.ToString(answer.QueueUrl), nil
}

// arn returns a queue's ARN, and asks SQS for it the first time.
func (q *Queues) arn(ctx context.Context, name string) (string, error) {
	if at := q.location(name); at.arn != "" {
		return at.arn, nil
	}
	has, err := q.attributes(ctx, name, types.QueueAttributeNameQueueArn)
	if err != nil {
		return "", fmt.Errorf("ARN: %w", err)
	}
	arn := has[string(types.QueueAttributeNameQueueArn)]
	q.learn(name, func(at *location) { at.arn = arn })
	return arn, nil
}

func (q *Queues) location(name string) location {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.found[name]
}

func (q *Queues) learn(name string, change func(*location)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.found[name]
	change(&at)
	q.found[name] = at
}

// known makes queue.ErrNoQueue of SQS's word for it, old or new.
func known(err error) error {
	if _, is := errors.AsType[*types.QueueDoesNotExist](err); is {
		return fmt.Errorf("%w: %w", queue.ErrNoQueue, err)
	}
	if said, is := errors.AsType[smithy.APIError](err); is && bare(said.ErrorCode()) == "NonExistentQueue" {
		return fmt.Errorf("%w: %w", queue.ErrNoQueue, err)
	}
	return err
}
