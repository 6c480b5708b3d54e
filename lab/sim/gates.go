package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/gate"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Gates = (*life)(nil)

// With Options.Limits some agents have a limit: so many attempts may be with them at once, or begin in a time, or both.
// People set it at the start or later, change it, and take it away.

// limiting is what a world knows of its limits.
type limiting struct {
	// set are the limits of each agent, as they were stored one after the other.
	set map[string][]limit
	// under is the limit by which each attempt was given its permit, and given is when, by its name.
	under map[string]int
	given map[string]time.Time
	// at is the gate at which each has it.
	at map[string]string
	// keys: limits may have keys.
	keys bool
	// taken are the tokens that were taken by each limit of an agent.
	taken map[rated][]job.Permit
	// free are the attempts that no limit counts: they were sent by a process that did not know of any, or lost their
	// permit to the person that took the limit away; and those with a token alone.
	free map[string]bool
	// queued counts the attempts that stood before a gate.
	queued map[string]bool
	// tokens counts the tokens that were taken.
	tokens int
}

// limit is one that was stored, the zero value where it was taken away.
type limit struct {
	at time.Time
	is job.Limit
}

// rated is a limit of an agent.
type rated struct {
	agent string
	job.Limit
}

// drawLimit returns a limit, of a rate or with one in some cases.
func drawLimit(r *rand.Rand, most int) makegood.Limit {
	l := makegood.Limit{Concurrency: most}
	if most == 0 || !oneIn(r, 3) {
		return l
	}
	if l.Rate, l.Burst = []string{"2/s", "20/m", "5/s"}[r.IntN(3)], 1+r.IntN(3); oneIn(r, 2) {
		l.Concurrency = 0
	}
	return l
}

// keyed gives a limit a key, in some worlds and cases.
func (w *world) keyed(agent string, n int, l makegood.Limit) makegood.Limit {
	if r := w.chance.of("key", agent, strconv.Itoa(n)); w.limits.keys && l != (makegood.Limit{}) && !oneIn(r, 3) {
		l.Key = []string{"${ .input.n % 2 }", "${ .input.n }", "${ [.input.none, .input.n % 3] }"}[r.IntN(3)]
	}
	return l
}

// ruledBy are the limits that a process was told of since its batch came: for each agent, whether it was told of none.
type ruledBy map[string]bool

// asking is a call: its name, its object, and the limits that its process had been told of by then. It may arrive when
// the process is at another batch.
type asking struct {
	op, on string
	ruled  ruledBy
}

// knows returns the limits that the batch of the process was told of. More may be added later.
func (l *life) knows() ruledBy {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.ruled
}

// limiters set the first limits, and start the people that change them.
func (w *world) limiters(someone func(time.Duration, func(*scheduler.Scheduler, *life) bool)) {
	if w.limits == nil {
		return
	}
	for _, agent := range agents {
		r := w.chance.of("limiter", agent)
		first := oneIn(r, 4)
		switch {
		case first:
			at := between(r, time.Second, time.Minute)
			someone(at, w.limiter(agent, w.keyed(agent, 0, drawLimit(r, 1+r.IntN(3)))))
		case !oneIn(r, 3):
			w.limitNow(agent, w.keyed(agent, 0, drawLimit(r, 1+r.IntN(3))))
		}
		n := 0
		for at := between(r, time.Second, 4*time.Minute); oneIn(r, 2); at += between(r, time.Second, 3*time.Minute) {
			n++
			someone(at, w.limiter(agent, w.keyed(agent, n, drawLimit(r, r.IntN(4)))))
		}
	}
}

// limiter is a person that sets a limit, or takes it away.
func (w *world) limiter(agent string, to makegood.Limit) func(*scheduler.Scheduler, *life) bool {
	return func(_ *scheduler.Scheduler, l *life) bool {
		_, err := w.keeper(l).Limit(context.Background(), agent, to, "sim", "carl")
		return err == nil || errors.Is(err, holds.ErrNoLimit)
	}
}

