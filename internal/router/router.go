// Package router reads the events queue. The events of jobs go to the Scheduler; a hint that a schedule or a pause is
// due goes to the timetable or to the pauses, which look whether it is. A hint only spares a wait: the Supervisor sends
// it again.
package router

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Config has the receivers of messages. Jobs must be set; a hint without a receiver is dropped.
type Config struct {
	// Jobs handles the events of jobs: Scheduler.HandleSQS.
	Jobs queue.Handler
	// Fire makes the jobs of a schedule that is due by the key of the hint: Timetable.Fire.
	Fire func(ctx context.Context, schedule string, key time.Time) error
	// Release lets the jobs of a pause go on: Keeper.Release.
	Release func(ctx context.Context) error
	Logger  *slog.Logger
}

// Router hands on the messages of the events queue.
type Router struct {
	config Config
	left   atomic.Int64
}

// New returns a Router.
func New(c Config) *Router {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Router{config: c}
}

// Left counts the hints that were left to a newer release.
func (r *Router) Left() int64 { return r.left.Load() }

// Handle handles a batch of the events queue, its hints first. The answer names the records that must be delivered
// again.
func (r *Router) Handle(ctx context.Context, received events.SQSEvent) (events.SQSEventResponse, error) {
	var due []hint
	rest := received // Its records stay as they are: the caller has them too.
	for i, record := range received.Records {
		in, is := wire.HintOf(record.Body)
		switch {
		case is && len(due) == 0:
			rest.Records = slices.Clone(received.Records[:i])
			fallthrough
		case is:
			due = append(due, hint{record.MessageId, in})
		case len(due) > 0:
			rest.Records = append(rest.Records, record)
		}
	}
	failed := []events.SQSBatchItemFailure{} // Lambda takes null for no answer.
	if len(due) > 0 {
		failed = append(failed, r.fire(ctx, due)...)
		r.release(ctx, due)
	}
	if len(rest.Records) == 0 {
		return events.SQSEventResponse{BatchItemFailures: failed}, nil
	}
	response, err := r.config.Jobs(ctx, rest)
	response.BatchItemFailures = append(response.BatchItemFailures, failed...)
	return response, err
}

// hint is a hint, and the id of the message that carried it.
type hint struct {
	message string
	wire.Incoming
}

// fire fires the schedules that are due, side by side, and returns the messages of those that must be fired again.
func (r *Router) fire(ctx context.Context, due []hint) (failed []events.SQSBatchItemFailure) {
	errs := make([]error, len(due))
	var all sync.WaitGroup
	for i, h := range due {
		if h.Schedule != nil && r.config.Fire != nil {
			all.Go(func() { errs[i] = r.config.Fire(ctx, h.Schedule.Schedule, h.Schedule.Key) })
		}
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, wire.ErrNewer), errors.Is(err, store.ErrNewer):
			// As with the deadline of a job: each sweep says it again.
			r.left.Add(1)
		default:
			r.config.Logger.WarnContext(ctx, "a schedule that is due goes back to the queue", "schedule", due[i].Schedule.Schedule, "error", err)
			failed = append(failed, events.SQSBatchItemFailure{ItemIdentifier: due[i].message})
		}
	}
	return failed
}

// release lets the jobs of pauses go on, once a batch, if a hint says that they are due.
func (r *Router) release(ctx context.Context, due []hint) {
	for _, h := range due {
		if h.HoldsDue == nil || r.config.Release == nil {
			continue
		}
		if err := r.config.Release(ctx); err != nil {
			r.config.Logger.WarnContext(ctx, "the jobs of a resumed pause go on at the Supervisor's next run", "error", err)
		}
		return
	}
}
