// Package supervisor finds jobs that have been silent for too long, and jobs that the index has lost, and tells the
// Scheduler. It makes no decisions, writes to no job, and knows no rule about them.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
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

	mu sync.Mutex
	// braked is how far SweepAfter had come in shards when it held back.
	braked map[int]store.Entry
}

// New makes a Supervisor. It panics on a configuration that lacks a required field.
func New(c Config) *Supervisor { return &Supervisor{config: c.complete()} }

// Stats are running totals: of all sweeps what Result says of one, and of all pages of the audit what AuditResult says.
type Stats struct {
	// Sent counts the jobs and schedules that sweeps sent to the Scheduler, Ahead those among them that were not due yet,
	// Braked the sweeps that held back.
	Overdue, Sent, Ahead, Braked int64
	Audited, Stray               int64
}

// Stats returns what sweeps and audits have done since the start.
func (s *Supervisor) Stats() Stats { return s.stats.Snapshot() }

// Result says what a sweep did.
type Result struct {
	// Overdue is how many jobs and schedules were found, Sent how many the Scheduler was told of, Ahead how many of those
	// are not due yet.
	Overdue, Sent, Ahead int
	// Leased is how many shards were left to other holders of their leases.
	Leased int
	// Braked: the events queue was too deep, or not polled, and the sweep held back.
	Braked bool
}

// Sweep looks once at every shard, in random order, and tells the Scheduler about every job and schedule with a
// CompleteBy that has passed. The next sweep finds the unsent ones again. If so configured, it also looks ahead at
// coming beginnings, and sends delayed messages.
func (s *Supervisor) Sweep(ctx context.Context) (Result, error) {
	look, err := s.lookAhead(ctx)
	if err != nil {
		return s.count(Result{}, err)
	}
	r, err := s.sweep(ctx, since(time.Time{}, s.config.Now().Add(-s.config.Grace)), look, nil)
	return s.count(r, errors.Join(err, look.keep(ctx)))
}

// SweepAfter is a Sweep over the keys after a time only. A supervisor that is woken often sends each key to the
// Scheduler once that way, and leaves older keys to its next whole Sweep. A sweep that held back goes on from its
// last place, if it is called with the same time again.
func (s *Supervisor) SweepAfter(ctx context.Context, after time.Time) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.braked == nil {
		s.braked = map[int]store.Entry{}
	}
	return s.count(s.sweep(ctx, since(after, s.config.Now()), nil, s.braked))
}

// SweepRecent is a Sweep over the keys after a time only, for a supervisor that sweeps often. Older keys were sent
// before, in vain: a whole Sweep now and then is enough.
func (s *Supervisor) SweepRecent(ctx context.Context, after time.Time) (Result, error) {
	return s.count(s.sweep(ctx, since(after, s.config.Now().Add(-s.config.Grace)), nil, nil))
}

// count counts what a sweep did.
func (s *Supervisor) count(r Result, err error) (Result, error) {
	s.stats.Add(func(t *Stats) {
		t.Overdue += int64(r.Overdue)
		t.Sent += int64(r.Sent)
		t.Ahead += int64(r.Ahead)
		if r.Braked {
			t.Braked++
		}
	})
	return r, err
}

// since is the stretch of the keys after a time that are not after another.
func since(from, until time.Time) stretch {
	return stretch{from: store.Entry{CompleteBy: from}, until: domain.Instant(until)}
}

// sweep sends the keys of a stretch, going on from resume where an earlier sweep held back, and the keys that look
// finds ahead.
func (s *Supervisor) sweep(ctx context.Context, part stretch, look *lookout, resume map[int]store.Entry) (Result, error) {
	if unpolled, err := s.unpolled(ctx); err != nil || unpolled {
		return Result{Braked: unpolled}, err
	}
	sum, err := s.sweepShards(ctx, part, look, resume)
	if sum.Braked {
		s.config.Logger.WarnContext(ctx, "sweep held back: the events queue is deep", "limit", s.config.Depth)
	}
	if sum.Leased > 0 {
		s.config.Logger.WarnContext(ctx, "sweep left shards to the Supervisors that have leased them", "shards", sum.Leased)
	}
	return sum, err
}

// sweepShards sweeps all shards in random order, some at once. It begins no further one when the sweep holds back or
// its time is over.
func (s *Supervisor) sweepShards(ctx context.Context, part stretch, look *lookout, resume map[int]store.Entry) (Result, error) {
	var mu sync.Mutex
	var sum Result
	var problems []error
	shards := rand.Perm(s.config.Index.Shards())
	next := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(shards) == 0 {
			return 0, false
		}
		shard := shards[0]
		shards = shards[1:]
		return shard, true
	}
	add := func(shard int, r Result, err error) {
		mu.Lock()
		defer mu.Unlock()
		sum.add(r)
		if err != nil {
			problems = append(problems, fmt.Errorf("sweep shard %d: %w", shard, err))
		}
		if r.Braked || ctx.Err() != nil {
			shards = nil
		}
	}
	var workers sync.WaitGroup
	atOnce := s.config.AtOnce
	if resume != nil {
		atOnce = 1 // resume is not shared
	}
	for range atOnce {
		workers.Go(func() {
			for shard, more := next(); more; shard, more = next() {
				r, err := s.sweepShard(ctx, shard, part, look, resume)
				add(shard, r, err)
			}
		})
	}
	workers.Wait()
	return sum, errors.Join(problems...)
}

// add adds the result of a shard.
func (r *Result) add(more Result) {
	r.Overdue += more.Overdue
	r.Sent += more.Sent
	r.Ahead += more.Ahead
	r.Leased += more.Leased
	r.Braked = r.Braked || more.Braked
}

