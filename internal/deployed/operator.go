package deployed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Operator does to a stack's jobs what submitters and operators ask, in their own process and with their
// own credentials: the Scheduler's code on the stack's table and queues. So a request is saved before it
// is answered, and what it makes due is sent.
//
// It tells nobody. What is to be told stays in the job, and the stack's Scheduler tells it within about a
// minute: only that one knows the addresses, and may use them.
type Operator struct {
	*dynamostore.Store
	scheduler *scheduler.Scheduler
	published *definitions
	agents    []string
}

// NewOperator makes an Operator from the variables that functions read. published are workflow files that
// it makes known to a stack in which nobody has done so yet. instance names it in LockedBy. log hears of
// what was saved and could not be sent, as warnings. The error names everything that is wrong with the
// variables.
func NewOperator(c aws.Config, getenv func(string) string, published [][]byte, instance string, log *slog.Logger) (*Operator, error) {
	e := &environment{getenv: getenv}
	p, replies := e.place(), e.pairs(VarReplies)
	e.needs(p, EventsQueue)
	if err := e.err(); err != nil {
		return nil, err
	}
	table, queues, err := p.open(c)
	if err != nil {
		return nil, err
	}
	known, err := newDefinitions(published)
	if err != nil {
		return nil, err
	}
	return &Operator{Store: table, published: known, agents: p.agents, scheduler: scheduler.New(scheduler.Config{
		Jobs: table, Payloads: table, Definitions: table, Queue: queues, Notifier: silent{},
		Events: EventsQueue, Quarantine: QuarantineQueue, Tasks: TasksQueue, Replies: slices.Sorted(maps.Keys(replies)),
		Agents: p.agents, Reminders: true, Instance: instance, Logger: log,
	})}, nil
}

// SubmitCurrent submits a job; see httpapi.Backend.
func (o *Operator) SubmitCurrent(ctx context.Context, workflow string, s scheduler.Submission) (makegood.Job, bool, error) {
	_, err := o.CurrentDefinition(ctx, workflow)
	if errors.Is(err, store.ErrNotFound) {
		err = o.published.publish(ctx, o.Store, workflow)
	}
	if err != nil {
		return makegood.Job{}, false, err
	}
	return o.scheduler.SubmitCurrent(ctx, workflow, s)
}

// Publish makes a definition the current one of its workflow's name; jobs that are there keep theirs. It refuses,
// with scheduler.ErrInvalid, one with an agent that has no queue.
func (o *Operator) Publish(ctx context.Context, c *workflowfile.Compiled) error {
	if err := scheduler.CheckAgents(c, o.agents); err != nil {
		return err
	}
	return o.PutDefinition(ctx, c.Workflow.Name, c.Hash, c.Definition)
}

// Request does what is asked of a job; see httpapi.Backend.
func (o *Operator) Request(ctx context.Context, id string, r makegood.Requested) (makegood.Job, machine.Verdict, error) {
	return o.scheduler.Request(ctx, id, r)
}

// Job reads a job; see httpapi.Backend.
func (o *Operator) Job(ctx context.Context, id string) (makegood.Job, error) { return o.Load(ctx, id) }

// Workflows gives the current definitions of the workflows that are linked here; see httpapi.Backend.
func (o *Operator) Workflows(ctx context.Context) (map[string]string, error) {
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

// silent leaves what is to be told to the stack's own Scheduler.
type silent struct{}

// errSilent is no failure: it is what the Scheduler is answered that would tell somebody.
var errSilent = errors.New("the stack's Scheduler tells it")

// Untold reports whether an error in the log of an Operator means only that the stack tells, and not it.
func Untold(err error) bool { return errors.Is(err, errSilent) }

func (silent) Announce(context.Context, notify.Notice) error { return errSilent }

func (silent) AgentSilent(context.Context, string) error { return fmt.Errorf("alert: %w", errSilent) }