// limitNow sets a limit before anything else happens.
func (w *world) limitNow(agent string, to makegood.Limit) {
	l := &life{w: w, name: "limiter"}
	k := gate.New(gate.Config{Store: w.store, Jobs: w.store, Queue: l, Events: eventsQueue, Logger: quiet})
	c := holds.Config{Store: w.store, Queue: l, Events: eventsQueue, Agents: agents, Gates: k, Logger: quiet}
	h, err := holds.New(c).Limit(context.Background(), agent, to, "sim", "carl")
	if err != nil {
		panic(fmt.Sprintf("memory never fails: %v", err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limited(store.Held{Holds: job.Holds{h}}, agent)
}

// limited notes the limits of agents as they are stored. w.mu is held.
func (w *world) limited(h store.Held, of ...string) {
	if w.limits == nil {
		return
	}
	for _, agent := range of {
		l, on := h.Holds.Limit(agent)
		all := w.limits.set[agent]
		if n := len(all); n == 0 && on || n > 0 && all[n-1].is != l {
			w.limits.set[agent] = append(all, limit{time.Now(), l})
		}
	}
}

// knowing is how a process hears of pauses and limits.
type knowing struct {
	*holds.Reader
	l *life
}

// Now is what holds.Reader says: of limits.HoldsFresh ago at most.
func (k knowing) Now(ctx context.Context) (job.Holds, error) {
	all, err := k.Reader.Now(ctx)
	return k.hears(all, err, limits.HoldsFresh)
}

// Surely is what holds.Reader says: of now.
func (k knowing) Surely(ctx context.Context) (job.Holds, error) {
	all, err := k.Reader.Surely(ctx)
	return k.hears(all, err, 0)
}

// hears: GATE-3, a process knows the limits as they were a moment ago.
func (k knowing) hears(all job.Holds, err error, age time.Duration) (job.Holds, error) {
	w := k.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.hearsPauses(k.l, all, age)
	}
	if w.limits == nil || err != nil {
		return all, err
	}
	for _, agent := range agents {
		known, is := all.Limit(agent)
		k.l.ruled[agent] = k.l.ruled[agent] || !is
		if w.exact && !w.limits.stood(agent, known, time.Now().Add(-age)) {
			w.violate("", "GATE-3: %s knows %+v as the limit of %s, which it was not since %s ago", k.l.name, known, agent, age)
		}
	}
	return all, nil
}

// stood reports whether an agent had this limit at some time since.
func (m *limiting) stood(agent string, known job.Limit, since time.Time) bool {
	last := job.Limit{}
	for _, one := range m.set[agent] {
		if last == known && one.at.After(since) {
			return true
		}
		last = one.is
	}
	return last == known
}

// gates is the gate of a process, which notes by which limit a permit is given.
type gates struct {
	*gate.Keeper
	l *life
}

// ruling is the key of a context for the limit by which permits are given; without one the gate is opened.
type ruling struct{}

// gatesOf returns that of a process.
func gatesOf(l *life) gates {
	return gates{gate.New(gate.Config{Store: l, Jobs: passerby{l}, Queue: l, Events: eventsQueue, Now: l.now, Logger: quiet}), l}
}

// Take is what gate.Keeper says. Several attempts of a process come at one moment, and in an order that no seed knows.
func (g gates) Take(ctx context.Context, agent string, by job.Limit, t job.Ticket) (bool, error) {
	came := g.l.calling("take", on(t.Job, t.Step, t.Attempt))
	if err := wait(ctx, between(g.l.w.chance.of("call", came), 0, time.Millisecond)); err != nil {
		g.l.alive()
		return false, err
	}
	return g.Keeper.Take(context.WithValue(ctx, ruling{}, by), agent, by, t)
}

// Left is what gate.Keeper says.
func (g gates) Left(ctx context.Context, agent string, by job.Limit, ended, waited []job.Ticket) error {
	return g.Keeper.Left(context.WithValue(ctx, ruling{}, by), agent, by, ended, waited)
}

// Look is what gate.Keeper says.
func (g gates) Look(ctx context.Context, agent string, by job.Limit, before time.Time) error {
	return g.Keeper.Look(context.WithValue(ctx, ruling{}, by), agent, by, before)
}

// passerby reads jobs for the gate: a process does not decide by one that it sees so.
type passerby struct{ l *life }

// Load is what store.Jobs says, in a world.
func (p passerby) Load(ctx context.Context, id string) (job.Job, error) {
	return ask(ctx, p.l, "pass", id, func() (job.Job, error) {
		j, err := p.l.w.store.Load(ctx, id)
		if err == nil {
			j, err = p.l.reads(j)
		}
		return j, err
	})
}

// Gate is what store.Gates says, in a world.
func (l *life) Gate(ctx context.Context, agent string, most int) (store.Gate, error) {
	return ask(ctx, l, "gate", agent, func() (store.Gate, error) {
		l.atGate = time.Now()
		return l.w.store.Gate(ctx, agent, most)
	})
}

// PutPermit is what store.Gates says, in a world.
func (l *life) PutPermit(ctx context.Context, agent string, was, is job.Permit) error {
	return l.call(ctx, "permit", agent+" "+strconv.Itoa(was.N), func() error {
		err := l.w.store.PutPermit(ctx, agent, was, is)
		if by, ruled := ctx.Value(ruling{}).(job.Limit); err == nil && ruled {
			l.w.permitted(l, agent, by, is)
		} else if err == nil {
			l.w.limits.free[nameOf(was.Ticket)] = true
			// The limit was taken away, its tokens with it, and processes may know it for some seconds still.
			maps.DeleteFunc(l.w.limits.taken, func(of rated, _ []job.Permit) bool { return of.agent == agent })
		}
		return err
	})
}

// Enter is what store.Gates says, in a world.
func (l *life) Enter(ctx context.Context, agent string, t job.Ticket) error {
	return l.call(ctx, "enter", agent+" "+t.Rank(), func() error { return l.w.store.Enter(ctx, agent, t) })
}

// Leave is what store.Gates says, in a world.
func (l *life) Leave(ctx context.Context, agent string, t job.Ticket) error {
	return l.call(ctx, "leave", agent+" "+t.Rank(), func() error { return l.w.store.Leave(ctx, agent, t) })
}

// Behind is what store.Gates says, in a world.
func (l *life) Behind(ctx context.Context, agent, rank string) (job.Ticket, error) {
	return ask(ctx, l, "behind", agent, func() (job.Ticket, error) { return l.w.store.Behind(ctx, agent, rank) })
}

// CountWaiting is what store.Gates says, in a world.
func (l *life) CountWaiting(ctx context.Context, agent string, most int) (int, error) {
	return ask(ctx, l, "waiting", agent, func() (int, error) { return l.w.store.CountWaiting(ctx, agent, most) })
}

// NextGate is what store.Gates says, in a world.
func (l *life) NextGate(ctx context.Context, agent, value string) (string, error) {
	return ask(ctx, l, "next", agent, func() (string, error) { return l.w.store.NextGate(ctx, agent, value) })
}

func nameOf(t job.Ticket) string { return on(t.Job, t.Step, t.Attempt) }

// permitted: GATE-1, the process that gives a permit has seen that there are fewer than the limit. Those of attempts
// that are over do not count, nor those that others have given since by a higher limit. w.mu is held.
func (w *world) permitted(l *life, agent string, by job.Limit, is job.Permit) {
	switch {
	case is.Free():
		return
	case is.Token():
		w.admitted(agent, by, is)
		return
	}
	m, name := w.limits, nameOf(is.Ticket)
	delete(m.free, name)
	m.under[name], m.given[name], m.at[name] = max(m.under[name], by.Most), time.Now(), agent
	g, _ := w.store.Gate(context.Background(), agent, 0) // memory never fails
	n := 0
	for _, p := range g.Permits {
		j, _ := w.store.Stored(p.Ticket.Job)
		over := p.Token() || j.Rev > p.Ticket.Rev && !machine.Stands(j, p.Ticket)
		if of := nameOf(p.Ticket); !over && (m.under[of] <= by.Most || m.given[of].Before(l.atGate)) {
			n++
		}
	}
	if n > by.Most && !w.late {
		w.violate(is.Ticket.Job, "GATE-1: %s gives %s a permit of agent %s by a limit of %d, and there are %+v", l.name, name, agent, by.Most, g.Permits)
	}
}

// admitted: GATE-5, by a limit no more attempts are admitted in the time that a token takes to cool than its burst. One
// with a token alone is not counted as with the agent. w.mu is held.
func (w *world) admitted(agent string, by job.Limit, is job.Permit) {
	m := w.limits
	if by.Most == 0 {
		m.free[nameOf(is.Ticket)] = true
	}
	of := rated{agent, by}
	if slices.ContainsFunc(m.taken[of], func(p job.Permit) bool { return p.Ticket.Same(is.Ticket) && p.At.Equal(is.At) }) {
		return // It is late, or was written twice.
	}
	m.taken[of] = append(m.taken[of], is)
	m.tokens++
	for _, from := range m.taken[of] {
		n := 0
		for _, p := range m.taken[of] {
			if after := p.At.Sub(from.At); after >= 0 && after < by.Cools() {
				n++
			}
		}
		if n > by.Burst {
			w.violate(is.Ticket.Job, "GATE-5: %s takes a token of agent %s by %+v, and from %v on there are %d of %+v", nameOf(is.Ticket), agent, by, from.At, n, m.taken[of])
		}
	}
}

// gateRules: what a save sends has a permit, and there are no more of those than an agent may have. w.mu is held.
func (c change) gateRules() {
	if c.limits == nil {
		return
	}
	for _, s := range c.after.Steps {
		was, _ := c.before.Step(s.Name)
		for undo, a := range directions(s) {
			if a.State != job.Dispatched {
				continue
			}
			b, name := activity(was, undo), on(c.after.ID, s.Name, a.Attempt)
			same := b.State == job.Dispatched && b.Attempt == a.Attempt
			agent := machine.AgentOf(c.w, s.Name, undo)
			switch {
			case a.Queued && same && !b.Queued:
				c.wrong("GATE-2: attempt %d of %s was sent, and stands before its gate again", a.Attempt, s.Name)
			case a.Queued && !domain.GetsTasks(agent):
				c.wrong("GATE-2: attempt %d of %s stands before the gate of %s, which gets no tasks", a.Attempt, s.Name, agent)
			case a.Queued:
				c.limits.queued[name] = true
			case domain.GetsTasks(agent) && (!same || b.Queued):
				c.sends(agent, name)
			}
		}
	}
}

// sends: GATE-1, an attempt that is sent has a permit, and no more are out than the highest limit by which one of them
// was sent. Those that a process sends that knew no limit are not counted.
func (c change) sends(agent, name string) {
	if c.writer == nil || c.ruled[agent] || len(c.limits.set[agent]) == 0 {
		c.limits.free[name] = true
	}
	if c.limits.free[name] {
		return
	}
	gate := cmp.Or(c.limits.at[name], agent)
	g, _ := c.store.Gate(context.Background(), gate, 0) // memory never fails
	i := slices.IndexFunc(g.Permits, func(p job.Permit) bool { return nameOf(p.Ticket) == name })
	if i >= 0 && g.Permits[i].Token() && slices.ContainsFunc(c.limits.set[agent], func(l limit) bool { return l.is.Rate > 0 && l.is.Most == 0 }) {
		c.limits.free[name] = true // It took the token by another limit, and got no permit with it.
		return
	}
	if i < 0 {
		c.wrong("GATE-1: %s is sent to agent %s without a permit; those are %+v", name, gate, g.Permits)
	}
	out, highest := c.outAt(agent, gate)
	if len(out) > highest {
		c.wrong("GATE-1: with agent %s are %v, and the highest limit that a process knew was %d", gate, out, highest)
	}
}

// outAt returns the attempts that are with an agent by a gate of it, and counted, and the highest limit by which one of
// them was sent. The job that is written now counts as it is then.
func (c change) outAt(agent, gate string) (out []string, highest int) {
	for _, j := range c.store.All() {
		if j.ID == c.after.ID {
			j = c.after
		}
		of := c.definition(j.Definition)
		for _, s := range j.Steps {
			for undo, a := range directions(s) {
				name := on(j.ID, s.Name, a.Attempt)
				if a.State == job.Dispatched && !a.Queued && !c.limits.free[name] && cmp.Or(c.limits.at[name], agent) == gate && machine.AgentOf(of, s.Name, undo) == agent {
					out, highest = append(out, name), max(highest, c.limits.under[name])
				}
			}
		}
	}
	return out, highest
}

// gated: GATE-2, the task of an attempt that stands before its gate is not sent, and no agent does it. w.mu is held.
func (w *world) gated(task makegood.Task, what string) {
	j, _ := w.store.Stored(task.Job)
	s, _ := j.Step(task.Step)
	for _, a := range directions(s) {
		if a.State == job.Dispatched && a.Attempt == task.Attempt && a.Queued {
			w.violate(task.Job, "GATE-2: %s %s, and stands before its gate", on(task.Job, task.Step, task.Attempt), what)
		}
	}
}

// closesGated: GATE-2, an attempt that stands before its gate is not closed: its task may be sent yet. w.mu is held.
func (w *world) closesGated(j job.Job, step string, attempt int) {
	s, _ := j.Step(step)
	for _, a := range directions(s) {
		if a.State == job.Dispatched && a.Attempt == attempt && a.Queued {
			w.violate(j.ID, "GATE-2: %s is closed, and stands before its gate", on(j.ID, step, attempt))
		}
	}
}

// mayEmptyIn is how often the gates are looked at in the end.
const mayEmptyIn = 100

// gatesEmpty: GATE-4, when all jobs have ended, no permit and no ticket is left that looks do not take away.
func (w *world) gatesEmpty() {
	if w.limits == nil {
		return
	}
	for _, agent := range agents {
		for n := 0; ; n++ {
			g, _ := w.store.Gate(context.Background(), agent, 1) // memory never fails
			of, _ := w.store.NextGate(context.Background(), agent, "")
			if len(g.Permits)+len(g.Waiting) == 0 && of == "" {
				break
			}
			if n == mayEmptyIn {
				w.mu.Lock()
				w.violate("", "GATE-4: all jobs have ended, and at the gate of %s are %+v; there is a gate %q", agent, g, of)
				w.mu.Unlock()
				break
			}
			time.Sleep(limits.GateLook) // A token stays for so long.
			<-w.process("operator", func(l *life) {
				_ = l.gate.Look(context.Background(), agent, job.Limit{Most: limits.MaxPermits}, time.Time{})
			})
		}
	}
}
