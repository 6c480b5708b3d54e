// Package scheduler moves jobs on, and is the only package that does: it loads a job, lets the core
// decide, saves, and then sends what the core says must be done. It holds no rule about jobs.
//
// # Write first, then send
//
// A job is saved before anything is sent. A crash between the two loses nothing: the event that made
// a command due is still on the queue, and delivered again derives the same command. Where the event
// itself is lost, StartBy or CompleteBy passes and the Supervisor's event derives it.
//
// # After an error
//
// A record whose job could not be loaded, saved or told of is given back to the queue. Poison is put
// into quarantine with its reason. A job that cannot be decoded or decided about is parked in Error,
// so that it blocks neither the batch nor the sweep.
//
// # What a newer release wrote
//
// It is left: neither decided about, nor parked, nor refused, nor put into quarantine. Its messages are sent again,
// delayed (leave.go); who waits for an answer is told to ask again (NewerError).
package scheduler

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// maxConflicts is how often a save is tried against others of the same job before its events go back
// to the queue.
const maxConflicts = 50

const (
	// alertEvery is how often an operator is told, at most, that an agent claims nothing.
	alertEvery = time.Hour
	// alertAgain is the pause after an alert that did not reach him. The next task that is due again tells
	// him then.
	alertAgain = time.Minute
)

// sendWithin is how long what a caller's save made due is tried to be sent.
const sendWithin = 10 * time.Second

// tellWithin is how long telling of one job may take: less than a minute, after which it is tried again anyway, and
// little enough that a batch has time for it.
const tellWithin = 5 * time.Second

// Config is what a Scheduler needs. What has no default must be set.
type Config struct {
	Jobs        store.Jobs
	Closings    store.Closings
	Payloads    store.Payloads
	Definitions store.Definitions
	Queue       queue.Sender
	// Notifier alerts an operator; Listener, if set, tells whoever listens to a job. The two are told apart.
	Notifier notify.Notifier
	Listener notify.Notifier
	// Events is the queue that replies go to, Quarantine the one for poison, Tasks names an agent's.
	Events     string
	Quarantine string
	Tasks      func(agent string) string
	// Replies are the registered names that a submission may give as replyTo.
	Replies []string
	// Agents are those that have a queue; a workflow with another is refused. Empty: nothing is known of them.
	Agents []string
	// Submissions is the queue of their own that submissions by message come from (HandleSubmissions); one on the events
	// queue is poison then: who may send replies may not submit. Empty: they come with the events.
	Submissions string
	// Reminders: send delayed events for what is due soon, because the Supervisor comes too seldom.
	Reminders bool
	// Evaluations is how many steps' expressions may be evaluated at a time, since each may take what
	// makegood.MaxEvaluationBytes says and more; default: DefaultEvaluations.
	Evaluations int
	// Instance names this process in LockedBy.
	Instance string
	// Incarnation is the run of the embedded engine; 0 on AWS, where no attempt ends with a process.
	Incarnation int
	// Period is how often the Supervisor looks at what is overdue.
	Period time.Duration
	// Saved, if set, sees every job after it was created or saved.
	Saved func(job.Job)
	// Read reads a stored definition; default: workflowfile.Load.
	Read func(body []byte) (*workflowfile.Compiled, error)
	// Now defaults to time.Now, Random to a random number, Bytes to that many random bytes.
	Now    func() time.Time
	Random func() uint64
	Bytes  func(n int) []byte
	Logger *slog.Logger
}

// Scheduler handles events and requests. Its methods may be called by many goroutines at once.
type Scheduler struct {
	Config
	// Counts says what became of events and commands since the start.
	Counts Counts

	definitions sync.Map // hash -> *workflowfile.Compiled
	alerts      sync.Map // agent -> time.Time before which there is no other alert
	turns       turns
}

// Counts are running totals. Closed are the attempts that were closed because they were not wanted any more, Lies the
// claims that could not be true, Stopped are the jobs that came into Error by a save, Parked those that did
// so by a raw write; Unstarted are tasks that were due again because nobody had claimed them; Left are
// messages that were left to a newer release, and the deadlines of its jobs.
type Counts struct {
	Applied, Duplicate, Stale, Refused, Unknown, Poisoned, Left, Conflicts, Stopped, Parked, Tasks, Reminders, Unstarted, Saves, Closed, Lies atomic.Int64
}

// New fills in what the configuration left out.
func New(c Config) *Scheduler {
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
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Notifier == nil {
		c.Notifier = notify.Log{Logger: c.Logger}
	}
	if c.Evaluations == 0 {
		c.Evaluations = DefaultEvaluations
	}
	return &Scheduler{Config: c, turns: make(turns, c.Evaluations)}
}

func (s *Scheduler) now() time.Time { return makegood.Instant(s.Now()) }

// lockedBy is who saves: this instance, and a nonce that tells this save from every other.
func (s *Scheduler) lockedBy() string {
	return s.Instance + ":" + nonce(randomBytes)
}

// nonceBytes is how many random bytes a nonce has.
const nonceBytes = 8

func nonce(bytes func(int) []byte) string { return hex.EncodeToString(bytes(nonceBytes)) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = crand.Read(b) // never fails, says its documentation
	return b
}

// definition gives the compiled definition of a hash. Definitions never change, so one that was read
// is good for ever. A *NewerError, for one that a newer release wrote, is not kept.
func (s *Scheduler) definition(ctx context.Context, hash string) (*workflowfile.Compiled, error) {
	if c, ok := s.definitions.Load(hash); ok {
		return c.(*workflowfile.Compiled), nil
	}
	body, err := s.Definitions.Definition(ctx, hash)
	if err != nil {
		return nil, err
	}
	c, err := s.Read(body)
	if errors.Is(err, workflowfile.ErrNewer) {
		return nil, &NewerError{What: "the definition of this workflow"}
	}
	if err != nil {
		return nil, err
	}
	s.definitions.Store(hash, c)
	return c, nil
}
