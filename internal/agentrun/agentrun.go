// Package agentrun runs agents: it claims the attempt that a task names, lets the agent work within CompleteBy, and
// replies. It is the handler of a tasks queue, on Lambda and embedded alike.
//
// # Safety
//
// The claim, one conditional write before the effect, makes an attempt run at most once; all else only avoids waste.
// The budget of an attempt counts on the monotonic clock from just before its claim, so a wrong clock does no harm, and
// one that jumps ends the attempt early at worst. Past CompleteBy the attempt is silent, even about an error: the next
// one may have begun.
//
// # Loss after a failure
//
// None. A task is dropped if its claim may or may not have been written; a reply that cannot be sent leaves a claim
// behind. Both look like silence, and the Supervisor ends silence at CompleteBy.
//
// The package decides nothing about jobs, and retries no work: that is the Scheduler's.
package agentrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/crew"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/tally"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// maxMargin is how long before CompleteBy an attempt is stopped at most; a tenth of its timeout
	// where that is less.
	maxMargin = time.Second
	// maxRest is how long after a heartbeat the next are not written at most.
	maxRest = 10 * time.Second
	// reserve is how long before the end of the invocation the work of all attempts is stopped, to leave time for replies.
	// An agent that does not stop then is abandoned at half of reserve.
	reserve = time.Second
	// replyWithin is how long a reply waits for the company of others of its batch, and of attempts that take long a
	// quarter of the time that the batch has taken so far, up to maxReplyWithin: those end further apart.
	replyWithin    = 50 * time.Millisecond
	maxReplyWithin = 250 * time.Millisecond
)

// Runner runs agents. It may handle many batches at once.
type Runner struct {
	config   Config
	handlers map[string]agent.Handler // by their names
	stats    tally.Recent[Stats]
	zombies  zombies
	crew     crew.Crew
}

// New makes a Runner. It panics on a configuration without a required field, or with two agents of one name.
func New(c Config) *Runner {
	c = c.complete()
	r := &Runner{config: c, handlers: make(map[string]agent.Handler)}
	for _, h := range c.Handlers {
		r.handlers[h.Name()] = h
	}
	return r
}

// Stats count how tasks ended. Each task raises one, beside Claimed; one that failed by the fault of the store or of a
// queue raises none.
type Stats struct {
	Claimed   int64 // the attempt was claimed here
	Taken     int64 // another claim held the attempt
	Withdrawn int64 // the attempt was not wanted any more, or there was no such job
	Succeeded int64 // a success was replied
	Failed    int64 // a failure was replied
	Waiting   int64 // it was replied that the step waits
	Late      int64 // no reply, because CompleteBy had passed or the attempt was replaced
	Poisoned  int64 // the message went into quarantine
	Left      int64 // the message was left to a newer release
	Held      int64 // the agent or the workflow is paused, and the Scheduler was told so
}

// Stats returns how tasks have ended since the Runner was made.
func (r *Runner) Stats() Stats { return r.stats.Snapshot() }

// Lately returns how tasks ended since a moment at most tally.MaxAgo ago, or a little before: since tells.
func (r *Runner) Lately(moment time.Time) (ended Stats, since time.Time) {
	before, since := r.stats.Since(moment)
	now := r.stats.Snapshot()
	return Stats{
		Claimed: now.Claimed - before.Claimed, Taken: now.Taken - before.Taken, Withdrawn: now.Withdrawn - before.Withdrawn,
		Succeeded: now.Succeeded - before.Succeeded, Failed: now.Failed - before.Failed, Waiting: now.Waiting - before.Waiting,
		Late: now.Late - before.Late, Poisoned: now.Poisoned - before.Poisoned, Left: now.Left - before.Left, Held: now.Held - before.Held,
	}, since
}

// tell raises counters of tasks.
func (r *Runner) tell(raise func(*Stats)) { r.stats.Add(time.Now(), raise) }

var _ queue.Handler = (*Runner)(nil).HandleSQS

