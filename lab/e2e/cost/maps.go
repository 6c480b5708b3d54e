package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

const (
	// emptyAfter is how long a queue is asked that says that it is empty.
	emptyAfter = 300 * time.Millisecond
	// maxTurns is how often both queues are emptied until a map is at its end, at most.
	maxTurns = 500
)

// settle hands on the messages of the queues, tasks first, until both are empty and the job has ended.
func (w *world) settle(ctx context.Context, id string) error {
	for range maxTurns {
		tasks, err := w.empty(ctx, deployed.TasksQueue(agentName), w.work)
		if err != nil {
			return err
		}
		replies, err := w.empty(ctx, deployed.EventsQueue, w.scheduler.HandleSQS)
		if err != nil {
			return err
		}
		w.counted = append(w.counted, asked(w.meter.Take())...)
		if tasks+replies > 0 {
			continue
		}
		j, err := w.store.Load(ctx, id)
		w.meter.Take()
		if err != nil {
			return err
		}
		if !j.ProcessState.Finished() {
			return fmt.Errorf("the queues are empty, and job %s is %s: %s", id, j.ProcessState, j.Reason)
		}
		return nil
	}
	return fmt.Errorf("job %s is not at its end after %d turns", id, maxTurns)
}

// empty drains a queue, and returns how many messages there were.
func (w *world) empty(ctx context.Context, name string, handle queue.Handler) (n int, err error) {
	for {
		some, err := w.drain(ctx, name, handle)
		if n += some; err != nil || some == 0 {
			return n, err
		}
	}
}

// drain hands a batch of a queue to a handler, and returns how many messages it had.
func (w *world) drain(ctx context.Context, name string, handle queue.Handler) (n int, err error) {
	// A request that is given up on a slow machine may have been handed messages, which are hidden then.
	depth, err := w.queues.Depth(ctx, name)
	if err != nil {
		return 0, err
	}
	within := emptyAfter
	if depth.Waiting > 0 {
		within = receiveLimit
	}
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	records, err := w.queues.Receive(short, name, w.load.batch())
	if err != nil {
		if short.Err() != nil && ctx.Err() == nil {
			return 0, nil
		}
		return 0, err
	}
	w.clock.pass(hop)
	w.meter.Invoked(name, len(records))
	response, err := handle(ctx, events.SQSEvent{Records: records})
	if err != nil || len(response.BatchItemFailures) > 0 {
		return 0, fmt.Errorf("handle %s: %d records failed: %w", name, len(response.BatchItemFailures), err)
	}
	receipts := make([]string, len(records))
	for i, r := range records {
		receipts[i] = r.ReceiptHandle
	}
	return len(records), w.queues.Delete(ctx, name, receipts...)
}

// asked leaves out the requests of no job: polls of an empty queue, and those for the name of a queue, once a process.
func asked(entries []costmeter.Entry) (left []costmeter.Entry) {
	for _, e := range entries {
		if e.Operation != "GetQueueAttributes" && (e.Operation != "ReceiveMessage" || e.Records > 0) {
			left = append(left, e)
		}
	}
	return left
}

// ids are those of the jobs that begin so, and of the jobs that do their items.
func (w *world) ids(ctx context.Context, prefix string) (ids []string, err error) {
	for cursor := ""; ; {
		page, next, err := w.store.AuditPage(ctx, cursor, 1000)
		if err != nil {
			return nil, err
		}
		for _, a := range page {
			if strings.HasPrefix(a.Job, prefix) {
				ids = append(ids, a.Job)
			}
		}
		if cursor = next; cursor == "" {
			return ids, nil
		}
	}
}
