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
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// maxPasses is how often a gate is read again because others came between, or more may happen.
	maxPasses = 200
	// page is how many tickets are read at once.
	page = 25
	// all are any number of gates.
	all = -1
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
	// busy has a lock for each gate to which goroutines of this process have come, so that they do not compete for its
	// items.
	busy map[string]*lock
}

// lock is that of a gate, and how many goroutines have come to it.
type lock struct {
	free chan struct{}
	came int
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
	return &Keeper{config: c, busy: map[string]*lock{}}
}

// lock locks a gate, unless ctx ends before that, and returns what unlocks it.
func (k *Keeper) lock(ctx context.Context, agent string) (unlock func(), err error) {
	k.mu.Lock()
	busy := k.busy[agent]
	if busy == nil {
		busy = &lock{free: make(chan struct{}, 1)}
		k.busy[agent] = busy
	}
	busy.came++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if busy.came--; busy.came == 0 {
			delete(k.busy, agent)
		}
	}
	if ctx.Err() == nil {
		select {
		case busy.free <- struct{}{}:
			return func() { <-busy.free; leave() }, nil
		case <-ctx.Done():
		}
	}
	leave()
	return nil, fmt.Errorf("come to the gate of %s: %w", agent, context.Cause(ctx))
}

// Take reports whether the attempt of a ticket may go: it has the permit and the token that the limit asks for. It gets
// them if they are free and no other waits for them, and else waits. It keeps the permit until it is over. The Rev of
// the ticket is that of the job over which the attempt was opened, or is to be by the save that follows. After an error
// the attempt may have them.
func (k *Keeper) Take(ctx context.Context, agent string, l job.Limit, t job.Ticket) (bool, error) {
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
		m, ok, err := k.takes(ctx, g, l, t)
		switch {
		case err != nil:
			return false, fmt.Errorf("the gate of %s: %w", agent, err)
		case !ok && entered:
			return false, nil
		case !ok:
			if err := k.config.Store.Enter(ctx, agent, t); err != nil {
				return false, fmt.Errorf("wait at the gate of %s: %w", agent, err)
			}
			// It may have become free since it was read.
			entered = true
			if err := k.pass(ctx, agent, l, over(nil), t.Same); err != nil {
				return false, err
			}
			continue
		case m == move{}:
			return true, nil
		}
		if ok, err := k.carryOut(ctx, agent, m); err != nil {
			return false, fmt.Errorf("take a permit of %s: %w", agent, err)
		} else if !ok {
			continue
		}
		if len(g.Waiting) > 0 && m.token != (change{}) { // It was late, and the next may have its token.
			if err := k.pass(ctx, agent, l, over(nil), always); err != nil {
				k.config.Logger.WarnContext(ctx, "the next at a gate wait for a look", "agent", agent, "error", err)
			}
		}
		return true, nil
	}
	return false, fmt.Errorf("the gate of %s: %w, %d times", agent, store.ErrConflict, maxPasses)
}

// takes returns the changes that give an attempt its permit and its token: none, where the attempt has both already.
func (k *Keeper) takes(ctx context.Context, g store.Gate, l job.Limit, t job.Ticket) (m move, ok bool, err error) {
	now := domain.Instant(k.config.Now())
	permits, tokens := apart(g)
	permit, token := needs(l, permits, tokens, t)
	if (permit || token) && len(g.Waiting) > 0 { // Even if it is the first: pass knows the turns.
		return m, false, nil
	}
	if permit {
		n, ok := free(permits, l.Most)
		if !ok {
			return m, false, nil
		}
		m.permit = give(job.Permit{N: n}, t, now)
	} else if i := of(permits, t); i >= 0 && permits[i].Ticket.Rev < t.Rev {
		// A look at the gate, or a process with an older state, must not take it for one of a save that has failed.
		m.permit = change{permits[i], permits[i]}
		m.permit.is.Ticket.Rev = t.Rev
	}
	if token {
		cooled, err := k.cooled(ctx, g, l, 1, now)
		if err != nil || len(cooled) == 0 {
			return m, false, err
		}
		m.token = give(cooled[0], t, now)
	} else if i := of(tokens, t); i >= 0 && len(g.Waiting) > 0 && tokens[i].Told && isCool(tokens[i], l, now) {
		m.token = change{tokens[i], tokens[i]} // It came late, and others wait for it.
		m.token.is.Told = false
	}
	if m.permit.was == m.permit.is && m.token.was == m.token.is {
		m = move{}
	}
	return m, true, nil
}

