package modelcheck

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/gate"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// The gate of agent a lets one attempt be with it. The shipped Keeper gives out its permit, each call in one move:
// internal/gate tries every order of the writes within the calls.

// maxWaiting is how many tickets may stand before the gate, with those of attempts that are over.
const maxWaiting = 4

// atGate is the gate: its permit and its tickets, by their rank, and the attempts of each step that were told that they
// may begin, a bit each.
type atGate struct {
	permit  ticket
	waiting [maxWaiting]ticket
	told    [maxSteps]uint16
	other   uint8
}

// The other job of a model with a gate: its attempt had the permit first.
const (
	otherOut uint8 = iota + 1
	otherOver
)

// ticket is a job.Ticket; zero: there is none. saves is how many saves of the job are later than its Rev.
type ticket struct {
	step, n, saves uint8
	undo, other    bool
}

const (
	// rev is the Rev of the job as it is stored.
	rev = 10
	// maxSaves is how many later saves are distinguished.
	maxSaves = 3
)

func (t ticket) full() job.Ticket {
	full := job.Ticket{Job: "j", Birth: "birth", Step: stepName(int(t.step)), Attempt: int(t.n), Undo: t.undo, Since: base, Rev: rev - int64(t.saves)}
	if t.other {
		full.Job, full.Since = "i", base.Add(-time.Hour)
	}
	return full
}

func compactTicket(full job.Ticket) (t ticket) {
	if full == (job.Ticket{}) {
		return t
	}
	t = ticket{n: small(full.Attempt), saves: small(int(rev - full.Rev)), undo: full.Undo, other: full.Job == "i"}
	if _, err := fmt.Sscanf(full.Step, "s%d", &t.step); err != nil {
		panic(fmt.Sprintf("modelcheck: a ticket of step %q", full.Step))
	}
	return t
}

// firstGate is the gate when the job is born.
func (m *model) firstGate() (g atGate) {
	if m.config.Gate {
		g.permit, g.other = ticket{n: 1, other: true}, otherOut
	}
	return g
}

// holds are the facts about the limit.
func (m *model) holds() job.Holds {
	if !m.config.Gate {
		return nil
	}
	return job.Holds{{Kind: makegood.HoldLimit, Name: "a", Limit: job.Limit{Most: 1}}}
}

// gated lets the shipped Keeper work on the gate of a state.
func (m *model) gated(s *state, do func(ctx context.Context, k *gate.Keeper) error) {
	ctx, rows := context.Background(), memstore.New()
	broken := rows.PutPermit(ctx, "a", job.Permit{}, permitOf(s.gate.permit))
	for _, t := range s.gate.waiting {
		if t != (ticket{}) && broken == nil {
			broken = rows.Enter(ctx, "a", t.full())
		}
	}
	j := jobsAtGate{m.full(s.job), s.gate.other == otherOut, &s.gate}
	if broken == nil {
		broken = do(ctx, gate.New(gate.Config{Store: rows, Jobs: j, Queue: j, Events: "events", Now: func() time.Time { return base }, Logger: slog.New(slog.DiscardHandler)}))
	}
	after, err := rows.Gate(ctx, "a", maxWaiting+1)
	if broken != nil || err != nil || len(after.Permits) > 1 {
		panic(fmt.Sprintf("modelcheck: the gate %+v is %+v: %v, %v", s.gate, after, broken, err))
	}
	s.gate.permit, s.gate.waiting = ticket{}, [maxWaiting]ticket{}
	for _, p := range after.Permits {
		s.gate.permit = compactTicket(p.Ticket)
	}
	for i, t := range after.Waiting {
		s.gate.waiting[i] = compactTicket(t)
	}
}

func permitOf(t ticket) job.Permit {
	if t == (ticket{}) {
		return job.Permit{}
	}
	return job.Permit{Ticket: t.full(), At: base}
}