// unpolled reports whether events wait in a queue that is not polled: each sweep would leave one more for every
// silent job. It looks twice, since an event waits for a moment before it is taken, and only once in a sweep, since
// the sweep's own events have not been taken yet.
func (s *Supervisor) unpolled(ctx context.Context) (bool, error) {
	if s.config.Unpolled == 0 {
		return false, nil
	}
	for look := range 2 {
		if look > 0 {
			_ = pause.For(ctx, s.config.Unpolled) // the next request sees whether ctx has ended
		}
		depth, err := s.config.Queue.Depth(ctx, s.config.Events)
		if err != nil {
			return false, fmt.Errorf("depth of %s: %w", s.config.Events, err)
		}
		if depth.Waiting == 0 || depth.InFlight > 0 {
			return false, nil
		}
	}
	s.config.Logger.WarnContext(ctx, "sweep held back: events wait, and no Scheduler takes them", "for", s.config.Unpolled)
	return true, nil
}

// stretch is a part of a shard: the keys after an entry that are not after a time.
type stretch struct {
	from  store.Entry
	until time.Time
}

// sweepShard goes through the overdue keys of a shard, and then through its coming beginnings, holding the shard's
// lease.
func (s *Supervisor) sweepShard(ctx context.Context, shard int, overdue stretch, look *lookout, resume map[int]store.Entry) (Result, error) {
	defer s.release(ctx, shard)
	var r Result
	if at, braked := resume[shard]; braked && at.CompleteBy.After(overdue.from.CompleteBy) {
		overdue.from = at
	}
	at, err := s.pages(ctx, shard, overdue, func(page []store.Entry) error {
		sent, err := s.send(ctx, page, atOnce)
		r.Overdue, r.Sent = r.Overdue+len(page), r.Sent+sent
		return err
	})
	delete(resume, shard)
	if resume != nil && errors.Is(err, errBraked) {
		resume[shard] = at
	}
	if ahead, ok := look.stretch(shard); ok && err == nil {
		ahead.from, err = s.pages(ctx, shard, ahead, func(page []store.Entry) error {
			sent, err := s.send(ctx, page, s.untilItsKey)
			r.Ahead, r.Sent = r.Ahead+sent, r.Sent+sent
			return err
		})
		look.reached(shard, ahead.from)
	}
	switch {
	case errors.Is(err, errBraked):
		r.Braked, err = true, nil
	case errors.Is(err, errLeased):
		r.Leased, err = 1, nil
	}
	return r, err
}

// errBraked: the events queue is too deep. errLeased: another Supervisor has the shard.
var errBraked, errLeased = errors.New("the events queue is deep"), errors.New("the shard is another's")

// pages calls tell with the pages of a stretch, and returns its progress: the last entry that was sent, or the end of
// the stretch if no entry is left.
func (s *Supervisor) pages(ctx context.Context, shard int, part stretch, tell func([]store.Entry) error) (store.Entry, error) {
	for range s.config.MaxPages {
		if !s.lease(ctx, shard) {
			return part.from, errLeased
		}
		page, err := s.config.Index.Due(ctx, shard, part.until, part.from, s.config.Page)
		if err != nil {
			return part.from, fmt.Errorf("read index: %w", err)
		}
		if len(page) > 0 {
			if err := s.brake(ctx); err != nil {
				return part.from, err
			}
			if err := tell(page); err != nil {
				return part.from, err
			}
		}
		if len(page) < s.config.Page {
			return store.Entry{CompleteBy: part.until}, nil
		}
		part.from = page[len(page)-1]
	}
	return part.from, nil
}

// brake fails with errBraked if so many events wait that there must be no more. Where that is configured it first waits
// for the Scheduler to take some, as long as the sweep may last.
func (s *Supervisor) brake(ctx context.Context) error {
	for {
		depth, err := s.config.Queue.Depth(ctx, s.config.Events)
		if err != nil {
			return fmt.Errorf("depth of %s: %w", s.config.Events, err)
		}
		if depth.Waiting <= s.config.Depth {
			return nil
		}
		if s.config.AskAgain == 0 || pause.For(ctx, s.config.AskAgain) != nil {
			return errBraked
		}
	}
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

// atOnce is the delay of overdue entries.
func atOnce(store.Entry) time.Duration { return 0 }

// send tells the Scheduler of each entry of a page, after a delay.
func (s *Supervisor) send(ctx context.Context, page []store.Entry, delay func(store.Entry) time.Duration) (sent int, err error) {
	if len(page) == 0 {
		return 0, nil
	}
	messages := make([]queue.Message, len(page))
	for i, entry := range page {
		if messages[i], err = messageOf(entry); err != nil {
			return 0, err
		}
		messages[i].Delay = delay(entry)
	}
	sent = len(messages)
	for _, e := range s.config.Queue.Send(ctx, s.config.Events, messages...) {
		if e != nil {
			sent--
			err = fmt.Errorf("send the due looks: %w", e)
		}
	}
	return sent, err
}

// messageOf writes what the Scheduler is told of an entry.
func messageOf(entry store.Entry) (queue.Message, error) {
	if entry.Holds {
		body, err := wire.EncodeHoldsDue(entry.CompleteBy)
		return queue.Message{Body: body}, err
	}
	if entry.Schedule != "" {
		body, err := wire.EncodeScheduleDue(wire.ScheduleDue{Schedule: entry.Schedule, Key: entry.CompleteBy})
		return queue.Message{Body: body, Group: entry.Schedule}, err
	}
	body, err := wire.EncodeEvent(entry.Job, job.DeadlinePassed{Key: entry.CompleteBy})
	return queue.Message{Body: body, Group: entry.Job}, err
}
