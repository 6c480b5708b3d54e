package localqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/crew"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
)

const (
	// pauseMin and pauseMax bound the wait after a Receive that gave an error; it doubles from one to
	// the other.
	pauseMin = 10 * time.Millisecond
	pauseMax = time.Second
	// finishWithin is how long the last words to the queue may take after the poller was told to end.
	finishWithin = 5 * time.Second
)

// Poller feeds a handler from a queue, as the SQS event source mapping feeds a Lambda function with
// ReportBatchItemFailures. It works with any Receiver.
type Poller struct {
	Receiver queue.Receiver
	Queue    string
	// Concurrency is how many invocations of Handler there are at once, at most; at least 1. A message is received only
	// if it can be handled at once.
	Concurrency int
	// Batch is how many records an invocation gets at most. Zero: limits.MaxBatch.
	Batch   int
	Handler queue.Handler
	// Logger hears of batches that failed as a whole and of a queue that fails. Default: slog.Default().
	Logger *slog.Logger
}

// Run polls until ctx ends, and returns when every invocation has. Each gets the present messages, 1 to Batch
// records: it does not wait for a batch to fill.
//
// Records that an invocation succeeded with are deleted, also after ctx has ended. Records named in BatchItemFailures
// stay, and come back after the visibility timeout or the time that the handler gave them by Return. An error, a
// panic, and an id that is not of the batch fail the whole batch. A record that could not be deleted is delivered
// again.
//
// Handler gets ctx, so it is told to stop when the poller is; give it another one if running work is to be finished
// first. Run returns nil when ctx has ended, and an error that is ErrNoQueue when there is no such queue. Any other
// error of Receive is logged, and tried again after a pause.
func (p Poller) Run(ctx context.Context) error {
	if p.Concurrency < 1 {
		return fmt.Errorf("poll %s: concurrency %d, want at least 1", p.Queue, p.Concurrency)
	}
	p.Logger = cmp.Or(p.Logger, slog.Default())
	var running sync.WaitGroup
	defer running.Wait()
	var invocations crew.Crew
	defer invocations.Hold()()
	slots := make(chan struct{}, p.Concurrency)
	wait := pauseMin
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		records, err := p.receive(ctx)
		if len(records) > 0 {
			wait = pauseMin
			running.Add(1)
			invocations.Go(func() {
				defer running.Done()
				defer func() { <-slots }()
				p.invoke(ctx, events.SQSEvent{Records: records})
			})
			continue
		}
		<-slots
		if errors.Is(err, queue.ErrNoQueue) {
			return fmt.Errorf("poll %s: %w", p.Queue, err)
		}
		if err != nil && ctx.Err() == nil {
			p.Logger.WarnContext(ctx, "receive again after a pause", "queue", p.Queue, "pause", wait, "error", err)
			_ = pause.For(ctx, wait) // the loop asks whether ctx has ended
			wait = min(2*wait, pauseMax)
		}
	}
	return nil
}

// receive takes a batch. One that came in the moment in which ctx ended goes back at once.
func (p Poller) receive(ctx context.Context) ([]events.SQSMessage, error) {
	records, err := p.Receiver.Receive(ctx, p.Queue, cmp.Or(p.Batch, limits.MaxBatch))
	if err != nil || ctx.Err() == nil || len(records) == 0 {
		return records, err
	}
	ctx, cancel := pause.Until(ctx, time.Now().Add(finishWithin))
	defer cancel()
	return nil, p.Receiver.Return(ctx, p.Queue, 0, receipts(records)...)
}

// invoke hands one batch to the handler, and deletes the records that it succeeded with.
func (p Poller) invoke(ctx context.Context, event events.SQSEvent) {
	response, err := p.call(ctx, event)
	if err != nil {
		p.Logger.ErrorContext(ctx, "a batch failed as a whole", "queue", p.Queue, "records", len(event.Records), "error", err)
		return
	}
	done := succeeded(event, response)
	if len(done) == 0 {
		return
	}
	ctx, cancel := pause.Until(ctx, time.Now().Add(finishWithin))
	defer cancel()
	if err := p.Receiver.Delete(ctx, p.Queue, receipts(done)...); err != nil {
		p.Logger.WarnContext(ctx, "records that were dealt with will come again", "queue", p.Queue, "records", len(done), "error", err)
	}
}

// call calls the handler, and makes an error of a panic.
func (p Poller) call(ctx context.Context, event events.SQSEvent) (response events.SQSEventResponse, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return p.Handler(ctx, event)
}

// succeeded are the records that may be deleted after this answer, read on the safe side: none where
// an id is of no record.
func succeeded(event events.SQSEvent, response events.SQSEventResponse) []events.SQSMessage {
	if len(response.BatchItemFailures) == 0 {
		return event.Records
	}
	failed := make(map[string]bool, len(event.Records))
	for _, record := range event.Records {
		failed[record.MessageId] = false
	}
	for _, failure := range response.BatchItemFailures {
		if _, known := failed[failure.ItemIdentifier]; !known {
			return nil
		}
		failed[failure.ItemIdentifier] = true
	}
	var done []events.SQSMessage
	for _, record := range event.Records {
		if !failed[record.MessageId] {
			done = append(done, record)
		}
	}
	return done
}

func receipts(records []events.SQSMessage) []string {
	receipts := make([]string, len(records))
	for i, record := range records {
		receipts[i] = record.ReceiptHandle
	}
	return receipts
}
