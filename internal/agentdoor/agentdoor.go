// Package agentdoor serves agents that run in other processes: it gives them tasks that are claimed already, takes
// their heartbeats and replies, and lets them read and write the large payloads of their attempts' jobs. It has no HTTP
// code (that is in internal/httpapi), runs no agent, and decides nothing about jobs.
//
// # Durability
//
// A claim is flushed before its task is handed out (a shared task has no claim; that it was given away is flushed), a
// heartbeat before it is answered, and a reply is saved in its job before it is answered. The holder of such a claim
// lives on when the engine dies, so a restart does not interrupt it: its LockedBy begins with job.OutsidePrefix, by
// which the core knows it.
//
// # Loss after a failure
//
// A task with a written claim and a lost answer looks like silence, and ends at its CompleteBy. To make that rare, the
// tasks given to a request are remembered for a while: the same request gets the same tasks again, except those
// answered meanwhile.
package agentdoor

import (
	"cmp"
	"container/list"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

var (
	// ErrUnknown: no agent of this name runs in other processes.
	ErrUnknown = errors.New("no such agent outside")
	// ErrToken: the agent has a token, and this is not it.
	ErrToken = errors.New("not the agent's token")
	// ErrBusy: limits.MaxTaskPolls requests of the agent wait for tasks already.
	ErrBusy = errors.New("too many requests wait for tasks")
	// ErrUploads: limits.MaxUploads payloads of the agent are being written already.
	ErrUploads = errors.New("too many payloads are being written")
	// ErrClosed: the engine ends.
	ErrClosed = errors.New("the engine ends")
)

// Scheduler is the part of the Scheduler that the door needs. Errors are those of package scheduler.
type Scheduler interface {
	// Reply moves a job by an agent's reply, and returns after that is saved.
	Reply(ctx context.Context, id string, reply job.Event) (machine.Verdict, error)
	// TaskOut returns the task of the attempt that r speaks of. ok is false if that is not out, or r has not its token.
	TaskOut(ctx context.Context, id string, r job.Reply) (task makegood.Task, ok bool, err error)
}

// Store is the part of the store that the door needs.
type Store interface {
	store.Claims
	Look(ctx context.Context, slot store.Slot, attempt int, until, now time.Time) (job.Found, error)
}

// Config has the settings and dependencies of a Door. All but Tokens, Large, Held, Now, Nonce and Logger must be set.
type Config struct {
	// Agents are the names of outside agents, Tokens the token that each must show; one without an entry shows none.
	Agents []string
	Tokens map[string]string
	// Tasks gives the queue of an agent.
	Tasks     func(agent string) string
	Receiver  queue.Receiver
	Store     Store
	Scheduler Scheduler
	// Large is where the agents write and read large payloads. Nil: they cannot.
	Large payload.Bytes
	// Held, if set, reports whether a task must not be given out, because its agent or workflow is paused.
	Held func(ctx context.Context, t makegood.Task) (bool, error)
	// Now returns the time that is written into claims. Default: time.Now.
	Now func() time.Time
	// Nonce distinguishes a claim from every other. Default: rand.Text, 128 random bits.
	Nonce  func() string
	Logger *slog.Logger
}

// Door gives out tasks, and takes heartbeats and replies. Its methods are safe for concurrent use.
type Door struct {
	config Config
	agents map[string]*outside
	closed chan struct{}
	once   sync.Once
	opened time.Time
}

// outside is an agent that runs in other processes.
type outside struct {
	name, token string
	// polls has room for as many as may wait.
	polls chan struct{}
	// uploads has room for as many payloads as may be written at once.
	uploads chan struct{}
	recent  recent
	seen    seen
}

// New makes a Door.
func New(c Config) *Door {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Nonce == nil {
		c.Nonce = rand.Text
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	d := &Door{config: c, agents: map[string]*outside{}, closed: make(chan struct{}), opened: time.Now()}
	for _, name := range c.Agents {
		d.agents[name] = &outside{
			name: name, token: c.Tokens[name], polls: make(chan struct{}, limits.MaxTaskPolls),
			uploads: make(chan struct{}, limits.MaxUploads), recent: recent{given: map[string]*list.Element{}, order: list.New()}, seen: seen{by: map[string]time.Time{}},
		}
	}
	return d
}

// Close ends waits for tasks with ErrClosed, and allows no further ones.
func (d *Door) Close() { d.once.Do(func() { close(d.closed) }) }

// Allow reports whether the holder of this token may speak as this agent: nil, ErrUnknown or ErrToken.
func (d *Door) Allow(agent, token string) error {
	a := d.agents[agent]
	switch {
	case a == nil:
		return ErrUnknown
	case a.token != "" && subtle.ConstantTimeCompare([]byte(a.token), []byte(token)) != 1:
		return ErrToken
	}
	return nil
}

func slotOf(task makegood.Task) store.Slot {
	return store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
}
