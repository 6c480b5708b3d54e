// Package agentrun runs agents: it claims the attempt that a task names, lets the agent work within
// CompleteBy, and replies. It is the handler of a tasks queue, on Lambda and embedded alike.
//
// # What is trusted
//
// The claim, one conditional write before the effect, makes an attempt run at most once; everything
// else is only about waste. The budget of an attempt counts on the monotonic clock from just before
// its claim, so a clock that is wrong costs nothing, and one that jumps ends the attempt early at
// the worst. Past CompleteBy nothing is said, not even an error: somebody else may have begun.
//
// # What is lost when something fails
//
// Nothing. A task whose claim may or may not have been written is not worked on; a reply that cannot
// be sent leaves a claim behind. Both look like silence, and the Supervisor ends silence at CompleteBy.
//
// The package decides nothing about jobs, and retries no work: that is the Scheduler's.
package agentrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// maxMargin is how long before CompleteBy an attempt is stopped at most; a tenth of its timeout
	// where that is less.
	maxMargin = time.Second
	// reserve is how long before the end of the invocation the work of all attempts is stopped, so
	// that there is time to reply. An agent that does not stop then is left alone at half of it.
	reserve = time.Second
	// replyWithin is how long a reply waits at most for the company of others of its batch.
	replyWithin = 50 * time.Millisecond
)

// Config is what a Runner needs. All of it must be given but Now, Nonce and Logger.
type Config struct {
	// Handlers are the agents that run here, told apart by their names.
	Handlers []agent.Handler
	Claims   store.Claims
	Queue    queue.Sender
	// Tasks is the queue that the tasks come from: what only a newer release understands is sent there again.
	Tasks string
	// Quarantine is the queue for messages that can never be understood.
	Quarantine string
	// Instance names this process in LockedBy; a nonce follows it.
	Instance string
	// Now gives the time that is written into claims. Default: time.Now.
	Now func() time.Time
	// Nonce tells a claim from every other of this instance. Default: rand.Text, 128 random bits.
	Nonce func(makegood.Task) string
	// Logger hears of decisions, and never of payloads. Default: slog.Default().
	Logger *slog.Logger
}

// Counters say how the tasks of a Runner ended, since it was made. Each task raises one of them,
// beside Claimed; one that failed by the fault of the store or of a queue raises none.
type Counters struct {
	Claimed   atomic.Int64 // the attempt was claimed here
	Taken     atomic.Int64 // another claim held the attempt
	Withdrawn atomic.Int64 // nobody wanted the attempt any more, or there was no such job
	Succeeded atomic.Int64 // a success was replied
	Failed    atomic.Int64 // a failure was replied
	Late      atomic.Int64 // nothing was said, because CompleteBy had passed or the attempt was replaced
	Poisoned  atomic.Int64 // the message went into quarantine
	Left      atomic.Int64 // the message was left to a newer release
}

// Runner runs agents. It may handle many batches at once.
type Runner struct {
	handlers   map[string]agent.Handler
	claims     store.Claims
	queue      queue.Sender
	tasks      string
	quarantine string
	instance   string
	now        func() time.Time
	nonce      func(makegood.Task) string
	log        *slog.Logger
	counters   Counters
}

