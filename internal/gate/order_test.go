package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store/memstore"
)

// line is a gate to which attempts come, and from which they go, while its time is that of the test.
type line struct {
	*testing.T
	*Keeper
	store *memstore.Store
	most  int
	now   time.Time
	// with are the tickets of the attempts that are with the agent, in the order in which they were let in.
	with []job.Ticket
}

func newLine(t *testing.T, most int) *line {
	l := &line{T: t, store: memstore.New(), most: most, now: time.UnixMilli(1).Add(time.Hour)}
	l.Keeper = New(Config{Store: l.store, Jobs: &process{}, Queue: &process{}, Events: "events", Now: func() time.Time { return l.now }})
	return l
}

// come lets the attempt of a job come to the gate.
func (l *line) come(t job.Ticket) {
	l.Helper()
	t = l.ticket(t)
	if _, err := l.Take(l.Context(), "a", job.Limit{Most: l.most}, t); err != nil {
		l.Fatal(err)
	}
	l.see()
}

func (l *line) ticket(t job.Ticket) job.Ticket {
	t.Birth, t.Step, t.Attempt, t.Since, t.Rev = "b", "s", 1, l.now, 1
	return t
}

// waits puts attempts in the queue of a gate with no permit left: quicker than to let each come.
func (l *line) waits(n int, t job.Ticket) {
	l.Helper()
	for i := range n {
		t.Job = fmt.Sprintf("%s-%05d", t.Tenant, i)
		if err := l.store.Enter(l.Context(), "a", l.ticket(t)); err != nil {
			l.Fatal(err)
		}
	}
}

// end ends the attempt that is with the agent for longest.
func (l *line) end() {
	l.Helper()
	over := l.with[0]
	l.with = l.with[1:]
	over.Rev++
	if err := l.Left(l.Context(), "a", job.Limit{Most: l.most}, []job.Ticket{over}, nil); err != nil {
		l.Fatal(err)
	}
	l.see()
}

// see notes the attempts that were let in.
func (l *line) see() {
	l.Helper()
	g, err := l.store.Gate(l.Context(), "a", 0)
	if err != nil || len(g.Permits) > l.most {
		l.Fatalf("%d permits, limit %d, %v", len(g.Permits), l.most, err)
	}
	for _, p := range g.Permits {
		if !slices.ContainsFunc(l.with, p.Ticket.Same) {
			l.with = append(l.with, p.Ticket)
		}
	}
}

// An idle job is let in though urgent ones come faster than attempts end: after twenty minutes it takes turns with
// them. One of normal priority does after ten.
func TestAJobRisesAClassEveryTenMinutes(t *testing.T) {
	l := newLine(t, 1)
	l.come(job.Ticket{Job: "first"})
	l.come(job.Ticket{Job: "idle", Priority: makegood.PriorityIdle})
	l.come(job.Ticket{Job: "normal"})
	l.come(job.Ticket{Job: "undo", Priority: makegood.PriorityIdle, Undo: true})
	began, want := l.now, map[string]time.Duration{"undo": 0, "normal": 10 * time.Minute, "idle": 20 * time.Minute}
	for minute := range 90 {
		for i := range 2 {
			l.come(job.Ticket{Job: fmt.Sprintf("urgent-%d-%d", minute, i), Priority: makegood.PriorityUrgent})
		}
		l.end()
		in := l.with[0]
		if after, is := want[in.Job]; is {
			if got := l.now.Sub(began); got < after || got > after+2*time.Minute {
				t.Errorf("%s was let in after %s, want %s", in.Job, got, after)
			}
			delete(want, in.Job)
		}
		l.now = l.now.Add(time.Minute)
	}
	if len(want) > 0 {
		t.Errorf("these starve: %v", want)
	}
}

// Ten thousand jobs of one tenant, or of none, wait when fifty of another come, and those of two others: each of these
// waits for one of each other tenant at most. So it is in all classes, and if the ten thousand have become urgent by
// waiting.
func TestATenantWithManyJobsDelaysAnotherByOneEach(t *testing.T) {
	const many, few = 10_000, 50
	for _, c := range []struct {
		big            string
		priority, then makegood.Priority
		after          time.Duration
	}{
		{"acme", "", "", 0},
		{"", "", "", time.Hour},
		{"zenith", makegood.PriorityIdle, makegood.PriorityIdle, time.Minute},
		{"acme", makegood.PriorityIdle, makegood.PriorityUrgent, time.Hour},
		{"zenith", "", makegood.PriorityUrgent, 15 * time.Minute},
	} {
		for _, most := range []int{1, 20} {
			t.Run(fmt.Sprintf("%q %s before %s %v, limit %d", c.big, c.priority, c.then, c.after, most), func(t *testing.T) {
				t.Parallel()
				l := newLine(t, most)
				for i := range most {
					l.come(job.Ticket{Job: fmt.Sprint("first-", i), Tenant: c.big})
				}
				l.waits(many, job.Ticket{Tenant: c.big, Priority: c.priority})
				l.now = l.now.Add(c.after)
				for range 7 { // The big tenant has had turns.
					l.end()
				}
				small := []string{"b", "c", "d"}
				for _, tenant := range small {
					l.waits(few, job.Ticket{Tenant: tenant, Priority: c.then})
				}
				had := map[string]int{}
				for range (len(small) + 1) * few {
					l.end()
					in := l.with[most-1]
					had[in.Tenant]++
					for _, tenant := range small {
						if had[tenant] < few && had[in.Tenant] > had[tenant]+1 {
							t.Fatalf("%q has had %d turns, and %q %d", in.Tenant, had[in.Tenant], tenant, had[tenant])
						}
					}
				}
				if had["b"] != few || had["c"] != few || had["d"] != few {
					t.Errorf("got the turns %v, want %d for each of the small tenants", had, few)
				}
			})
		}
	}
}

