package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/localqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
)

// keeping are queues in memory, except quarantine: its messages are stored durably before Send returns.
type keeping struct {
	*localqueue.Queues
	file store.Quarantine
}

// Send sends as queue.Sender says.
func (k keeping) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	if name != quarantineQueue {
		return k.Queues.Send(ctx, name, messages...)
	}
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = queue.Check(m); errs[i] == nil {
			errs[i] = k.file.Quarantine(ctx, m.Body, time.Now())
		}
	}
	return errs
}

// quarantine is the quarantine of the engine, kept as jobs are that are finished.
func (e *Engine) quarantine() putaway.Shelf {
	return putaway.Shelf{Kept: e.file, Job: e.look, Handle: e.handleNow, Remove: e.file.DropQuarantined}
}

// look reads a job as people see it.
func (e *Engine) look(ctx context.Context, id string) (makegood.Job, error) {
	j, err := e.store.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return makegood.Job{}, putaway.ErrNoJob
	}
	if err != nil {
		return makegood.Job{}, err
	}
	return view.Of(j, nil), nil
}

// handleNow deals with a message of the events queue at once, since that queue forgets when the process ends.
func (e *Engine) handleNow(ctx context.Context, m queue.Message) error {
	response, err := e.events.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "replayed", Body: m.Body, EventSourceARN: localqueue.ARN(eventsQueue),
	}}})
	if err == nil && len(response.BatchItemFailures) > 0 {
		err = errors.New("the engine could not deal with it now, and its log says why")
	}
	if err != nil {
		return fmt.Errorf("handle it: %w", err)
	}
	return nil
}
