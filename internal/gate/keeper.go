package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// maxPasses is how often a gate is read again because others came between, or more may happen.
	maxPasses = 200
	// page is how many tickets are read at once.
	page = 25
)

// Config has the dependencies of a Keeper. Store, Jobs, Queue and Events must be set.
type Config struct {
	Store store.Gates
	// Jobs reads jobs, strongly consistent.
	Jobs interface {
		Load(ctx context.Context, id string) (job.Job, error)
	}
	Queue  queue.Sender
	Events string
	Now    func() time.Time
	Logger *slog.Logger
}

// Keeper gives out the permits of gates. Its methods may be called by many goroutines, and processes, at once.
type Keeper struct {
	config Config
	mu     sync.Mutex
	// busy has a lock for each gate, so that the goroutines of a process do not compete for its items.
	busy map[string]chan struct{}
}

// New makes a Keeper. It panics on a configuration without a required field.
func New(c Config) *Keeper {
	if c.Store == nil || c.Jobs == nil || c.Queue == nil || c.Events == "" {
		panic("gate: the configuration must have Store, Jobs, Queue and Events")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Keeper{config: c, busy: map[string]chan struct{}{}}
}

// lock locks a gate, unless ctx ends before that, and returns what unlocks it.
func (k *Keeper) lock(ctx context.Context, agent string) (unlock func(), err error) {
	k.mu.Lock()
	busy := k.busy[agent]
	if busy == nil {
		busy = make(chan struct{}, 1)
		k.busy[agent] = busy
	}
	k.mu.Unlock()
	if ctx.Err() == nil {
		select {
		case busy <- struct{}{}:
			return func() { <-busy }, nil
		case <-ctx.Done():
		}
	}
	return nil, fmt.Errorf("come to the gate of %s: %w", agent, context.Cause(ctx))
}

// Take reports whether the attempt of a ticket has a permit, which it keeps until it is over. It gets one if one is
// free and no other waits for it, and else waits. stored: the job that has the attempt is stored; if not, the permit is
// for the save that follows the Rev of the ticket. After an error the attempt may have one.
func (k *Keeper) Take(ctx context.Context, agent string, most int, t job.Ticket, stored bool) (bool, error) {
	unlock, err := k.lock(ctx, agent)
	if err != nil {
		return false, err
	}
	defer unlock()
	entered := false
	for range maxPasses {
		g, err := k.config.Store.Gate(ctx, agent, 1)
		if err != nil {
			return false, fmt.Errorf("read the gate of %s: %w", agent, err)
		}
		was, is, permitted := k.takes(g, most, t, stored)
		switch {
		case !permitted && entered:
			return false, nil
		case !permitted:
			if err := k.config.Store.Enter(ctx, agent, t); err != nil {
				return false, fmt.Errorf("wait at the gate of %s: %w", agent, err)
			}
			// It may have become free since it was read.
			entered = true
			if err := k.pass(ctx, agent, most, over(nil)); err != nil {
				return false, err
			}
			continue
		case was.Ticket == is.Ticket:
			return true, nil
		}
		switch err = k.config.Store.PutPermit(ctx, agent, was, is); {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return false, fmt.Errorf("take a permit of %s: %w", agent, err)
		}
		return true, nil
	}
	return false, fmt.Errorf("the gate of %s: %w, %d times", agent, store.ErrConflict, maxPasses)
}

// takes returns the change that gives an attempt its permit: none, where it has one that may stay as it is.
func (k *Keeper) takes(g store.Gate, most int, t job.Ticket, stored bool) (was, is job.Permit, ok bool) {
	for _, p := range g.Permits {
		if !p.Ticket.Same(t) {
			continue
		}
		is = p
		if !stored { // A look at the gate must not take it for one of a save that has failed.
			is.Ticket.Rev = max(is.Ticket.Rev, t.Rev)
		}
		return p, is, true
	}
	if len(g.Waiting) > 0 { // Even if it is the first: pass knows the turns.
		return was, is, false
	}
	n, ok := free(g, most)
	return job.Permit{N: n}, job.Permit{N: n, Ticket: t, At: domain.Instant(k.config.Now())}, ok
}

// over returns a function that reports whether the attempt of a ticket is one of these. A ticket that was written since
// may be of one that another process is about to open.
func over(these []job.Ticket) func(job.Ticket) bool {
	return func(t job.Ticket) bool {
		return slices.ContainsFunc(these, func(o job.Ticket) bool { return o.Same(t) && t.Rev < o.Rev })
	}
}

// Left frees the permits of the ended attempts, and hands them to the next tickets. The Rev of a ticket is that of the
// save in which its job ended the attempt. waited has the tickets of ended that may still be in the queue. After an
// error a Look frees the permits that are left.
func (k *Keeper) Left(ctx context.Context, agent string, most int, ended, waited []job.Ticket) error {
	unlock, err := k.lock(ctx, agent)
	if err != nil {
		return err
	}
	defer unlock()
	for _, t := range waited {
		if err := k.config.Store.Leave(ctx, agent, t); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("leave the gate of %s: %w", agent, err)
		}
	}
	return k.pass(ctx, agent, most, over(ended))
}

