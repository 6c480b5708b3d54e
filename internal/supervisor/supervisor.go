// Package supervisor finds jobs that have been silent for too long, and jobs that the index has lost, and tells the
// Scheduler. It decides nothing, writes to no job, and knows no rule about them.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/pause"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/tally"
	"github.com/makegood-dev/makegood/internal/wire"
)

// Supervisor sweeps. Several may sweep at once without harm.
type Supervisor struct {
	config Config
	stats  tally.Of[Stats]
}

// New makes a Supervisor. It panics on a configuration that lacks what must be set.
func New(c Config) *Supervisor { return &Supervisor{config: c.complete()} }

// Stats are running totals: of all sweeps what Result says of one, and of all pages of the audit what AuditResult says.
type Stats struct {
	// Sent are the jobs that sweeps told the Scheduler of, Braked the sweeps that held back.
	Overdue, Sent, Braked int64
	Audited, Stray        int64
}

// Stats returns what sweeps and audits have done since the start.
func (s *Supervisor) Stats() Stats { return s.stats.Snapshot() }

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
	return s.count(s.sweep(ctx, time.Time{}, makegood.Instant(s.config.Now().Add(-s.config.Grace))))
}

// SweepAfter is a Sweep over the keys after since only. A supervisor that is woken often tells the
// Scheduler of each key once that way, and leaves what is older to its next whole Sweep.
func (s *Supervisor) SweepAfter(ctx context.Context, since time.Time) (Result, error) {
	return s.count(s.sweep(ctx, since, makegood.Instant(s.config.Now())))
}

// SweepRecent is a Sweep over the keys after since only, for a supervisor that sweeps often. What is older was told of
// before, in vain: a whole Sweep now and then is enough.
func (s *Supervisor) SweepRecent(ctx context.Context, since time.Time) (Result, error) {
	return s.count(s.sweep(ctx, since, makegood.Instant(s.config.Now().Add(-s.config.Grace))))
}

// count counts what a sweep did.
func (s *Supervisor) count(r Result, err error) (Result, error) {
	s.stats.Add(func(t *Stats) {
		t.Overdue += int64(r.Overdue)
		t.Sent += int64(r.Sent)
		if r.Braked {
			t.Braked++
		}
	})
	return r, err
}

// sweep tells of the keys after since that are not after now.
func (s *Supervisor) sweep(ctx context.Context, since, now time.Time) (Result, error) {
	if unpolled, err := s.unpolled(ctx); err != nil || unpolled {
		return Result{Braked: unpolled}, err
	}
	var sum Result
	var problems []error
	for _, shard := range rand.Perm(s.config.Index.Shards()) {
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
		s.config.Logger.WarnContext(ctx, "sweep held back: the events queue is deep", "limit", s.config.Depth)
	}
	return sum, errors.Join(problems...)
}

// unpolled reports whether events wait, and nobody takes them: each sweep would leave one more for every silent job.
// It looks twice, since an event waits for a moment before it is taken, and only once in a sweep, since what
// the sweep itself has just sent has not been taken yet.
func (s *Supervisor) unpolled(ctx context.Context) (bool, error) {
	if s.config.Unpolled == 0 {
		return false, nil
	}
	for look := range 2 {
		if look > 0 {
			_ = pause.For(ctx, s.config.Unpolled) // what is asked next knows whether ctx has ended
		}
		depth, err := s.config.Queue.Depth(ctx, s.config.Events)
		if err != nil {
			return false, fmt.Errorf("depth of %s: %w", s.config.Events, err)
		}
		if depth.Waiting == 0 || depth.InFlight > 0 {
			return false, nil
		}
	}
	s.config.Logger.WarnContext(ctx, "sweep held back: events wait, and nobody takes them", "for", s.config.Unpolled)
	return true, nil
}

func (s *Supervisor) sweepShard(ctx context.Context, shard int, since, now time.Time) (Result, error) {
	var r Result
	after := store.Entry{CompleteBy: since}
	defer s.release(ctx, shard)
	for range s.config.MaxPages {
		if !s.lease(ctx, shard) {
			return r, nil
		}
		depth, err := s.config.Queue.Depth(ctx, s.config.Events)
		if err != nil {
			return r, fmt.Errorf("depth of %s: %w", s.config.Events, err)
		}
		if depth.Waiting > s.config.Depth {
			r.Braked = true
			return r, nil
		}
		page, err := s.config.Index.Due(ctx, shard, now, after, s.config.Page)
		if err != nil {
			return r, fmt.Errorf("read index: %w", err)
		}
		r.Overdue += len(page)
		sent, err := s.send(ctx, page)
		r.Sent += sent
		if err != nil || len(page) < s.config.Page {
			return r, err
		}
		after = page[len(page)-1]
	}
	return r, nil
}

// lease reports whether the shard is this Supervisor's to sweep. A lease that cannot be asked for is no
// reason not to: two may sweep one shard without harm.
func (s *Supervisor) lease(ctx context.Context, shard int) bool {
	if s.config.Leases == nil {
		return true
	}
	now := s.config.Now()
	err := s.config.Leases.TakeLease(ctx, leaseName(shard), s.config.Holder, now, now.Add(LeaseFor))
	if err != nil && !errors.Is(err, store.ErrTaken) {
		s.config.Logger.WarnContext(ctx, "sweep without a lease", "shard", shard, "error", err)
	}
	return !errors.Is(err, store.ErrTaken)
}

// release gives the shard up; one that is not released runs out.
func (s *Supervisor) release(ctx context.Context, shard int) {
	if s.config.Leases == nil {
		return
	}
	if err := s.config.Leases.ReleaseLease(context.WithoutCancel(ctx), leaseName(shard), s.config.Holder); err != nil {
		s.config.Logger.WarnContext(ctx, "a lease runs out by itself", "shard", shard, "error", err)
	}
}

func leaseName(shard int) string { return fmt.Sprintf("sweep-%d", shard) }

// send sends DeadlinePassed for each job of a page.
func (s *Supervisor) send(ctx context.Context, page []store.Entry) (sent int, err error) {
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
	for _, e := range s.config.Queue.Send(ctx, s.config.Events, messages...) {
		if e != nil {
			sent--
			err = fmt.Errorf("send DeadlinePassed: %w", e)
		}
	}
	return sent, err
}
