package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/store"
)

// gates calls do with the gates of an agent: its own, and those of the values of its key, at most so many; more: there
// are others. It begins at a value that the time decides, so that in time looks come to each.
func (k *Keeper) gates(ctx context.Context, agent string, most int, do func(gate string) error) (more bool, err error) {
	err = do(agent)
	first := fmt.Sprintf("%08x", uint32(k.config.Now().UnixMilli())*2654435761) // It spreads the time over the values.
	value, round := first, false
	for n := 0; ctx.Err() == nil; n++ {
		gate, failed := k.config.Store.NextGate(ctx, agent, value)
		if failed == nil && gate == "" && !round {
			round = true
			gate, failed = k.config.Store.NextGate(ctx, agent, "")
		}
		_, value, _ = strings.Cut(gate, "/")
		switch {
		case failed != nil:
			return false, errors.Join(err, fmt.Errorf("find the gates of %s: %w", agent, failed))
		case gate == "" || round && value > first:
			return false, err
		case n == most:
			return true, err
		}
		err = errors.Join(err, do(gate))
	}
	return false, errors.Join(err, context.Cause(ctx))
}

// Look asks the jobs of the permits whether their attempts are over, takes back those of the ones that are, and lets
// the next ones begin. It looks at a permit ever less often; before is the time of the look before this one. Zero: it
// looks at each permit. A permit for a save that has not come may wait for it for ever, if its process has died: the
// job is told, and the Scheduler saves it as it is, so that the awaited save fails and the permit is free. A token that
// was not taken for long is forgotten. It comes to the gates of limits.MaxGatesLook values.
func (k *Keeper) Look(ctx context.Context, agent string, l job.Limit, before time.Time) error {
	_, err := k.gates(ctx, agent, limits.MaxGatesLook, func(gate string) error { return k.look(ctx, gate, l, before) })
	return err
}

// look looks at one gate.
func (k *Keeper) look(ctx context.Context, agent string, l job.Limit, before time.Time) error {
	g, err := k.config.Store.Gate(ctx, agent, 1)
	if err != nil {
		return fmt.Errorf("read the gate of %s: %w", agent, err)
	}
	var ended, awaited []job.Ticket
	for _, p := range g.Permits {
		if p.Token() {
			if err := k.forget(ctx, agent, l, p, len(g.Waiting) > 0); err != nil {
				return fmt.Errorf("look at the gate of %s: %w", agent, err)
			}
			continue
		}
		if !before.IsZero() && !ahead(p, k.config.Now()) && !isDue(before.Sub(p.At), k.config.Now().Sub(p.At), limits.GateLook) {
			continue
		}
		is, awaits, err := k.ended(ctx, p)
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
	k.tell(ctx, agent, 0, awaited...)
	unlock, err := k.lock(ctx, agent)
	if err != nil {
		return err
	}
	defer unlock()
	// A ticket that was renewed since is of a save that may have opened the attempt.
	return k.pass(ctx, agent, l, func(t job.Ticket) bool { return slices.Contains(ended, t) }, always)
}

// forget tells an attempt that keeps its token for a look or longer again. Else it frees that, unless others wait: it
// may have the last turns.
func (k *Keeper) forget(ctx context.Context, agent string, l job.Limit, p job.Permit, waits bool) error {
	long := limits.GateLook
	if l.Rate > 0 {
		long = max(long, l.Cools())
	}
	if now := k.config.Now(); now.Sub(p.At) < long && !ahead(p, now) {
		return nil
	}
	if p.Told {
		is, _, err := k.ended(ctx, p)
		if err != nil {
			return err
		}
		if !is {
			k.tell(ctx, agent, 0, p.Ticket)
			return nil
		}
	}
	if waits {
		return nil
	}
	if err := k.config.Store.PutPermit(ctx, agent, p, job.Permit{N: p.N}); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil
}

// ended asks the job of a permit whether its attempt is over, or that of a token whether it does not stand before the
// gate. The save that opens it may still come, and is awaited, while the job has the Rev of the ticket.
func (k *Keeper) ended(ctx context.Context, p job.Permit) (is, awaited bool, err error) {
	t, stands := p.Ticket, machine.Stands
	if p.Token() {
		stands = machine.Queued
	}
	j, err := k.config.Jobs.Load(ctx, t.Job)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return true, false, nil
	case errors.Is(err, store.ErrNewer), errors.Is(err, store.ErrDamaged):
		return p.Token(), false, nil // A person or a later release sees to the job first.
	case err != nil:
		return false, false, err
	}
	opened := stands(j, t)
	is = j.Birth != t.Birth || j.Rev > t.Rev && !opened
	return is, !is && !opened, nil
}

// Open lets all go that wait at the gates of an agent, which are no more. Those that it misses look for themselves.
func (k *Keeper) Open(ctx context.Context, agent string) error {
	_, err := k.gates(ctx, agent, all, func(gate string) error { return k.open(ctx, gate) })
	return err
}

// open opens one gate, however many wait there.
func (k *Keeper) open(ctx context.Context, agent string) error {
	for {
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
		k.tell(ctx, agent, 0, g.Waiting...)
		if len(g.Waiting) < page {
			return nil
		}
	}
}

// Stand returns the permits of attempts, and counts those that wait for one, at most so many, at the gates of
// limits.MaxGatesLook values. more: there may be others.
func (k *Keeper) Stand(ctx context.Context, agent string, most int) (permits []job.Permit, waiting int, more bool, err error) {
	more, err = k.gates(ctx, agent, limits.MaxGatesLook, func(gate string) error {
		g, err := k.config.Store.Gate(ctx, gate, 0)
		if err != nil {
			return fmt.Errorf("read the gate of %s: %w", gate, err)
		}
		its, _ := apart(g)
		n, err := k.config.Store.CountWaiting(ctx, gate, most-waiting)
		permits, waiting = append(permits, its...), waiting+n
		return err
	})
	return permits, waiting, more || waiting == most, err
}
