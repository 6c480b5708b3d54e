package scheduler

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Config is what a Scheduler needs. Jobs, Closings, Payloads, Definitions, Queue and Tasks must be set.
type Config struct {
	Jobs        store.Jobs
	Closings    store.Closings
	Payloads    store.Payloads
	Definitions store.Definitions
	// CurrentFor is for how long a submission may take a definition for the current one of its workflow that was so when it
	// was read. Zero: each submission reads it.
	CurrentFor time.Duration
	// Large, if set, has the large payloads that inputs and outputs refer to. Nil: they hold no references.
	Large payload.Keeper
	// LargeAge is from what age on a job's payloads are kept anew, as long as the job has events; zero: the store keeps
	// them as long as the job is there.
	LargeAge time.Duration
	Queue    queue.Sender
	// Notifier alerts an operator; Listener, if set, tells a job's listener. The two are distinguished.
	Notifier notify.Notifier
	Listener notify.Notifier
	// Changes, if set, is told of every change of every job. Nil: jobs keep no changes.
	Changes changes.Publisher
	// Asker tells the people asked to complete a step that waits; nil: a workflow that asks a person is refused.
	Asker notify.Asker
	// Link makes the link of a completion token, under which a person can answer; nil: there is none.
	Link func(completion string) string
	// Events is the queue that replies go to, Quarantine the one for poison, Tasks names an agent's. Undos names the one
	// for undos; nil: they go where all tasks go.
	Events       string
	Quarantine   string
	Tasks, Undos func(agent string) string
	// Asked are the registered names of the people that a workflow may ask; Asker knows them.
	Asked []string
	// Replies are the registered names that a submission may give as replyTo.
	Replies []string
	// Agents are those that have a queue; a workflow with another is refused. Empty: agents are not checked.
	Agents []string
	// Submissions is the queue of their own that submissions by message come from (HandleSubmissions); one on the events
	// queue is poison then: a sender of replies may not submit. Empty: they come with the events.
	Submissions string
	// Gate gives out the permits of agents with a limit; nil: no agent has one.
	Gate Gate
	// Held, if set, knows which agents and workflows are paused.
	Held Holds
	// Breaker, if set, pauses agents whose service asked for a pause, and those of Breakers ("*": all) that are down.
	Breaker  Breaker
	Breakers []string
	// Lane, if set, runs inline attempts in this process. Nil: all attempts go to the queues of their agents.
	Lane Lane
	// Memory remembers messages that this process writes for itself. Nil: it reads each.
	Memory *wire.Memory
	// Reminders: send delayed events for deadlines that are near, because the Supervisor comes too seldom.
	Reminders bool
	// Evaluations is how many steps' expressions may be evaluated at a time, since each may take what
	// limits.MaxEvaluationBytes says and more; default: DefaultEvaluations.
	Evaluations int
	// Instance names this process in LockedBy.
	Instance string
	// Incarnation is the run of the embedded engine; 0 on AWS, where no attempt ends with a process.
	Incarnation int
	// Stopped is the run before it, if that did not die but was told to stop; 0: it died, or there was none.
	Stopped int
	// Period is how often the Supervisor looks at overdue jobs.
	Period time.Duration
	// Saved, if set, sees every job after it was created or saved.
	Saved func(job.Job)
	// Parked, if set, hears of every job that was parked.
	Parked func(id string)
	// Counts: what AWS counts for a job is kept in it. Of a function, Clock counts its time.
	Counts bool
	Clock  *spend.Clock
	// Watch, if set, hears of every event that has changed a job, and gives tasks and log lines their trace.
	Watch Watch
	// Read reads a stored definition; default: workflowfile.Load.
	Read func(body []byte) (*workflowfile.Compiled, error)
	// Now defaults to time.Now, Random to a random number, Bytes to that many random bytes.
	Now    func() time.Time
	Random func() uint64
	Bytes  func(n int) []byte
	Logger *slog.Logger
}

// Gate is what a Scheduler asks for permits; see gate.Keeper.
type Gate interface {
	Take(ctx context.Context, agent string, l job.Limit, t job.Ticket) (bool, error)
	Left(ctx context.Context, agent string, l job.Limit, ended, waited []job.Ticket) error
}

// Holds is what a Scheduler asks which agents and workflows are paused; see holds.Reader.
type Holds interface {
	// Now returns the holds of a few seconds ago, Surely the holds of now.
	Now(ctx context.Context) (job.Holds, error)
	Surely(ctx context.Context) (job.Holds, error)
}

// Watch tells others of the events of jobs. It must not block, and cannot fail. One with a method Tells() bool that
// returns false is not told of events: they are not put together for it.
type Watch interface {
	// Happened is told of the events that a save has made so, in their order, once it held. Of a birth, Before is zero.
	Happened(ctx context.Context, all []job.Happened)
	// Traceparent is given to the agent of an attempt to continue the job's trace; empty: none is given.
	Traceparent(j job.Job, d job.Dispatch) string
	// Context is ctx with the trace of a job.
	Context(ctx context.Context, j job.Job) context.Context
}

type nobody struct{}

func (nobody) Happened(context.Context, []job.Happened) {}

func (nobody) Traceparent(job.Job, job.Dispatch) string { return "" }

func (nobody) Context(ctx context.Context, _ job.Job) context.Context { return ctx }

// complete fills in the fields that were left out. It panics on fields that cannot work: the wiring is mistaken.
func (c Config) complete() Config {
	if c.Jobs == nil || c.Closings == nil || c.Payloads == nil || c.Definitions == nil || c.Queue == nil || c.Tasks == nil {
		panic("scheduler: the configuration must have Jobs, Closings, Payloads, Definitions, Queue and Tasks")
	}
	// Loaded jobs are given to the core, which works on a copy, and saved jobs are not changed any more.
	c.Jobs = store.Shared(c.Jobs)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Read == nil {
		c.Read = workflowfile.Load
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if c.Bytes == nil {
		c.Bytes = randomBytes
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Notifier == nil {
		c.Notifier = notify.Log{Logger: c.Logger}
	}
	if c.Watch == nil {
		c.Watch = nobody{}
	}
	if c.Evaluations == 0 {
		c.Evaluations = DefaultEvaluations
	}
	return c
}