// jobsAtGate are the jobs that the Keeper reads, and whom it tells.
type jobsAtGate struct {
	job   job.Job
	other bool
	gate  *atGate
}

// Load reads a job.
func (j jobsAtGate) Load(_ context.Context, id string) (job.Job, error) {
	if id == "j" {
		j.job.Rev = rev
		return j.job, nil
	}
	other := job.Job{ID: "i", Birth: "birth", Rev: rev + 1, Steps: []job.StepState{{Name: "s0", Attempt: 1}}}
	if j.other {
		other.Steps[0].Forward = job.Activity{State: job.Dispatched, Attempt: 1}
	}
	return other, nil
}

// Send notes which attempts are told.
func (j jobsAtGate) Send(_ context.Context, _ string, messages ...queue.Message) []error {
	for _, m := range messages {
		var step, n uint8
		id, event, err := wire.DecodeEvent(m.Body)
		hint, is := event.(job.Admitted)
		if err != nil || !is {
			panic(fmt.Sprintf("modelcheck: the gate sends %q: %v", m.Body, err))
		}
		if _, err := fmt.Sscanf(hint.Step, "s%d", &step); err != nil {
			panic(fmt.Sprintf("modelcheck: a hint to step %q", hint.Step))
		}
		if n = small(hint.Attempt); id == "j" {
			j.gate.told[step] |= 1 << n
		}
	}
	return make([]error, len(messages))
}

// Depth is never asked for.
func (jobsAtGate) Depth(context.Context, string) (queue.Depth, error) { panic("modelcheck: a depth") }

// askGate answers a question about a permit.
func (m *model) askGate(s *state, x *actor, a ask) fact {
	f := fact{ask: a, finding: foundQueued}
	t := ticket{step: a.step, n: a.attempt, undo: a.undo, saves: x.saves}
	if out, _ := x.job.steps[a.step].out(); out != nil && out.attempt == a.attempt {
		t.saves = min(t.saves+out.over, maxSaves)
	}
	m.gated(s, func(ctx context.Context, k *gate.Keeper) error {
		admitted, err := k.Take(ctx, "a", job.Limit{Most: 1}, t.full())
		if admitted {
			f.finding = foundAdmitted
		}
		return err
	})
	return f
}

// leaveBehind adds to what a decision sends the attempts of an agent with a limit that are over behind it: those that
// were out, those that were given a permit and not opened, and those of hints that came too late.
func (m *model) leaveBehind(a *answer, q question) {
	if !m.config.Gate {
		return
	}
	add := func(step, n uint8, undo, waited bool) {
		out, _ := a.job.steps[step].out()
		if n == 0 || out != nil && out.attempt == n || undo && machine.AgentOf(m.w, stepName(int(step)), true) != "a" {
			return
		}
		o := message{kind: sendLeft, step: step, n: n, code: flag(undo) | 2*flag(waited)}
		for k := range a.out {
			if known := a.out[k]; known.kind == sendLeft && known.step == step && known.n == n {
				return
			}
			if a.out[k].kind == sendNone {
				a.out[k] = o
				return
			}
		}
		panic("modelcheck: too much is to be sent")
	}
	for i := range m.w.Steps {
		if out, undo := q.job.steps[i].out(); out != nil {
			add(uint8(i), out.attempt, undo, out.queued)
		}
	}
	for _, f := range q.known {
		if f.kind == askPermit {
			add(f.step, f.attempt, f.undo, true)
		}
	}
	for _, e := range q.evs {
		if e.kind == evAdmitted {
			add(e.step, e.n, false, false)
		}
	}
}

// awaits reports whether a hint tells of a permit for an attempt that was not opened: the job is saved as it is.
func (m *model) awaits(q question, j job.Job) bool {
	return slices.ContainsFunc(q.evs[:], func(e event) bool { return e.kind == evAdmitted && j.Steps[e.step].Attempt < int(e.n) })
}

