package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// With Options.Breakers most agents have a breaker, and the services behind agents have outages: for a while every call
// fails, or hangs, or is answered with the wish for a pause. breakers.go has the rules.

// breaking has the breakers of a world.
type breaking struct {
	// has are the agents with a breaker. outages are those of the service of each agent.
	has     map[string]bool
	outages map[string][]outage
	// were are the pauses of each agent, as they were stored one after the other.
	were map[string][]pausedAt
	// sick are the jobs of the attempts that have failed so that they may be tried again, in the order of the saves of
	// a process; well is when the latest of those was opened that have succeeded. Both by process and agent.
	sick map[string][]string
	well map[string]time.Time
	// asked are the agents with a service that has asked for a pause.
	asked map[string]bool
	// healing are the pauses, by process and agent, with a probe that the process knows to have succeeded.
	healing map[string]job.Hold
	// judges are the Keepers of functions.
	judges map[*life]*holds.Keeper
	breaks
}

// breaks counts what the breakers of a world did.
// Judged are the trips of functions.
type breaks struct{ Trips, Judged, Probes, Heals, Deferred, Slow int }

// outage is a stretch of time in which the service of an agent does no call as it should.
type outage struct {
	window
	how string
}

// The ways in which a service is down. One that is bad answers each call for good: that is no sickness of the agent.
const (
	refuses = "refuses"
	cracks  = "breaks"
	hangs   = "hangs"
	bad     = "bad"
	slow    = "slow"
)

// rollOutages rolls when the services are down, from generators of their own.
func (w *world) rollOutages(o Options) {
	if !o.Breakers {
		return
	}
	b := &breaking{
		has: map[string]bool{}, outages: map[string][]outage{}, were: map[string][]pausedAt{}, sick: map[string][]string{},
		well: map[string]time.Time{}, asked: map[string]bool{}, healing: map[string]job.Hold{}, judges: map[*life]*holds.Keeper{},
	}
	storm := o.storm()
	for _, name := range agents {
		r := w.chance.of("outages", name)
		b.has[name] = !oneIn(r, 6)
		for range 1 + r.IntN(3) {
			from := w.start.Add(between(r, 5*time.Second, 3*time.Minute))
			to := from.Add(between(r, 10*time.Second, pick(r, time.Minute, 5*time.Minute)))
			how := pick(r, refuses, refuses, cracks, cracks, hangs, bad, slow, slow)
			b.outages[name] = append(b.outages[name], outage{window{from, to}, how})
		}
		if storm {
			from := w.start.Add(between(r, 5*time.Second, 30*time.Second))
			b.has[name], b.outages[name] = true, []outage{{window{from, from.Add(between(r, time.Minute, 5*time.Minute))}, pick(r, refuses, cracks)}}
		}
	}
	w.breaking = b
}

// storm reports whether this is a world of one process with many jobs, and all services are down soon: there a process
// sees enough to trip a breaker.
func (o Options) storm() bool {
	return o.Breakers && oneIn(chance{seed: o.Seed}.of("storm"), 4)
}

// breakers names the agents with a breaker, as the configuration of a Scheduler does.
func (b *breaking) breakers() (names []string) {
	for _, name := range agents {
		if b.has[name] {
			names = append(names, name)
		}
	}
	if len(names) == len(agents) {
		return []string{"*"}
	}
	return names
}

// spread returns how much later a job is submitted, so that some come before an outage, some in it, and some after.
func spread(c chance, id string) time.Duration {
	return between(c.of("spread", id), 0, 3*time.Minute)
}