// Jobs of tenants and priorities that a seed draws come and end. Of each tenant and class the first goes first, no job
// goes before one of a more urgent class unless it has risen, and none is left out: in its class each waits for one of
// each other tenant at most, and for one more for each of its own that waits before it.
func TestATurnComesToEachInManyCourses(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		l, tenants, classes := newLine(t, 1+r.IntN(3)), []string{"", "a", "b", "c", "d"}[:1+r.IntN(5)], []makegood.Priority{"", makegood.PriorityUrgent, makegood.PriorityIdle}[:1+r.IntN(3)]
		var waiting []job.Ticket
		ahead, passed := map[string]int{}, map[string]map[string]int{} // of each job that waits
		leaves := func(in job.Ticket) {
			i := slices.IndexFunc(waiting, in.Same)
			if i < 0 {
				return // It did not wait.
			}
			waiting = slices.Delete(waiting, i, i+1)
			for _, t := range waiting {
				if in.Priority == t.Priority {
					passed[t.Job][in.Tenant]++
				}
				if t.Tenant != in.Tenant && passed[t.Job][in.Tenant] > ahead[t.Job]+1 {
					l.Fatalf("seed %d: %q is passed by %d of %q, and %d of its own were before it", seed, t.Job, passed[t.Job][in.Tenant], in.Tenant, ahead[t.Job])
				}
				if in.ClassAt(l.now) > t.Class() || t.Tenant == in.Tenant && t.Priority == in.Priority && t.Since.Before(in.Since) {
					l.Fatalf("seed %d: %+v goes before %+v", seed, in, t)
				}
			}
		}
		for n := range 120 {
			l.now = l.now.Add(time.Duration(1+r.IntN(100)) * time.Second)
			if before := len(l.with); len(l.with) > 0 && (n > 80 || r.IntN(3) == 0) {
				l.end()
				if len(l.with) == before {
					leaves(l.with[before-1])
				}
				continue
			}
			t := l.ticket(job.Ticket{Job: fmt.Sprintf("%03d", n), Tenant: tenants[r.IntN(len(tenants))], Priority: classes[r.IntN(len(classes))]})
			before := len(l.with)
			if l.come(t); len(l.with) == before {
				passed[t.Job] = map[string]int{}
				for _, w := range waiting {
					if w.Tenant == t.Tenant && w.Priority == t.Priority {
						ahead[t.Job]++
					}
				}
				waiting = append(waiting, t)
			}
		}
		for len(l.with) > 0 {
			before := len(l.with)
			if l.end(); len(l.with) == before {
				leaves(l.with[before-1])
			}
		}
		if len(waiting) > 0 {
			t.Fatalf("seed %d: left: %v", seed, waiting)
		}
	}
}

// A process has died between freeing a permit and handing it on. An attempt that looks for itself takes it only if it is
// its turn.
func TestAnAttemptThatLooksKeepsItsTurn(t *testing.T) {
	l, tenants := newLine(t, 2), []string{"a", "b"}
	slices.SortFunc(tenants, func(a, b string) int {
		return strings.Compare((job.Ticket{Tenant: a}).Crowd(), (job.Ticket{Tenant: b}).Crowd())
	})
	l.come(job.Ticket{Job: "first", Tenant: tenants[0]})
	l.come(job.Ticket{Job: "second", Tenant: tenants[0]})
	l.waits(2, job.Ticket{Tenant: tenants[0]})
	l.waits(1, job.Ticket{Tenant: tenants[1]})
	l.end()
	if in := l.with[1]; in.Tenant != tenants[0] {
		t.Fatalf("%+v is let in, want the first of the circle", in)
	}
	g, err := l.store.Gate(t.Context(), "a", 0)
	if err == nil {
		p := g.Permits[slices.IndexFunc(g.Permits, func(p job.Permit) bool { return p.Ticket.Job == "second" })]
		err = l.store.PutPermit(t.Context(), "a", p, job.Permit{N: p.N})
	}
	if err != nil {
		t.Fatal(err)
	}
	l.come(job.Ticket{Job: tenants[0] + "-00001", Tenant: tenants[0]})
	if in := l.with[len(l.with)-1]; in.Tenant != tenants[1] {
		t.Errorf("%+v is let in, want the other tenant", in)
	}
}