// HandleSQS does the tasks of a batch, all at once, and answers with the records to deliver again: those with an
// unsettled claim, and those with an outcome that could not be sent. The error is always nil. Tasks that are to run
// alone come when all others are done, one after the other.
//
// When it returns, no task of the batch runs any more, with one exception: an agent that ignores the end of its context
// cannot be stopped. It is abandoned at CompleteBy, just before the invocation ends, or StopPatience after ctx has; it
// cannot change the job after that, but may still reach the remote service, under the key of its step.
func (r *Runner) HandleSQS(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	defer r.config.Clock.Invoked()()
	b := &batch{Runner: r, spent: r.spent(event)}
	company, alone := apart(event)
	b.beside = len(company) - 1 + r.config.Others
	failed := b.each(ctx, company, (*batch).mate)
	for i, one := range alone {
		if len(company) == 0 && i == 0 || mayBegin(ctx, one) {
			failed = append(failed, b.each(ctx, []events.SQSMessage{one.record}, (*batch).alone)...)
			continue
		}
		// What ends it would be the end of the invocation, after others took its time.
		failed = append(failed, one.record.MessageId)
	}
	return sqsbatch.Response(append(failed, r.leave(ctx, b.unread)...)), nil
}

// batch is one call of HandleSQS.
type batch struct {
	*Runner
	// spent is the usage of each record before this process, by its message id; nil: it is not counted.
	spent map[string]job.Spent
	// beside is how many others may run beside each of the batch mates.
	beside int
	// outbox is that of the records that are done now.
	outbox outbox
	mu     sync.Mutex
	unread []sqsbatch.Unread
}

// spent returns the usage of a batch's records before this process, by their message ids.
func (r *Runner) spent(event events.SQSEvent) map[string]job.Spent {
	if !r.config.Counts {
		return nil
	}
	all := make(map[string]job.Spent, len(event.Records))
	for i, spent := range sqsbatch.Spent(event.Records, r.config.Clock != nil) {
		all[event.Records[i].MessageId] = spent
	}
	return all
}

// account opens the account of a record; nil: usage is not counted.
func (b *batch) account(record events.SQSMessage) *spend.Account {
	if b.spent == nil {
		return nil
	}
	return spend.NewAccount(b.config.Clock.Begin(), b.spent[record.MessageId])
}

// mate does a record as a batch mate of others.
func (b *batch) mate(ctx context.Context, record events.SQSMessage, worker *worker) error {
	if err := b.slot(ctx); err != nil {
		return err
	}
	defer give(b.config.Slots)
	if err := b.config.Room.enter(ctx); err != nil {
		return err
	}
	defer b.config.Room.leave()
	return b.counted(ctx, record, worker, company{beside: b.beside})
}

// counted does the task of one record, on an account of its own.
func (b *batch) counted(ctx context.Context, record events.SQSMessage, worker *worker, with company) error {
	account := b.account(record)
	defer account.End()
	return b.record(spend.With(ctx, account), record, worker, with)
}

// slot waits until one more task may run, which the caller then gives back. An error is the cause of ctx's end.
func (b *batch) slot(ctx context.Context) error {
	for i, slots := range b.config.Slots {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			give(b.config.Slots[:i])
			return context.Cause(ctx)
		}
	}
	return nil
}

// take takes a place of each, or of none if one has none that is free.
func take(all []chan struct{}) (ok bool) {
	for i, slots := range all {
		select {
		case slots <- struct{}{}:
		default:
			give(all[:i])
			return false
		}
	}
	return true
}

// give gives back a place of each.
func give(all []chan struct{}) {
	for _, slots := range all {
		<-slots
	}
}

// alone does a record without batch mates.
func (b *batch) alone(ctx context.Context, record events.SQSMessage, worker *worker) error {
	if err := b.slot(ctx); err != nil {
		return err
	}
	defer give(b.config.Slots)
	empty, open, err := b.config.Room.enterAlone(ctx)
	if err != nil {
		return err
	}
	defer b.config.Room.leave()
	defer open()
	with := company{open: open, later: b.config.Others}
	if !empty {
		with.beside = b.config.Others
	}
	return b.counted(ctx, record, worker, with)
}