// cooled returns the tokens that may be taken, at most so many: those that no attempt has taken, and then those that
// have cooled, the oldest first. An attempt that was told of its token, and that its job still has before the gate,
// keeps it: else no slow hint would ever find one.
func (k *Keeper) cooled(ctx context.Context, g store.Gate, l job.Limit, most int, now time.Time) (all []job.Permit, err error) {
	_, tokens := apart(g)
	for n := job.FirstToken; n < job.FirstToken+l.Burst && len(all) < most; n++ {
		if !slices.ContainsFunc(tokens, func(p job.Permit) bool { return p.N == n }) {
			all = append(all, job.Permit{N: n})
		}
	}
	slices.SortStableFunc(tokens, func(a, b job.Permit) int { return a.At.Compare(b.At) })
	asked := 0
	for _, p := range tokens {
		if len(all) >= most || asked >= page {
			break
		}
		if !isCool(p, l, now) {
			continue
		}
		if p.Told {
			asked++
			if is, _, err := k.ended(ctx, p); err != nil {
				return nil, err
			} else if !is {
				continue
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// isCool reports whether a token may be taken again.
func isCool(p job.Permit, l job.Limit, now time.Time) bool {
	return p.N < job.FirstToken+l.Burst && (!now.Before(p.At.Add(l.Cools())) || ahead(p, now))
}

// ahead reports whether the clock by which a permit was given was wrong: clocks agree to limits.GateLook. Its time does
// not count then.
func ahead(p job.Permit, now time.Time) bool { return p.At.Sub(now) > limits.GateLook }

// always wakes any next ticket.
func always(job.Ticket) bool { return true }

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
func (k *Keeper) Left(ctx context.Context, agent string, l job.Limit, ended, waited []job.Ticket) error {
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
	return k.pass(ctx, agent, l, over(ended), func(job.Ticket) bool { return len(waited) > 0 })
}

// pass carries out what a gate lets happen, until that is nothing. If there was anything, or wakes reports true of the
// next ticket, it wakes that. The gate is locked.
func (k *Keeper) pass(ctx context.Context, agent string, l job.Limit, over, wakes func(job.Ticket) bool) error {
	var admitted []job.Ticket
	defer func() { k.tell(ctx, agent, 0, admitted...) }()
	moved := false
	for range maxPasses {
		g, err := k.config.Store.Gate(ctx, agent, 1)
		if err != nil {
			return fmt.Errorf("read the gate of %s: %w", agent, err)
		}
		now, after := domain.Instant(k.config.Now()), job.Turns{}
		cooled, err := k.cooled(ctx, g, l, len(g.Waiting), now)
		if err != nil {
			return fmt.Errorf("the gate of %s: %w", agent, err)
		}
		moves := plan(g, l, cooled, over, now)
		if len(g.Waiting) > 0 && (len(moves) > 0 || l.Rate > 0) {
			if g.Waiting[0], after, err = k.next(ctx, agent, g); err != nil {
				return fmt.Errorf("ask for the next at the gate of %s: %w", agent, err)
			}
			moves = plan(g, l, cooled, over, now)
		}
		if len(moves) == 0 {
			if len(g.Waiting) > 0 && (moved || wakes(g.Waiting[0])) {
				k.wake(ctx, agent, l, g, now)
			}
			return nil
		}
		moved = true // One that fails may have made another the next for a while.
		for _, m := range moves {
			for _, c := range []*change{&m.permit, &m.token} {
				if c.was != c.is {
					c.is.Turns = after
				}
			}
			ok, err := k.carryOut(ctx, agent, m)
			if err != nil {
				return fmt.Errorf("the gate of %s: %w", agent, err)
			}
			if !ok {
				break // Another process came between: plan anew.
			}
			if m.admits() {
				admitted = append(admitted, m.leaves)
			}
		}
	}
	return fmt.Errorf("the gate of %s: %w, %d times", agent, store.ErrConflict, maxPasses)
}

// wake has the job of the next ticket come when the next token has cooled, if that is what the ticket waits for.
func (k *Keeper) wake(ctx context.Context, agent string, l job.Limit, g store.Gate, now time.Time) {
	permits, tokens := apart(g)
	permit, token := needs(l, permits, tokens, g.Waiting[0])
	if _, ok := free(permits, l.Most); !token || permit && !ok {
		return
	}
	var next time.Time
	for _, p := range tokens {
		at := p.At.Add(l.Cools())
		if p.N < job.FirstToken+l.Burst && at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() { // All are kept by attempts that were told.
		next = now.Add(max(l.Cools(), time.Second))
	}
	k.tell(ctx, agent, min(max(0, next.Sub(k.config.Now())), queue.MaxDelay), g.Waiting[0])
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
	for _, c := range []change{m.token, m.permit} {
		if c.was == c.is {
			continue
		}
		err := k.config.Store.PutPermit(ctx, agent, c.was, c.is)
		if err == nil {
			continue
		}
		if m.leaves != (job.Ticket{}) {
			err = errors.Join(err, k.config.Store.Enter(ctx, agent, m.leaves))
		}
		if errors.Is(err, store.ErrConflict) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// tell tells the jobs of attempts, after so long, that they may begin.
func (k *Keeper) tell(ctx context.Context, agent string, after time.Duration, all ...job.Ticket) {
	messages := make([]queue.Message, 0, len(all))
	for _, t := range all {
		body, err := wire.EncodeEvent(t.Job, job.Admitted{Step: t.Step, Attempt: t.Attempt})
		if err == nil {
			messages = append(messages, queue.Message{Body: body, Group: t.Job, Delay: after})
		}
	}
	if len(messages) == 0 {
		return
	}
	if err := errors.Join(k.config.Queue.Send(ctx, k.config.Events, messages...)...); err != nil {
		k.config.Logger.WarnContext(ctx, "jobs that may go on look for themselves", "agent", agent, "error", err)
	}
}
