package supervisor

import (
	"log/slog"
	"time"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
)

// The limits of a sweep where Config says nothing.
const (
	DefaultPage     = 100
	DefaultDepth    = 10_000
	DefaultMaxPages = 1000
	// LeaseFor is how long a shard is leased at a time: longer than a page takes, shorter than anybody
	// wants to wait for the shard of a Supervisor that died.
	LeaseFor = 30 * time.Second
)

// Config is what a Supervisor needs. Index, Queue and Events must be set.
type Config struct {
	Index store.Index
	Queue queue.Sender
	// Events is the name of the events queue.
	Events string
	// Leases, if set, keep other Supervisors from the shard that this one sweeps, under the name of
	// Holder. It is renewed with every page. Nothing rests on it but economy.
	Leases store.Leases
	Holder string
	// Page is how many jobs are read, and told of, at a time.
	Page int
	// MaxPages bounds a sweep of one shard.
	MaxPages int
	// Grace is how long a key is left alone by a whole Sweep because SweepAfter has told of it, and the
	// Scheduler is likely to be at it. Zero where only Sweep is used.
	Grace time.Duration
	// Depth is how many events may wait before the Supervisor adds no more: when the queue side is
	// down it must not multiply messages.
	Depth int
	// Unpolled is for how long events must wait with none in flight before a sweep takes it that nobody polls
	// their queue, and adds none. Zero where that cannot be: the pollers are in the same process.
	Unpolled time.Duration
	// Ahead is how far ahead a whole Sweep looks at what is about to begin, where the Index keeps that in shards of its own
	// (store.Beginnings): what sends delayed messages need not come often. Zero: not at all. Places keep how far it has looked.
	Ahead time.Duration
	// Auditor, if set, is what Audit walks through, AuditPage items at a time. Places keep how far it has come;
	// without them only this Supervisor knows. Strays hears of what it finds. Default: Logger.
	Auditor   store.Auditor
	AuditPage int
	Places    store.Places
	Strays    *slog.Logger
	Now       func() time.Time
	Logger    *slog.Logger
}

// complete fills in what was left out. It panics where nothing can be made of what was given: whoever wired it made a
// mistake.
func (c Config) complete() Config {
	if c.Index == nil || c.Queue == nil || c.Events == "" {
		panic("supervisor: the configuration must have Index, Queue and Events")
	}
	if c.Page == 0 {
		c.Page = DefaultPage
	}
	if c.MaxPages == 0 {
		c.MaxPages = DefaultMaxPages
	}
	if c.Depth == 0 {
		c.Depth = DefaultDepth
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Strays == nil {
		c.Strays = c.Logger
	}
	if c.AuditPage == 0 {
		c.AuditPage = DefaultAuditPage
	}
	if c.Places == nil {
		c.Places = &memory{}
	}
	return c
}
