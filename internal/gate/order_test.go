package gate

import (
	"fmt"
	"slices"
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
	t.Birth, t.Step, t.Attempt, t.Since, t.Rev = "b", "s", 1, l.now, 1
	if _, err := l.Take(l.Context(), "a", l.most, t, true); err != nil {
		l.Fatal(err)
	}
	l.see()
}

// end ends the attempt that is with the agent for longest, and returns the name of its job.
func (l *line) end() string {
	l.Helper()
	over := l.with[0]
	l.with = l.with[1:]
	over.Rev++
	if err := l.Left(l.Context(), "a", l.most, []job.Ticket{over}, nil); err != nil {
		l.Fatal(err)
	}
	l.see()
	return over.Job
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

// An idle job is let in though urgent ones come faster than attempts end: after twenty minutes those that come go behind it.
// One of normal priority is after ten.
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
			// It goes behind the urgent ones that came before that time, at two a minute.
			if got := l.now.Sub(began); got < after || got > 2*after+2*time.Minute {
				t.Errorf("%s was let in after %s, want the first one after those that came in %s", in.Job, got, after)
			}
			delete(want, in.Job)
		}
		l.now = l.now.Add(time.Minute)
	}
	if len(want) > 0 {
		t.Errorf("these starve: %v", want)
	}
}
