package agentrun

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Config has the settings and dependencies of a Runner. Claims and Queue must be set, unless all tasks come to Do: then
// neither is.
type Config struct {
	// Handlers are the agents that run here, distinguished by their names.
	Handlers []agent.Handler
	Claims   store.Claims
	Queue    queue.Sender
	// Tasks is the queue that the tasks come from: records for a newer release are sent there again.
	Tasks string
	// Quarantine is the queue for messages that can never be understood.
	Quarantine string
	// Held, if set, reports whether a task must not be begun, because its agent or its workflow is paused. After an
	// error the task begins: the Scheduler has read the pauses before it sent the task.
	Held func(ctx context.Context, t makegood.Task) (bool, error)
	// Begun, if set, hears of each attempt that begins here, after its claim and before its work: its message is not
	// needed any more, unless the task is shared.
	Begun func(ctx context.Context, record events.SQSMessage, task makegood.Task)
	// Others is how many tasks may run in this process beside those of a batch. Lambda gives it one batch at a time.
	Others int
	// Slots bound, by their capacities, how many tasks run at once, each for all Runners that share it.
	Slots []chan struct{}
	// Room is where the tasks run, for several Runners of one process: a task that runs alone excludes those of the other
	// Runners, too. Nil: a room of its own.
	Room *Room
	// Counts: the cost of an attempt on AWS is counted, and sent with its reply. Of a function, Clock counts its time.
	Counts bool
	Clock  *spend.Clock
	// ClaimsIn says where Claims keeps them, for the writes of agents that rest on a claim; LockedBy is empty.
	ClaimsIn makegood.TaskClaim
	// Instance names this process in LockedBy; a nonce follows it.
	Instance string
	// Now returns the time that is written into claims. Default: time.Now.
	Now func() time.Time
	// Nonce distinguishes a claim from every other of this instance. Default: rand.Text, 128 random bits.
	Nonce func(makegood.Task) string
	// Secrets gives the secrets that tasks name. Default: there are none.
	Secrets agent.Secrets
	// Large is where agents write and read large payloads; a Held has its own. Nil: they cannot.
	Large payload.Bytes
	// Memory remembers messages that this process writes for itself. Nil: it reads each.
	Memory *wire.Memory
	// Logger hears of decisions, and never of payloads. Default: slog.Default().
	Logger *slog.Logger
}

// complete fills in defaults. It panics on an invalid configuration: the wiring has a mistake.
func (c Config) complete() Config {
	if (c.Claims == nil) != (c.Queue == nil) {
		panic("agentrun: the configuration must have Claims and Queue")
	}
	names := make(map[string]bool)
	for _, h := range c.Handlers {
		if names[h.Name()] {
			panic(fmt.Sprintf("agentrun: two agents are called %q", h.Name()))
		}
		names[h.Name()] = true
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Nonce == nil {
		c.Nonce = func(makegood.Task) string { return rand.Text() }
	}
	if c.Secrets == nil {
		c.Secrets = func(context.Context, string) (string, error) { return "", agent.ErrNoSecret }
	}
	if c.Room == nil {
		c.Room = new(Room)
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
