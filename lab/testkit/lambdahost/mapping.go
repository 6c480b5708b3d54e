//go:build linux

package lambdahost

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/makegood-dev/makegood/internal/pause"
)

const (
	// requestLimit is how many messages one request to SQS may have.
	requestLimit = 10
	// longPoll is for how long a request waits for a message, in seconds. On AWS it is 20; here a mapping that
	// is stopped waits for the requests under way.
	longPoll = 1
	// afterError is the pause after a request that failed.
	afterError = 200 * time.Millisecond
)

// Mapping is an event source mapping: it polls a queue and invokes a function with what is there. It deletes
// the messages that the function did well, and leaves all others to the queue: they come back when they are
// visible again, and the queue's redrive policy says how often.
//
// ReportBatchItemFailures is always on. A throttled invocation leaves its batch to visibility at once; AWS tries
// it again until then, to the same end.
type Mapping struct {
	Client   *sqs.Client
	QueueURL string
	Function *Function
	// BatchSize is how many messages an invocation has at most. Default: 10.
	BatchSize int
	// Window is for how long a batch that is not full waits for more, from its first message on.
	Window time.Duration
	// MaximumConcurrency is how many invocations run at the same time at most; nothing is read beyond them.
	// Default: 2, the least that AWS takes.
	MaximumConcurrency int

	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start starts to poll. A mapping that was stopped can be started again; one that runs must not be.
func (m *Mapping) Start() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	for range max(m.MaximumConcurrency, 2) {
		m.running.Go(func() {
			for ctx.Err() == nil {
				m.once(ctx)
			}
		})
	}
}

// Stop stops to poll, and waits until the requests and the invocations under way have ended.
func (m *Mapping) Stop() {
	m.stop()
	m.running.Wait()
}

// once receives a batch and invokes the function with it.
func (m *Mapping) once(ctx context.Context) {
	batch := m.gather(ctx)
	if len(batch) == 0 {
		return
	}
	event, trace, err := encode(batch, m.arn())
	if err != nil {
		panic(err) // Strings are always JSON.
	}
	// A batch that was received is worked on also when polling stops.
	ctx = context.WithoutCancel(ctx)
	answer, err := m.Function.Invoke(ctx, event, trace)
	if err != nil || answer.Failed {
		return
	}
	failed, whole := failures(answer.Body, batch)
	if whole {
		return
	}
	done := slices.DeleteFunc(batch, func(r types.Message) bool { return failed[*r.MessageId] })
	for some := range slices.Chunk(done, requestLimit) {
		m.remove(ctx, some)
	}
}

// gather receives messages until the batch is full, or the window is over, or there is none.
func (m *Mapping) gather(ctx context.Context) (batch []types.Message) {
	size := m.BatchSize
	if size == 0 {
		size = requestLimit
	}
	var until time.Time
	for len(batch) < size && ctx.Err() == nil {
		wait := longPoll * time.Second
		if len(batch) > 0 {
			// SQS waits for whole seconds; the window is closed by not asking again.
			if wait = time.Until(until); wait <= 0 {
				break
			}
		}
		got, err := m.receive(ctx, min(size-len(batch), requestLimit), wait)
		if err != nil {
			_ = pause.For(ctx, afterError) // the loop asks whether ctx has ended
			break
		}
		if len(batch) == 0 {
			if len(got) == 0 {
				break
			}
			until = time.Now().Add(m.Window)
		}
		batch = append(batch, got...)
	}
	return batch
}

// receive ends its request also when polling stops: a queue goes on serving one that was broken off, and would
// hide from all others a message that nobody gets.
func (m *Mapping) receive(ctx context.Context, limit int, wait time.Duration) ([]types.Message, error) {
	out, err := m.Client.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
		QueueUrl: &m.QueueURL, MaxNumberOfMessages: int32(limit), WaitTimeSeconds: int32(min(wait, longPoll*time.Second) / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", m.QueueURL, err)
	}
	return out.Messages, nil
}

// remove deletes messages. What could not be deleted comes again: at least once is what SQS promises.
func (m *Mapping) remove(ctx context.Context, done []types.Message) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &m.QueueURL}
	for i, r := range done {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: r.ReceiptHandle})
	}
	_, _ = m.Client.DeleteMessageBatch(ctx, in)
}

// arn is the queue's as AWS would name it: a function that is fed from several distinguishes them by it.
func (m *Mapping) arn() string {
	return "arn:aws:sqs:eu-central-1:000000000000:" + path.Base(m.QueueURL)
}

// encode makes of messages of a queue the event that Lambda makes, with the first X-Ray header: AWS leaves it open.
func encode(batch []types.Message, queue string) (event []byte, trace string, err error) {
	var e events.SQSEvent
	for _, r := range batch {
		record := events.SQSMessage{
			MessageId: aws.ToString(r.MessageId), ReceiptHandle: aws.ToString(r.ReceiptHandle), Body: aws.ToString(r.Body),
			Md5OfBody: aws.ToString(r.MD5OfBody), Attributes: r.Attributes, EventSource: "aws:sqs", EventSourceARN: queue, AWSRegion: "eu-central-1",
		}
		e.Records = append(e.Records, record)
	}
	event, err = json.Marshal(e)
	return event, batch[0].Attributes[string(types.MessageSystemAttributeNameAWSTraceHeader)], err
}

// failures reads an answer as Lambda does. None, null, and a list that is null or empty mean that all is well;
// an answer that cannot be read, and an id that is empty or not of the batch, mean that nothing is.
func failures(body []byte, batch []types.Message) (failed map[string]bool, whole bool) {
	var answer *struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(body) == 0 {
		return nil, false
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, true
	}
	if answer == nil {
		return nil, false
	}
	failed = map[string]bool{}
	for _, f := range answer.BatchItemFailures {
		if !slices.ContainsFunc(batch, func(r types.Message) bool { return *r.MessageId == f.ItemIdentifier }) {
			return nil, true
		}
		failed[f.ItemIdentifier] = true
	}
	return failed, false
}
