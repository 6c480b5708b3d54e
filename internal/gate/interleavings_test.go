package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
)

// course is a course of events, which its choices distinguish from others: at each point, which process makes its next
// call, or dies.
type course struct {
	choices []int
	// open is how many alternatives there were at each point.
	open []int
}

// next changes the last choice that has an alternative left, and reports whether one has.
func (c *course) next() bool {
	for i := len(c.open) - 1; i >= 0; i-- {
		if c.choices[i]+1 < c.open[i] {
			c.choices = append(c.choices[:i:i], c.choices[i]+1)
			return true
		}
	}
	return false
}

// choose returns the choice at a point with so many alternatives.
func (c *course) choose(point, of int) int {
	if point == len(c.choices) {
		c.choices = append(c.choices, 0)
	}
	c.open = append(c.open[:point], of)
	return c.choices[point]
}

// run lets the processes of a world make their calls in the order of the course. deaths: one of them may die.
func (c *course) run(w *world, deaths bool) (died bool) {
	c.open = c.open[:0]
	for point := 0; len(w.procs) > 0; point++ {
		of := len(w.procs)
		if deaths && !died {
			of *= 2
		}
		choice := c.choose(point, of)
		if choice < len(w.procs) {
			w.step(choice)
			continue
		}
		died = true
		w.procs[choice-len(w.procs)].stop()
		w.procs = append(w.procs[:choice-len(w.procs)], w.procs[choice-len(w.procs)+1:]...)
	}
	return died
}

// stuck reports whether an attempt waits though it may go: no process that ends a permit looks after it.
func (w *world) stuck() bool {
	g, _ := w.store.Gate(context.Background(), "a", 1) // memory never fails
	return len(g.Waiting) > 0 && len(g.Permits) < w.most
}

// Every order of the calls of processes that meet at a gate, and a death before any of them, breaks no limit, leaves
// nothing at the gate, and no attempt waits for a permit that is free unless a process has died.
func TestEveryOrderOfCalls(t *testing.T) {
	for name, setUp := range map[string]func(w *world){
		"two attempts are opened": func(w *world) {
			w.move(w.jobs["j0"], false)
			w.move(w.jobs["j1"], false)
		},
		"one ends as another is opened": func(w *world) {
			w.move(w.jobs["j0"], false)
			w.run()
			w.move(w.jobs["j0"], false)
			w.move(w.jobs["j1"], false)
		},
		"one ends as the next looks": func(w *world) {
			for _, id := range []string{"j0", "j1"} {
				w.move(w.jobs[id], false)
				w.run()
			}
			w.move(w.jobs["j0"], false)
			w.move(w.jobs["j1"], false)
		},
		"one is opened as the gate is looked at, and its job saved": func(w *world) {
			w.move(w.jobs["j0"], false)
			w.touch(w.jobs["j0"])
			w.look()
		},
		"one is withdrawn as it is admitted": func(w *world) {
			for _, id := range []string{"j0", "j1"} {
				w.move(w.jobs[id], false)
				w.run()
			}
			w.move(w.jobs["j1"], true)
			w.move(w.jobs["j0"], false)
		},
	} {
		for _, deaths := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deaths %t", name, deaths), func(t *testing.T) {
				if deaths && testing.Short() {
					t.Skip("the orders with deaths are many")
				}
				t.Parallel()
				c, n := &course{}, 0
				for more := true; more; more = c.next() {
					w := newWorld(1, 2, 1)
					w.every = true
					setUp(w)
					died := c.run(w, deaths)
					if n++; !died && w.stuck() {
						t.Fatalf("%v: an attempt waits, and a permit is free", c.choices)
					}
					if w.drain(); len(w.wrong) > 0 {
						t.Fatalf("%v: %v", c.choices, w.wrong)
					}
				}
				t.Logf("%d orders", n)
			})
		}
	}
}

// A process that has loaded a job earlier comes to its permit late: a look does not take the permit from the later save.
func TestALateProcessDoesNotAgeAPermit(t *testing.T) {
	w := newWorld(1, 2, 1)
	j := w.jobs["j0"]
	early := j.ticket(1, w.now)
	j.rev++ // A further save, which opens no attempt.
	w.start("both", func(p *process, k *Keeper) {
		for _, ticket := range []job.Ticket{j.ticket(1, w.now), early} {
			if ok, err := k.Take(context.Background(), "a", 1, ticket, false); !ok || err != nil {
				t.Errorf("the permit is not given: %v", err)
			}
		}
		if err := k.Look(context.Background(), "a", 1, time.Time{}); err != nil {
			t.Error(err)
		}
		// The later process saves the attempt that its permit is for.
		p.save(j, j.rev, func() { j.attempt, j.out = 1, true })
	})
	w.run()
	w.move(w.jobs["j1"], false)
	w.run()
	if len(w.wrong) > 0 {
		t.Error(w.wrong)
	}
}
