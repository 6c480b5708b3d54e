package supervisor

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// The default limits of a sweep.
const (
	DefaultPage     = 100
	DefaultDepth    = 10_000
	DefaultMaxPages = 1000
	// LeaseFor is how long a shard is leased at a time: longer than a page takes, shorter than an acceptable wait for the
	// shard of a Supervisor that died.
	LeaseFor = 30 * time.Second
)

// Config is what a Supervisor needs. Index, Queue and Events must be set.
type Config struct {
	Index store.Index
	Queue queue.Sender
	// Events is the name of the events queue.
	Events string
	// Leases, if set, keep other Supervisors from the shard that this one sweeps, under the name of Holder. It is renewed
	// with every page. It only saves work; correctness does not depend on it.
	Leases store.Leases
	Holder string
	// Page is how many jobs are read, and told of, at a time.
	Page int
	// MaxPages bounds a sweep of one shard.
	MaxPages int
	// Grace is how long a whole Sweep leaves a key alone because SweepAfter has sent it, and the Scheduler is likely to
	// be at it. Zero where only Sweep is used.
	Grace time.Duration
	// Depth is how many events may wait before the Supervisor adds no more: when the queue side is
	// down it must not multiply messages.
	Depth int
	// AskAgain is how long a sweep waits before it asks again for the depth of a queue that is too deep, until its time is
	// over. Zero: it ends, and the next sweep goes on.
	AskAgain time.Duration
	// AtOnce is how many shards a sweep goes through at the same time. Zero: one, as SweepAfter always has.
	AtOnce int
	// Unpolled is how long events must wait with none in flight before a sweep concludes that their queue is not polled,
	// and adds none. Zero where that cannot be: the pollers are in the same process.
	Unpolled time.Duration
	// Ahead is how far ahead a whole Sweep looks, if the Index keeps beginnings in shards of their own
	// (store.Beginnings), so that it can send delayed messages and run rarely. Zero: not at all. Places keep how far it
	// has looked.
	Ahead time.Duration
	// Auditor, if set, lists the items for Audit, AuditPage items at a time. Places keep how far it has come; without
	// them only this Supervisor knows. Strays receives its findings. Default: Logger.
	Auditor   store.Auditor
	AuditPage int
	Places    store.Places
	Strays    *slog.Logger
	Now       func() time.Time
	Logger    *slog.Logger
}

// complete fills in defaults. It panics on an unusable configuration, which is a mistake in the wiring.
func (c Config) complete() Config {
	if c.Index == nil || c.Queue == nil || c.Events == "" {
		panic("supervisor: the configuration must have Index, Queue and Events")
	}
	c.Page = cmp.Or(c.Page, DefaultPage)
	c.MaxPages = cmp.Or(c.MaxPages, DefaultMaxPages)
	c.AtOnce = cmp.Or(c.AtOnce, 1)
	c.Depth = cmp.Or(c.Depth, DefaultDepth)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Strays = cmp.Or(c.Strays, c.Logger)
	c.AuditPage = cmp.Or(c.AuditPage, DefaultAuditPage)
	if c.Places == nil {
		c.Places = &memory{}
	}
	return c
}
