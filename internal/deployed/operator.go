package deployed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// operator carries out requests of submitters and operators on a stack's jobs: the Scheduler's code on the stack's
// table and queues. So a request is saved before it is answered, and due work is sent.
//
// It sends no notifications. They stay in the job, and the stack's Scheduler sends them within about a minute: only the
// Scheduler knows the addresses, and may use them.
type operator struct {
	*dynamostore.Store
	scheduler *scheduler.Scheduler
	timetable *timetable.Timetable
	holds     *holds.Keeper
	published *definitions
	// seen are the names in published that the stack knows: a known name stays known.
	seen   sync.Map
	agents []string
	queues queue.Sender
}

// currentFor is the maximum age of a function's knowledge of current definitions when a job is submitted.
const currentFor = time.Second

// newOperator makes an operator on a stack; it publishes the workflow files in published to a stack that lacks their
// names.
func newOperator(s *stack, c doorConfig, published *definitions) *operator {
	replies, agents := c.replies, c.agents
	o := &operator{Store: s.store, published: published, agents: agents, queues: s.queues, scheduler: scheduler.New(scheduler.Config{
		Changes: elsewhere(c.changes),
		Held:    holds.NewReader(s.store, nil),
		Gate:    s.gates(),
		Jobs:    s.store, Closings: s.store, Payloads: s.store, Definitions: s.store, CurrentFor: currentFor, Large: s.large(), LargeAge: s.payloads.renew, Queue: s.queues, Notifier: silent{}, Listener: silent{},
		Events: EventsQueue, Quarantine: QuarantineQueue, Tasks: TasksQueue,
		Replies: slices.Sorted(maps.Keys(replies)), Asked: slices.Sorted(maps.Keys(replies)), Asker: silent{},
		Agents: agents, Reminders: true, Period: SweepPeriod, Counts: true, Instance: s.instance(), Watch: s.watch(), Logger: slog.New(untelling{s.log.Handler()}),
	})}
	o.timetable = s.timetable(o.SubmitCurrent, func(ctx context.Context, workflow string) error {
		if err := o.known(ctx, workflow); err != nil {
			return err
		}
		return o.scheduler.CheckWorkflow(ctx, workflow)
	})
	o.holds = s.holds(agents, o.knows)
	return o
}

// parts are the parts of the stack that serve requests for its jobs.
func (o *operator) parts(log *slog.Logger) control.Config {
	return control.Config{
		Reading:   control.Reading{Store: o.Store, Workflows: o.Workflows},
		Scheduler: o.scheduler, Submit: o.SubmitCurrent, Publish: o.Publish, Timetable: o.timetable, Holds: o.holds, Agents: o, Logger: log,
	}
}

// known sees to it that a workflow that is linked here is known to the stack. store.ErrNotFound.
func (o *operator) known(ctx context.Context, workflow string) error {
	_, err := o.CurrentDefinition(ctx, workflow)
	if _, linked := o.published.byName[workflow]; linked && errors.Is(err, store.ErrNotFound) {
		err = o.published.publish(ctx, o.Store, o.timetable, workflow)
	}
	return err
}

// SubmitCurrent submits a job to the definition that is current for a workflow's name.
func (o *operator) SubmitCurrent(ctx context.Context, workflow string, s scheduler.Submission) (job.Job, bool, error) {
	_, linked := o.published.byName[workflow]
	if _, seen := o.seen.Load(workflow); linked && !seen {
		if err := o.known(ctx, workflow); err != nil {
			return job.Job{}, false, err
		}
		o.seen.Store(workflow, true)
	}
	return o.scheduler.SubmitCurrent(ctx, workflow, s)
}

// Publish makes a definition the current one of its workflow's name, and its schedules those of the stack; existing
// jobs keep theirs. When it returns, no function takes the previous definition for current. It refuses, with
// scheduler.ErrInvalid, one with an agent that has no queue.
func (o *operator) Publish(ctx context.Context, c *workflowfile.Compiled) error {
	if err := c.CheckQueues(o.agents); err != nil {
		return fmt.Errorf("%w: %w", scheduler.ErrInvalid, err)
	}
	if err := publish(ctx, o.Store, o.timetable, c); err != nil {
		return err
	}
	_ = pause.For(ctx, currentFor) // It is published, though the publisher leaves.
	return nil
}

// Workflows returns the current definitions of the workflows that are linked here.
func (o *operator) Workflows(ctx context.Context) (map[string]string, error) {
	known := map[string]string{}
	for name := range o.published.byName {
		hash, err := o.CurrentDefinition(ctx, name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			known[name] = hash
		}
	}
	return known, nil
}

// elsewhere leaves publishing changes to the stack's own Scheduler: only that may put events on the bus. nil: no bus.
func elsewhere(bus string) changes.Publisher {
	if bus == "" {
		return nil
	}
	return unpublished{}
}

// unpublished is a publisher that publishes no changes.
type unpublished struct{}

// Publish answers that another process does: with its next event, or when it is woken for that.
func (unpublished) Publish(_ context.Context, runs []changes.Run) []error {
	return slices.Repeat([]error{fmt.Errorf("changes: %w", notify.ErrElsewhere)}, len(runs))
}

// silent leaves notifications to the stack's own Scheduler.
type silent struct{}

func (silent) Announce(context.Context, notify.Notice) error { return notify.ErrElsewhere }

// Ask leaves it to the stack's own Scheduler, too.
func (silent) Ask(context.Context, string, notify.Question) error { return notify.ErrElsewhere }

func (silent) AgentAlert(context.Context, string, string) error {
	return fmt.Errorf("alert: %w", notify.ErrElsewhere)
}

// untelling drops log records about notifications left to the Scheduler, which are expected.
type untelling struct{ slog.Handler }

// Handle hands on a record that says more than that.
func (h untelling) Handle(ctx context.Context, r slog.Record) error {
	only := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		only = ok && errors.Is(err, notify.ErrElsewhere)
		return !only
	})
	if only {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the filter of this handler.
func (h untelling) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untelling{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the filter of this handler.
func (h untelling) WithGroup(name string) slog.Handler { return untelling{h.Handler.WithGroup(name)} }