// breakers start the people that pause an agent and resume it, and a process that trips its breaker for outcomes that
// no other has seen.
func (w *world) breakers(someone func(time.Duration, func(*scheduler.Scheduler, *life) bool)) {
	if w.breaking == nil {
		return
	}
	for _, name := range agents {
		r := w.chance.of("breakers", name)
		if w.breaking.has[name] && oneIn(r, 2) {
			someone(between(r, 5*time.Second, 4*time.Minute), func(_ *scheduler.Scheduler, l *life) bool {
				_, err := w.keeper(l).Trip(context.Background(), name, "another process has seen it")
				return err == nil
			})
		}
		if !oneIn(r, 4) {
			continue
		}
		at := between(r, time.Second, 4*time.Minute)
		someone(at, func(_ *scheduler.Scheduler, l *life) bool {
			_, err := w.keeper(l).Pause(context.Background(), makegood.HoldAgent, name, "sim", "anna")
			return err == nil
		})
		someone(at+between(r, time.Second, 2*time.Minute), func(_ *scheduler.Scheduler, l *life) bool {
			_, err := w.keeper(l).Resume(context.Background(), makegood.HoldAgent, name, "bert")
			return err == nil || errors.Is(err, holds.ErrNotHeld)
		})
	}
}

// down answers a call of a service that is down; nil: it is not.
func (a remote) down(ctx context.Context, task makegood.Task) error {
	if a.w.breaking == nil {
		return nil
	}
	name := on(task.Job, task.Step, task.Attempt)
	r := a.w.chance.of("outage", name)
	a.w.mu.Lock()
	how := a.w.breaking.down(a.agent)
	a.w.mu.Unlock()
	switch how {
	case refuses:
		return agent.NotApplied(errors.New("connection refused"))
	case cracks:
		if oneIn(r, 3) {
			_ = a.w.apply(a.life, task)
		}
		return errors.New("502")
	case hangs:
		return a.hang(ctx, r, task)
	case bad:
		if oneIn(r, 2) {
			return nil
		}
		a.w.saysFinal(task)
		return agent.Final(agent.NotApplied(errors.New("no such card")))
	case slow:
		return a.asksForPause(r, task)
	}
	return nil
}

// down says how the service of an agent is down; empty: it is not. w.mu is held.
func (b *breaking) down(agent string) string {
	for _, o := range b.outages[agent] {
		if o.holds(time.Now()) {
			return o.how
		}
	}
	return ""
}

// asksForPause is the answer of a service that wants no calls for a while.
func (a remote) asksForPause(r *rand.Rand, task makegood.Task) error {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.breaking.asked[a.agent] = true
	a.w.referee(task.Job).AskedForPause(task.Step, task.Attempt)
	return agent.SlowDown(between(r, time.Second, pick(r, 5*time.Second, time.Minute)), agent.NotApplied(errors.New("429")))
}

// judgeOf returns the Keeper of a function, which judges agents by what the process has seen.
func (w *world) judgeOf(l *life) *holds.Keeper {
	k := w.keeper(l)
	if w.breaking != nil {
		w.breaking.judges[l] = k
	}
	return k
}

// judges gives the Scheduler of a function a breaker: no other process has one.
func (l *life) judges(c *scheduler.Config) {
	if l.w.breaking == nil {
		return
	}
	if k := l.w.breaking.judges[l]; k != nil {
		c.Breaker, c.Breakers = k, l.w.breaking.breakers()
	}
}

// begunBy is how an agent hears of pauses.
func (w *world) begunBy(l *life) func(context.Context, makegood.Task) (bool, error) {
	r := holds.NewReader(l, l.now)
	if w.breaking == nil {
		return r.Holds
	}
	return func(ctx context.Context, t makegood.Task) (bool, error) {
		held, err := r.Holds(ctx, t)
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mayBegin(l, t, held)
		}
		return held, err
	}
}

// isFunction reports whether a process is one of the functions that get events, and not that of a person.
func (l *life) isFunction() bool { return strings.HasPrefix(l.name, eventsQueue+"-function") }

func (b breaks) String() string {
	return fmt.Sprintf("%d trips, %d of these by what a function saw, %d probes, %d healed, %d attempts put off, %d pauses that services asked for", b.Trips, b.Judged, b.Probes, b.Heals, b.Deferred, b.Slow)
}

// add adds those of another world.
func (b *breaks) add(of breaks) {
	b.Trips += of.Trips
	b.Judged += of.Judged
	b.Probes += of.Probes
	b.Heals += of.Heals
	b.Deferred += of.Deferred
	b.Slow += of.Slow
}