// New makes a Runner. It panics on two agents of one name.
func New(config Config) *Runner {
	r := &Runner{
		handlers: make(map[string]agent.Handler), claims: config.Claims, queue: config.Queue,
		tasks: config.Tasks, quarantine: config.Quarantine, instance: config.Instance, now: config.Now, nonce: config.Nonce, log: config.Logger,
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.nonce == nil {
		r.nonce = func(makegood.Task) string { return rand.Text() }
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	for _, h := range config.Handlers {
		if _, taken := r.handlers[h.Name()]; taken {
			panic(fmt.Sprintf("agentrun: two agents are called %q", h.Name()))
		}
		r.handlers[h.Name()] = h
	}
	return r
}

// Counters are those of this Runner; they go on counting.
func (r *Runner) Counters() *Counters { return &r.counters }

var _ queue.Handler = (*Runner)(nil).HandleSQS

// HandleSQS does the tasks of a batch, all at once, and answers with the records that should be
// delivered again: those whose claim could not be settled, and those whose outcome could not be
// told. The error is always nil.
//
// When it returns, nothing of the batch runs any more, with one exception that cannot be stopped: an
// agent that ignores the end of its context. It is left alone at CompleteBy, just before the
// invocation ends, or StopPatience after ctx has; what it does after that cannot change the job, but may still reach the remote
// service, under the key of its step.
func (r *Runner) HandleSQS(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	replies := newReplies(r.queue, len(event.Records))
	var mu sync.Mutex
	var unread []sqsbatch.Unread
	failed := sqsbatch.Each(ctx, event, func(ctx context.Context, record events.SQSMessage) error {
		seat := replies.seat()
		defer seat.leave(ctx)
		err := r.record(ctx, record, seat)
		if errors.Is(err, wire.ErrNewer) {
			mu.Lock()
			defer mu.Unlock()
			unread = append(unread, sqsbatch.Unread{Record: record, Why: err})
			return nil
		}
		return err
	})
	return sqsbatch.Response(append(failed, r.leave(ctx, unread)...)), nil
}

// record does the task of one record. An error means that the record should be delivered again, or, where it is a
// wire.ErrNewer, left.
func (r *Runner) record(ctx context.Context, record events.SQSMessage, seat *seat) error {
	task, handler, err := r.read(record)
	if errors.Is(err, wire.ErrNewer) {
		return err
	}
	if err != nil {
		return r.poisoned(ctx, record, err)
	}
	a := &attempt{
		Runner: r, batch: ctx, task: task, handler: handler, seat: seat,
		lease: newLease(ctx, r.claims, r.now, task, r.lockedBy(task)),
	}
	defer a.lease.close()
	return a.run()
}

func (r *Runner) read(record events.SQSMessage) (makegood.Task, agent.Handler, error) {
	task, err := wire.DecodeTask(record.Body)
	if err != nil {
		return makegood.Task{}, nil, err
	}
	handler, here := r.handlers[task.Agent]
	if !here {
		names := strings.Join(slices.Sorted(maps.Keys(r.handlers)), ", ")
		return makegood.Task{}, nil, fmt.Errorf("a task for agent %q, but here run only: %s", task.Agent, names)
	}
	return task, handler, nil
}

// leave leaves records to a newer release, and gives the message ids of those that could not be left: the log says why.
// Until that release comes their tasks are sent again after StartBy, as if nobody ran. It comes last in a batch: a process
// that dies between the sending and the deleting leaves two of a message, and each round with work in between would
// double what goes round for 13 days.
func (r *Runner) leave(ctx context.Context, unread []sqsbatch.Unread) (failed []string) {
	left := sqsbatch.Leaving{
		Sender: r.queue, Queue: r.tasks, Quarantine: r.quarantine, Now: r.now, Logger: r.log,
	}.Leave(ctx, unread)
	r.counters.Left.Add(int64(left.Again))
	r.counters.Poisoned.Add(int64(left.Poisoned))
	return left.Failed
}

// poisoned puts a record into quarantine. Its job is not stranded: the attempt stays unclaimed, so
// its task is sent again after StartBy, with an alert for the agent if that goes on.
func (r *Runner) poisoned(ctx context.Context, record events.SQSMessage, reason error) error {
	if err := sqsbatch.Quarantine(ctx, r.queue, r.quarantine, record, reason.Error()); err != nil {
		r.log.ErrorContext(ctx, "a poison message could not be put into quarantine", "messageId", record.MessageId, "error", err)
		return err
	}
	r.counters.Poisoned.Add(1)
	// The reason may quote the message, so it is in quarantine beside it, and not in the log.
	r.log.WarnContext(ctx, "a poison message went into quarantine", "messageId", record.MessageId, "bytes", len(record.Body))
	return nil
}
