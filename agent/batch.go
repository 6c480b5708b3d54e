package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentctx"
)

// Item is an item of a batch, for an action that DoBatch makes. Done or Fail answers for it; of several calls the last
// counts.
type Item[In, Out any] struct {
	// In is its input, and Key its idempotency key, the same over all attempts.
	In  In
	Key string

	outcome
}

// outcome is the output of an item, or why it failed.
type outcome struct {
	output json.RawMessage
	err    error
}

// errUnanswered: the action has said how other items ended.
var errUnanswered = errors.New("the action gave no answer")

// Done says that the item was done.
func (i *Item[In, Out]) Done(out Out) { i.output, i.err = encodeOutput(out) }

// Fail says why the item failed, with Final, NotApplied, RetryAfter and Kind as for the error of an action. Fail(nil)
// says that the item has no answer.
func (i *Item[In, Out]) Fail(err error) {
	if i.output, i.err = nil, err; err == nil {
		i.err = errUnanswered
	}
}

// doingBatch is the action that DoBatch makes.
type doingBatch[In, Out any] struct {
	name string
	do   func(context.Context, []*Item[In, Out]) error
}

// DoBatch makes an action that does items of a map together, as a bulk call of a remote service does: those of one task
// of a step with map.batch. A task for a single input is a batch of one. do answers for each item. An item without an
// answer has failed, with the error that do returns, and is tried again unless that is final.
//
// An action of Do serves the tasks of batches, too: it is called for each item, one after the other. So is an action of
// Undo, which undoes the items of any batch.
func DoBatch[In, Out any](name string, do func(ctx context.Context, items []*Item[In, Out]) error) Action {
	return doingBatch[In, Out]{name, do}
}

func (d doingBatch[In, Out]) declare(add func(string, route)) {
	r := route{together: true}
	if d.do != nil {
		r.handle = d.handle
	}
	add(d.name, r)
}

func (d doingBatch[In, Out]) handle(ctx context.Context, task makegood.Task, decode decoder) (json.RawMessage, error) {
	tasks, err := task.Items()
	if err != nil {
		return nil, refuse("%v", err)
	}
	all, readable := make([]*Item[In, Out], len(tasks)), make([]*Item[In, Out], 0, len(tasks))
	for i, t := range tasks {
		all[i] = &Item[In, Out]{Key: t.Key}
		if all[i].In, all[i].err = inputOf[In](ctx, t, decode); all[i].err == nil {
			all[i].err = errUnanswered
			readable = append(readable, all[i])
		}
	}
	if len(readable) > 0 {
		err = d.do(ctx, readable)
	}
	if ended := attemptOver(ctx, err); ended != nil {
		return nil, ended
	}
	outcomes := make([]outcome, len(all))
	for i, item := range all {
		if outcomes[i] = item.outcome; item.err == errUnanswered && err != nil {
			outcomes[i].err = err
		}
	}
	return answers(task, outcomes)
}

// each does the items of a batch one after the other.
func each(ctx context.Context, task makegood.Task, do func(context.Context, makegood.Task) (json.RawMessage, error)) (json.RawMessage, error) {
	tasks, err := task.Items()
	if err != nil {
		return nil, refuse("%v", err)
	}
	attempt, _ := agentctx.Of(ctx)
	outcomes := make([]outcome, len(tasks))
	for i := range tasks {
		of := &outcomes[i]
		if of.err = NotApplied(context.Cause(ctx)); of.err == nil {
			attempt.Task = &tasks[i]
			of.output, of.err = do(agentctx.With(ctx, attempt), tasks[i])
		}
		if ended := attemptOver(ctx, of.err); ended != nil {
			return nil, ended
		}
	}
	return answers(task, outcomes)
}

// attemptOver returns the error of a batch whose attempt is over, or whose process is to end. The batch has no answers
// then, and a further attempt does its items again under the same keys. It returns nil where the answers count.
func attemptOver(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, ErrOver), errors.Is(cause, ErrOver):
		return ErrOver
	case errors.Is(cause, ErrWithdrawn) || !errors.Is(ctx.Err(), context.Canceled):
		return nil
	default:
		return cause
	}
}

// answers writes the answers for the items of a task, or the outcome of its only input.
func answers(task makegood.Task, outcomes []outcome) (json.RawMessage, error) {
	if task.Batch == nil {
		return outcomes[0].output, outcomes[0].err
	}
	all := make([]makegood.Answer, len(outcomes))
	for i, of := range outcomes {
		all[i] = makegood.Answer{Item: task.Batch[i], Output: of.output}
		if _, waits := agentctx.Waits(of.err); waits {
			of.err = Final(errors.New("it would wait for another party, and items of a batch cannot: leave map.batch out"))
		}
		if of.err != nil {
			failure := Failure(of.err)
			all[i] = makegood.Answer{Item: task.Batch[i], Error: &makegood.AnswerError{StepError: failure, RetryAfterMs: failure.RetryAfter.Std().Milliseconds(), SlowDown: failure.SlowDown}}
		}
	}
	output, err := encodeOutput(all)
	if err == nil && len(output) > makegood.MaxPayloadBytes {
		return nil, Final(fmt.Errorf("the answers for %d items have %d bytes, the limit is %d: let map.batch be smaller, or the outputs large payloads", len(all), len(output), makegood.MaxPayloadBytes))
	}
	return output, err
}
