package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// lane runs inline attempts of some agents, so many at once, and counts its places.
type lane struct {
	agents []string
	places int
	// during, if set, is called while an attempt runs; silent lets none reply.
	during func(makegood.Task)
	silent bool

	mu               sync.Mutex
	inside, most, in int
}

func (l *lane) Agents(context.Context) ([]string, time.Time) { return l.agents, time.Time{} }
func (l *lane) Secrets() bool                                { return true }

func (l *lane) Enter(string, bool) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside >= l.places {
		return nil, false
	}
	l.inside++
	l.most = max(l.most, l.inside)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.inside--
	}), true
}

func (l *lane) Run(_ context.Context, task makegood.Task, lockedBy string, _ time.Time) job.Event {
	l.mu.Lock()
	l.in++
	l.mu.Unlock()
	if l.during != nil {
		l.during(task)
	}
	if l.silent {
		return nil
	}
	return job.StepSucceeded{Reply: job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token, LockedBy: lockedBy, StartedAt: task.SentAt}}
}

func (l *lane) Drive(ctx context.Context, drivers []func(context.Context)) {
	var wg sync.WaitGroup
	for _, drive := range drivers {
		wg.Go(func() { drive(ctx) })
	}
	wg.Wait()
}

// checkEmpty finds places that were not given back.
func (l *lane) checkEmpty(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside != 0 {
		t.Errorf("%d places were not given back", l.inside)
	}
}

const inlineStep = "name: one\nsteps: [{name: first, agent: a, inline: true}]"

// A job goes on by the queues however many agents its inline steps are of that have no free place.
func TestAJobGoesOnWhereManyAgentsHaveNoPlace(t *testing.T) {
	for name, places := range map[string]int{"no place": 0, "one place": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := &lane{agents: []string{"a"}, places: 1}
			var yaml strings.Builder
			yaml.WriteString("name: wide\nsteps:\n  - {name: first, agent: a, inline: true}\n")
			for i := range 80 {
				fmt.Fprintf(&yaml, "  - {name: s%d, agent: a%d, inline: true, needs: [first]}\n", i, i)
				l.agents = append(l.agents, fmt.Sprint("a", i))
			}
			l.during = func(makegood.Task) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.places = places // There were enough for the first step.
			}
			w.use(func(c *scheduler.Config) {
				c.Lane, c.Tasks = l, func(string) string { return "tasks-b" }
			})
			w.submit(w.define(yaml.String()), "j")
			for _, s := range w.job("j").Steps[1:] {
				if s.Forward.State == job.NotStarted {
					t.Fatalf("step %s was not begun", s.Name)
				}
			}
		})
	}
}

// What only notes that receivers were told begins no inline attempt: it would have no process that runs it, and no end.
func TestNotingWhatWasToldBeginsNoInlineAttempt(t *testing.T) {
	w := newWorld(t)
	before := &lane{agents: []string{"a"}, places: 10, silent: true}
	w.use(func(c *scheduler.Config) { c.Lane, c.Incarnation, c.Changes = before, 1, &reader{} })
	w.submit(w.define(inlineStep), "j")
	after := &lane{agents: []string{"a"}, places: 10}
	w.use(func(c *scheduler.Config) { c.Lane, c.Incarnation = after, 2 })
	w.s.Handed(t.Context(), changes.Run{Changes: makegood.Changes{Job: "j", Changes: []makegood.Change{{Number: 1}}}}, errBroken)
	after.checkEmpty(t)
	w.handle(w.record("j", job.DeadlinePassed{}))
	after.checkEmpty(t)
	if got := w.job("j").Steps[0].Forward; got.Inline != "" && after.in == 0 {
		t.Errorf("got %+v: it is inline, and was never begun", got)
	}
}

// A place is given back wherever a move ends before its attempts begin, and wherever a chain ends.
func TestAPlaceIsGivenBackWhereverAMoveEnds(t *testing.T) {
	for name, effect := range map[string]faultstore.Effect{
		"refused": faultstore.FailBefore, "unknown": faultstore.FailAfter,
	} {
		for _, op := range []string{"Create", "Save", "PutPayload", "Load", "Payload"} {
			for _, fields := range []string{"inline: true", "inline: true, exclusive: false"} {
				t.Run(strings.Join([]string{name, op, fields}, " "), func(t *testing.T) { checkPlaces(t, op, fields, effect) })
			}
		}
	}
}

// checkPlaces plays a job of two steps with a fault in the first calls of one operation, and finds places of agents that
// were not given back.
func checkPlaces(t *testing.T, op, fields string, effect faultstore.Effect) {
	w := newWorld(t)
	l := &lane{agents: []string{"a"}, places: 10}
	w.use(func(c *scheduler.Config) { c.Lane = l })
	c := w.define(fmt.Sprintf("name: two\nsteps: [{name: first, agent: a, %[1]s}, {name: second, agent: a, %[1]s}]", fields))
	n := 0
	w.strike = func(of, _ string) faultstore.Effect {
		if of != op || n > 2 {
			return faultstore.None
		}
		n++
		return effect
	}
	large, _ := json.Marshal(strings.Repeat("x", 100_000))
	_, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: large})
	if err != nil && !errors.Is(err, faultstore.ErrInjected) {
		t.Log(err)
	}
	l.checkEmpty(t)
}

// A chain gives each place back before it takes the next: one is enough for all of its steps.
func TestAChainTakesOnePlaceAtATime(t *testing.T) {
	w := newWorld(t)
	l := &lane{agents: []string{"a"}, places: 1}
	w.use(func(c *scheduler.Config) { c.Lane = l })
	w.submit(w.define("name: three\nsteps: [{name: one, agent: a, inline: true, exclusive: false}, {name: two, agent: a, inline: true, exclusive: false}, {name: three, agent: a, inline: true, exclusive: false}]"), "j")
	if got := w.job("j"); got.ProcessState != makegood.JobProcessed || got.Rev != 2 {
		t.Errorf("got %s after %d saves, want Processed after its birth and one save", got.ProcessState, got.Rev)
	}
	l.checkEmpty(t)
}