// Look asks the jobs of the permits whether their attempts are over, takes back those of the ones that are, and lets
// the next ones begin. It looks at a permit ever less often; before is the time of the look before this one. Zero: it
// looks at each permit. A permit for a save that has not come may wait for it for ever, if its process has died: the
// job is told, and the Scheduler saves it as it is, so that the awaited save fails and the permit is free.
func (k *Keeper) Look(ctx context.Context, agent string, most int, before time.Time) error {
	g, err := k.config.Store.Gate(ctx, agent, 0)
	if err != nil {
		return fmt.Errorf("read the gate of %s: %w", agent, err)
	}
	var ended, awaited []job.Ticket
	for _, p := range g.Permits {
		if !before.IsZero() && !isDue(before.Sub(p.At), k.config.Now().Sub(p.At), limits.GateLook) {
			continue
		}
		is, awaits, err := k.ended(ctx, p.Ticket)
		if err != nil {
			return fmt.Errorf("look at the gate of %s: %w", agent, err)
		}
		if awaits {
			awaited = append(awaited, p.Ticket)
		}
		if is {
			k.config.Logger.WarnContext(ctx, "a permit was kept by an attempt that is over", "agent", agent, "job", p.Ticket.Job, "step", p.Ticket.Step)
			ended = append(ended, p.Ticket)
		}
	}
	k.tell(ctx, agent, awaited)
	unlock, err := k.lock(ctx, agent)
	if err != nil {
		return err
	}
	defer unlock()
	// A ticket that was renewed since is of a save that may have opened the attempt.
	return k.pass(ctx, agent, most, func(t job.Ticket) bool { return slices.Contains(ended, t) })
}

// ended asks the job of a ticket whether its attempt is over. The save that opens it may still come, and is awaited,
// while the job has the Rev of the ticket.
func (k *Keeper) ended(ctx context.Context, t job.Ticket) (is, awaited bool, err error) {
	j, err := k.config.Jobs.Load(ctx, t.Job)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return true, false, nil
	case errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrDamaged):
		return false, false, nil // A person or a later release sees to the job first.
	case err != nil:
		return false, false, err
	}
	opened := machine.Stands(j, t)
	is = j.Birth != t.Birth || j.Rev > t.Rev && !opened
	return is, !is && !opened, nil
}