// leave takes an attempt from the gate that is over.
func (m *model) leave(s *state, i uint8, k int) {
	next := *s
	x := &next.actors[i]
	o := x.out[k]
	x.out[k] = message{}
	t := []job.Ticket{ticket{step: o.step, n: o.n, undo: o.code&1 != 0, saves: x.saves}.full()}
	waited := t
	if o.code&2 == 0 {
		waited = nil
	}
	m.gated(&next, func(ctx context.Context, keeper *gate.Keeper) error {
		return keeper.Left(ctx, "a", job.Limit{Most: 1}, t, waited)
	})
	m.add(action{kind: doSend, actor: i, step: o.step, n: o.n, to: sendLeft}, next, "")
}

// stays reports whether an attempt has a permit or waits for one.
func (g *atGate) stays(step, n uint8) bool {
	is := func(t ticket) bool { return t.n == n && t.step == step && !t.other }
	for _, t := range g.waiting {
		if is(t) {
			return true
		}
	}
	return is(g.permit)
}

// gateMoves are what the Supervisor and other jobs do at the gate, and the hints that it has given.
func (m *model) gateMoves(s *state) {
	if !m.config.Gate {
		return
	}
	next := *s
	m.gated(&next, func(ctx context.Context, k *gate.Keeper) error {
		return k.Look(ctx, "a", job.Limit{Most: 1}, time.Time{})
	})
	if next != *s {
		m.add(action{kind: doLookAtGate}, next, "")
	}
	if s.gate.other == otherOut {
		next := *s
		next.gate.other = otherOver
		m.add(action{kind: doOther}, next, "")
	}
}

// admissions are the hints of the gate.
func (m *model) admissions(take func(e event, fault bool), s *state) {
	for i, told := range s.gate.told {
		for n := range uint8(maxAttempt) {
			if told&(1<<n) != 0 {
				take(event{kind: evAdmitted, step: uint8(i), n: n}, false)
			}
		}
	}
}

// later makes all that was written before a save so much older.
func (m *model) later(s *state) {
	if !m.config.Gate {
		return
	}
	older := func(t *ticket) {
		if t.n != 0 && !t.other {
			t.saves = min(t.saves+1, maxSaves)
		}
	}
	for i := range s.job.steps {
		if out, _ := s.job.steps[i].out(); out != nil && out.queued {
			out.over = min(out.over+1, maxSaves)
		}
	}
	older(&s.gate.permit)
	for i := range s.gate.waiting {
		older(&s.gate.waiting[i])
	}
	for i := range s.actors {
		if x := &s.actors[i]; x.phase == loaded || x.phase == decided || x.phase == sending {
			x.saves = min(x.saves+1, maxSaves)
		}
	}
}

// permitted: each attempt that may be with the agent has the permit.
func (m *model) permitted(s *state) string {
	if !m.config.Gate {
		return ""
	}
	if s.gate.other == otherOut && !s.gate.permit.other {
		return "another job's attempt is with the agent, and has no permit"
	}
	for i := range m.w.Steps {
		out, undo := s.job.steps[i].out()
		if out == nil || out.queued || machine.AgentOf(m.w, stepName(i), undo) != "a" {
			continue
		}
		if p := s.gate.permit; p.other || int(p.step) != i || p.n != out.attempt {
			return fmt.Sprintf("attempt %d of s%d is with the agent, and has no permit", out.attempt, i)
		}
	}
	return ""
}

// leaked reports whether an attempt that is over has a permit, or waits for one.
func (s *state) leaked() bool {
	for _, t := range append(s.gate.waiting[:], s.gate.permit) {
		if t.n == 0 || t.other {
			continue
		}
		if out, _ := s.job.steps[t.step].out(); out == nil || out.attempt != t.n {
			return true
		}
	}
	return s.gate.permit.other && s.gate.other == otherOver
}

func describeGate(a action) string {
	if a.kind == doOther {
		return "the attempt of the other job ends"
	}
	return "a look at the gate"
}
