package holds

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Pauses without a person: that of the breaker, which lets one job through now and then, until one of these succeeds;
// and that of an agent whose service asked for it, which ends by its time.

// The authors of such pauses.
const (
	byBreaker  = "breaker"
	bySlowDown = "slow down"
)

// Trip pauses an agent whose service is down, and reports whether it was not paused before. If it is paused again while
// its jobs go on, the times between its probes stay as long as they were.
func (k *Keeper) Trip(ctx context.Context, agent, reason string) (tripped bool, err error) {
	_, err = k.change(ctx, makegood.HoldAgent, agent, func(h *job.Hold, all int) error {
		if tripped = h.Name == "" || !h.On(); !tripped {
			return nil
		}
		next := domain.Instant(k.config.Now()).Add(probeIn(h))
		return k.pause(h, all, job.Hold{Kind: makegood.HoldAgent, Name: agent, By: byBreaker, Reason: reason, Tripped: true, Probes: h.Probes, Asked: h.Asked, Next: next})
	})
	return tripped && err == nil, err
}

// Saw takes the outcome of an attempt of an agent that is not paused, with the error if it was sick. If that makes the
// agent ill, it pauses it, and returns why.
func (k *Keeper) Saw(ctx context.Context, agent, id string, sick *job.StepError, at time.Time) (paused string, err error) {
	why := k.judge.Saw(agent, id, sick != nil, at)
	if why == "" {
		return "", nil
	}
	why += ", the last: " + strings.ToValidUTF8(sick.Message, "")
	tripped, err := k.Trip(ctx, agent, why)
	if !tripped {
		return "", err
	}
	k.config.Logger.WarnContext(ctx, "the breaker has paused an agent", "agent", agent)
	return why, nil
}

// Heal takes the outcome of an attempt of an agent that the breaker has paused. It resumes the agent after the success
// of one that was opened meanwhile: a probe.
func (k *Keeper) Heal(ctx context.Context, agent string, sick bool, opened time.Time) error {
	k.judge.Forget(agent) // Another process may have judged it.
	if sick {
		return nil
	}
	_, err := k.change(ctx, makegood.HoldAgent, agent, func(h *job.Hold, _ int) error {
		// A process may have opened one before it knew of the pause.
		if h.Tripped && h.On() && opened.After(h.Since.Add(limits.HoldsFresh)) {
			k.resume(h, byBreaker)
		}
		return nil
	})
	return err
}

// SlowDown pauses an agent until its service wants to be asked again. The pause of a person stays as it is, and that of
// the breaker: its next probe waits as long.
func (k *Keeper) SlowDown(ctx context.Context, agent string, until time.Time, reason string) error {
	until = domain.Instant(until)
	_, err := k.change(ctx, makegood.HoldAgent, agent, func(h *job.Hold, all int) error {
		switch {
		case h.Name == "" || !h.On():
			return k.pause(h, all, job.Hold{Kind: makegood.HoldAgent, Name: agent, By: bySlowDown, Reason: reason, Until: until, Next: until})
		case h.Automatic() && until.Sub(h.Next) >= time.Second: // Many attempts end at once, and say almost the same.
			h.Next = until
			if !h.Tripped {
				h.Until = until
			}
		}
		return nil
	})
	return err
}

// comeDue lets the next job through that the breaker holds, and returns it. With none, and at the end of a pause that
// an agent asked for, the agent is resumed.
func (k *Keeper) comeDue(ctx context.Context, h *job.Hold) (probe []string, err error) {
	if h.Tripped {
		jobs, err := k.config.Store.HeldJobs(ctx, h.String(), limits.ProbeAmong)
		if err != nil {
			return nil, err
		}
		if len(jobs) > 0 {
			i := h.Probes % len(jobs) // Another each time: the data of one may be bad.
			h.Probe, h.Probes = jobs[i], h.Probes+1
			h.Next = domain.Instant(k.config.Now()).Add(probeIn(h))
			return jobs[i : i+1], nil
		}
	}
	k.resume(h, h.By)
	return nil, nil
}

// Probe brings the next probe of an agent that the breaker has paused forward to now; in the first limits.FirstProbe
// to the end of that, since the success of an earlier one would prove nothing. ErrNotHeld, ErrInvalid; after any
// other error the outcome is unknown.
func (k *Keeper) Probe(ctx context.Context, agent string) (job.Hold, error) {
	if err := domain.CheckHold(makegood.HoldAgent, agent); err != nil {
		return job.Hold{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return k.change(ctx, makegood.HoldAgent, agent, func(h *job.Hold, _ int) error {
		if !h.Tripped || !h.On() {
			return fmt.Errorf("agent %s is %w by the breaker", agent, ErrNotHeld)
		}
		next := domain.Instant(k.config.Now())
		if first := h.Since.Add(limits.FirstProbe); next.Before(first) {
			next = first
		}
		if next.Before(h.Next) {
			h.Next, h.Asked = next, h.Asked+1
		}
		return nil
	})
}

// probeIn returns the time until the next probe: it doubles with each, but with those that a person asked for.
func probeIn(h *job.Hold) time.Duration {
	in := limits.FirstProbe
	for own := h.Probes - h.Asked; own > 0 && in < limits.MaxProbe; own-- {
		in *= 2
	}
	return min(in, limits.MaxProbe)
}