// each does records at once, and returns the message ids of those to deliver again. Records for a newer release are
// kept for the end.
func (b *batch) each(ctx context.Context, records []events.SQSMessage, do func(*batch, context.Context, events.SQSMessage, *worker) error) []string {
	b.outbox.open(b.config.Queue, len(records))
	return sqsbatch.Each(ctx, &b.crew, records, func(ctx context.Context, record events.SQSMessage) error {
		worker := b.outbox.worker()
		defer worker.end(ctx)
		err := do(b, ctx, record, worker)
		if errors.Is(err, wire.ErrNewer) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.unread = append(b.unread, sqsbatch.Unread{Record: record, Why: err})
			return nil
		}
		return err
	})
}

// record does the task of one record, with others beside it. An error means that the record should be delivered
// again, or, where it is a wire.ErrNewer, left.
func (r *Runner) record(ctx context.Context, record events.SQSMessage, worker *worker, with company) error {
	task, handler, err := r.read(record)
	if errors.Is(err, wire.ErrNewer) {
		return err
	}
	if err != nil {
		return r.poisoned(ctx, record, err)
	}
	a := &attempt{
		Runner: r, batch: ctx, record: record, task: task, handler: handler, to: worker, large: r.config.Large, with: with,
	}
	a.lease.begin(ctx, r.config.Claims, r.config.Now, &a.task, r.lockedBy(task))
	a.lease.claim.Beside = with.beside
	defer a.lease.close()
	return a.run()
}

func (r *Runner) read(record events.SQSMessage) (makegood.Task, agent.Handler, error) {
	task, err := r.config.Memory.DecodeTask(record.Body)
	if err != nil {
		return makegood.Task{}, nil, err
	}
	handler, err := r.handlerOf(task)
	return task, handler, err
}

func (r *Runner) handlerOf(task makegood.Task) (agent.Handler, error) {
	handler, here := r.handlers[task.Agent]
	if !here {
		names := strings.Join(slices.Sorted(maps.Keys(r.handlers)), ", ")
		return nil, fmt.Errorf("a task for agent %q, but here run only: %s", task.Agent, names)
	}
	return handler, nil
}

// leave defers records to a newer release, and returns the message ids of those that could not be deferred: the log
// says why. Until that release comes their tasks are sent again after StartBy, as if no agent ran. It comes last in a
// batch: a process that dies between the sending and the deleting leaves two copies of a message, and work in between
// would double the messages in circulation, for 13 days, at each round.
func (r *Runner) leave(ctx context.Context, unread []sqsbatch.Unread) (failed []string) {
	left := sqsbatch.Leaving{
		Sender: r.config.Queue, Queue: r.config.Tasks, Quarantine: r.config.Quarantine, Now: r.config.Now, Logger: r.config.Logger,
	}.Leave(ctx, unread)
	r.tell(func(t *Stats) {
		t.Left += int64(left.Again)
		t.Poisoned += int64(left.Poisoned)
	})
	return left.Failed
}

// poisoned puts a record into quarantine. Its job is not stranded: the attempt stays unclaimed, so
// its task is sent again after StartBy, with an alert for the agent if that goes on.
func (r *Runner) poisoned(ctx context.Context, record events.SQSMessage, reason error) error {
	if err := sqsbatch.Quarantine(ctx, r.config.Queue, r.config.Quarantine, record, reason.Error()); err != nil {
		r.config.Logger.ErrorContext(ctx, "a poison message could not be put into quarantine", "messageId", record.MessageId, "error", err)
		return err
	}
	r.tell(func(t *Stats) { t.Poisoned++ })
	// The reason may quote the message, so it is in quarantine beside it, and not in the log.
	r.config.Logger.WarnContext(ctx, "a poison message went into quarantine", "messageId", record.MessageId, "bytes", len(record.Body))
	return nil
}
