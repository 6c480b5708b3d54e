// Package supervisor finds jobs that have been silent for too long, and jobs that the index has lost, and tells the
// Scheduler. It decides nothing, writes to no job, and knows no rule about them.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
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
	// Auditor, if set, is what Audit walks through, AuditPage items at a time. Places keep how far it has come;
	// without them only this Supervisor knows. Strays hears of what it finds. Default: Logger.
	Auditor   store.Auditor
	AuditPage int
	Places    store.Places
	Strays    *slog.Logger
	Now       func() time.Time
	Logger    *slog.Logger
}

// Supervisor sweeps. Several may sweep at once without harm.
type Supervisor struct{ Config }

// New fills in what the configuration left out.
func New(c Config) *Supervisor {
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
	return &Supervisor{c}
}

// Result says what a sweep did.
type Result struct {
	// Overdue is how many jobs were found, Sent how many the Scheduler was told of.
	Overdue, Sent int
	// Braked: the events queue was too deep, or nobody took anything from it, and the sweep held back.
	Braked bool
}

// Sweep looks once at every shard, in random order, and tells the Scheduler of every job whose
// CompleteBy has passed. What it could not send, the next sweep finds again.
func (s *Supervisor) Sweep(ctx context.Context) (Result, error) {
	return s.sweep(ctx, time.Time{}, makegood.Instant(s.Now().Add(-s.Grace)))
}

// SweepAfter is a Sweep over the keys after since only. A supervisor that is woken often tells the
// Scheduler of each key once that way, and leaves what is older to its next whole Sweep.
func (s *Supervisor) SweepAfter(ctx context.Context, since time.Time) (Result, error) {
	return s.sweep(ctx, since, makegood.Instant(s.Now()))
}

// SweepRecent is a Sweep over the keys after since only, for a supervisor that sweeps often. What is older was told of
// before, in vain: a whole Sweep now and then is enough.
func (s *Supervisor) SweepRecent(ctx context.Context, since time.Time) (Result, error) {
	return s.sweep(ctx, since, makegood.Instant(s.Now().Add(-s.Grace)))
}

// sweep tells of the keys after since that are not after now.
func (s *Supervisor) sweep(ctx context.Context, since, now time.Time) (Result, error) {
	if unpolled, err := s.unpolled(ctx); err != nil || unpolled {
		return Result{Braked: unpolled}, err
	}
	var sum Result
	var problems []error
	for _, shard := range rand.Perm(s.Index.Shards()) {
		r, err := s.sweepShard(ctx, shard, since, now)
		sum.Overdue += r.Overdue
		sum.Sent += r.Sent
		sum.Braked = sum.Braked || r.Braked
		if err != nil {
			problems = append(problems, fmt.Errorf("sweep shard %d: %w", shard, err))
		}
		if r.Braked || ctx.Err() != nil {
			break
		}
	}
	if sum.Braked {
		s.Logger.WarnContext(ctx, "sweep held back: the events queue is deep", "limit", s.Depth)
	}
	return sum, errors.Join(problems...)
}

// unpolled reports whether events wait, and nobody takes them: each sweep would leave one more for every silent job.
// It looks twice, since an event waits for a moment before it is taken, and only once in a sweep, since what
// the sweep itself has just sent has not been taken yet.
func (s *Supervisor) unpolled(ctx context.Context) (bool, error) {
	if s.Unpolled == 0 {
		return false, nil
	}
	for look := range 2 {
		if look > 0 {
			select {
			case <-time.After(s.Unpolled):
			case <-ctx.Done():
			}
		}
		depth, err := s.Queue.Depth(ctx, s.Events)
		if err != nil {
			return false, fmt.Errorf("depth of %s: %w", s.Events, err)
		}
		if depth.Waiting == 0 || depth.InFlight > 0 {
			return false, nil
		}
	}
	s.Logger.WarnContext(ctx, "sweep held back: events wait, and nobody takes them", "for", s.Unpolled)
	return true, nil
}

func (s *Supervisor) sweepShard(ctx context.Context, shard int, since, now time.Time) (Result, error) {
	var r Result
	after := store.Entry{CompleteBy: since}
	defer s.release(ctx, shard)
	for range s.MaxPages {
		if !s.lease(ctx, shard) {
			return r, nil
		}
		depth, err := s.Queue.Depth(ctx, s.Events)
		if err != nil {
			return r, fmt.Errorf("depth of %s: %w", s.Events, err)
		}
		if depth.Waiting > s.Depth {
			r.Braked = true
			return r, nil
		}
		page, err := s.Index.Due(ctx, shard, now, after, s.Page)
		if err != nil {
			return r, fmt.Errorf("read index: %w", err)
		}
		r.Overdue += len(page)
		sent, err := s.tell(ctx, page)
		r.Sent += sent
		if err != nil || len(page) < s.Page {
			return r, err
		}
		after = page[len(page)-1]
	}
	return r, nil
}

// lease reports whether the shard is this Supervisor's to sweep. A lease that cannot be asked for is no
// reason not to: two may sweep one shard without harm.
func (s *Supervisor) lease(ctx context.Context, shard int) bool {
	if s.Leases == nil {
		return true
	}
	now := s.Now()
	err := s.Leases.TakeLease(ctx, leaseName(shard), s.Holder, now, now.Add(LeaseFor))
	if err != nil && !errors.Is(err, store.ErrTaken) {
		s.Logger.WarnContext(ctx, "sweep without a lease", "shard", shard, "error", err)
	}
	return !errors.Is(err, store.ErrTaken)
}

// release gives the shard up; one that is not released runs out.
func (s *Supervisor) release(ctx context.Context, shard int) {
	if s.Leases == nil {
		return
	}
	if err := s.Leases.ReleaseLease(context.WithoutCancel(ctx), leaseName(shard), s.Holder); err != nil {
		s.Logger.WarnContext(ctx, "a lease runs out by itself", "shard", shard, "error", err)
	}
}

func leaseName(shard int) string { return fmt.Sprintf("sweep-%d", shard) }

func (s *Supervisor) tell(ctx context.Context, page []store.Entry) (sent int, err error) {
	if len(page) == 0 {
		return 0, nil
	}
	messages := make([]queue.Message, len(page))
	for i, entry := range page {
		body, err := wire.EncodeEvent(entry.Job, job.DeadlinePassed{Key: entry.CompleteBy})
		if err != nil {
			return 0, err
		}
		messages[i] = queue.Message{Body: body, Group: entry.Job}
	}
	sent = len(messages)
	for _, e := range s.Queue.Send(ctx, s.Events, messages...) {
		if e != nil {
			sent--
			err = fmt.Errorf("send DeadlinePassed: %w", e)
		}
	}
	return sent, err
}