// Open lets all go that wait at a gate that is no more. Those that it misses look for themselves.
func (k *Keeper) Open(ctx context.Context, agent string) error {
	for range maxPasses {
		g, err := k.config.Store.Gate(ctx, agent, page)
		if err != nil {
			return fmt.Errorf("read the gate of %s: %w", agent, err)
		}
		for _, p := range g.Permits {
			if err := k.config.Store.PutPermit(ctx, agent, p, job.Permit{N: p.N}); err != nil && !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("open the gate of %s: %w", agent, err)
			}
		}
		for _, t := range g.Waiting {
			if err := k.config.Store.Leave(ctx, agent, t); err != nil && !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("open the gate of %s: %w", agent, err)
			}
		}
		k.tell(ctx, agent, g.Waiting)
		if len(g.Waiting) < page {
			return nil
		}
	}
	return nil
}

// pass carries out what a gate lets happen, until that is nothing. The gate is locked.
func (k *Keeper) pass(ctx context.Context, agent string, most int, over func(job.Ticket) bool) error {
	var admitted []job.Ticket
	defer func() { k.tell(ctx, agent, admitted) }()
	for range maxPasses {
		g, err := k.config.Store.Gate(ctx, agent, 1)
		if err != nil {
			return fmt.Errorf("read the gate of %s: %w", agent, err)
		}
		now, after := domain.Instant(k.config.Now()), job.Turns{}
		if len(g.Waiting) > 0 && len(plan(g, most, over, now)) > 0 {
			if g.Waiting[0], after, err = k.next(ctx, agent, g); err != nil {
				return fmt.Errorf("ask for the next at the gate of %s: %w", agent, err)
			}
		}
		moves := plan(g, most, over, now)
		if len(moves) == 0 {
			return nil
		}
		for _, m := range moves {
			m.is.Turns = after
			ok, err := k.carryOut(ctx, agent, m)
			if err != nil {
				return fmt.Errorf("the gate of %s: %w", agent, err)
			}
			if !ok {
				break // Another process came between: plan anew.
			}
			if m.permits() && !m.is.Free() {
				admitted = append(admitted, m.is.Ticket)
			}
		}
	}
	return fmt.Errorf("the gate of %s: %w, %d times", agent, store.ErrConflict, maxPasses)
}

// carryOut carries out a move, and reports whether no other process came between. The ticket leaves first, which one
// process alone brings about: so it gets one permit. If this process dies in between, the job of the ticket looks.
func (k *Keeper) carryOut(ctx context.Context, agent string, m move) (bool, error) {
	if m.leaves != (job.Ticket{}) {
		if err := k.config.Store.Leave(ctx, agent, m.leaves); errors.Is(err, store.ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	if !m.permits() {
		return true, nil
	}
	err := k.config.Store.PutPermit(ctx, agent, m.was, m.is)
	if err == nil {
		return true, nil
	}
	if !m.is.Free() {
		err = errors.Join(err, k.config.Store.Enter(ctx, agent, m.is.Ticket))
	}
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return false, err
}

// tell tells the jobs of attempts that they may begin.
func (k *Keeper) tell(ctx context.Context, agent string, admitted []job.Ticket) {
	messages := make([]queue.Message, 0, len(admitted))
	for _, t := range admitted {
		body, err := wire.EncodeEvent(t.Job, job.Admitted{Step: t.Step, Attempt: t.Attempt})
		if err == nil {
			messages = append(messages, queue.Message{Body: body, Group: t.Job})
		}
	}
	if len(messages) == 0 {
		return
	}
	if err := errors.Join(k.config.Queue.Send(ctx, k.config.Events, messages...)...); err != nil {
		k.config.Logger.WarnContext(ctx, "jobs that may go on look for themselves", "agent", agent, "error", err)
	}
}

// Count counts the attempts that have a permit, and those that wait for one, at most so many.
func (k *Keeper) Count(ctx context.Context, agent string, most int) (underWay, waiting int, err error) {
	g, err := k.config.Store.Gate(ctx, agent, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("read the gate of %s: %w", agent, err)
	}
	waiting, err = k.config.Store.CountWaiting(ctx, agent, most)
	return len(g.Permits), waiting, err
}
