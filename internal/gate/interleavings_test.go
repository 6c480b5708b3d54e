package gate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
			w.now = w.now.Add(time.Millisecond)
			continue
		}
		died = true
		w.procs[choice-len(w.procs)].stop()
		w.procs = append(w.procs[:choice-len(w.procs)], w.procs[choice-len(w.procs)+1:]...)
	}
	return died
}

// stuck reports whether an attempt waits though it may go, and no process looks after it: none ends a permit, and no
// hint to its job is under way.
func (w *world) stuck() bool {
	g, _ := w.store.Gate(context.Background(), "a", 1) // memory never fails
	permits, _ := apart(g)
	if len(g.Waiting) == 0 || w.most > 0 && len(permits) >= w.most {
		return false
	}
	return !slices.ContainsFunc(w.hints, func(h hint) bool { return h.job == g.Waiting[0].Job })
}

// obey lets the jobs do what the hints say that they got, and end the attempts that are with the agent: no job looks by
// itself. It reports whether all come to their end.
func (w *world) obey() bool {
	for range 1000 {
		open := false
		for i := range len(w.jobs) {
			m := w.jobs[fmt.Sprintf("j%d", i)]
			if open = open || m.out || m.left > 0; !m.queued {
				w.move(m, false)
				w.run()
			}
		}
		if !open {
			return true
		}
		w.now = w.now.Add(time.Millisecond)
		for _, h := range w.hints {
			if !h.at.After(w.now) {
				w.move(w.jobs[h.job], false)
			}
		}
		w.hints = slices.DeleteFunc(w.hints, func(h hint) bool { return !h.at.After(w.now) })
		w.run()
	}
	return false
}

// Every order of the calls of processes that meet at a gate, and a death before any of them, breaks no limit, leaves
// nothing at the gate, and no attempt waits for a permit that is free unless a process has died.
func TestEveryOrderOfCalls(t *testing.T) {
	two := func(w *world) {
		w.move(w.jobs["j0"], false)
		w.move(w.jobs["j1"], false)
	}
	for name, setUp := range map[string]func(w *world){
		"two attempts are opened": two,
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
		"two attempts are opened at a rate":               two,
		"two attempts are opened at a rate with a permit": two,
		"one is withdrawn at a rate after another is opened": func(w *world) {
			two(w)
			w.move(w.jobs["j2"], false)
			w.run()
			w.move(w.jobs["j1"], true)
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
					w := newWorld(1, 2+strings.Count(name, "at a rate after"), 1)
					if rated := strings.Contains(name, "rate"); rated {
						w.rate = rateOf(1, 5*time.Millisecond)
						if !strings.Contains(name, "permit") {
							w.most = 0
						}
					}
					w.every = true
					setUp(w)
					died := c.run(w, deaths)
					if n++; !died && w.stuck() {
						t.Fatalf("%v: an attempt waits, and a permit is free", c.choices)
					}
					if w.rate.Rate > 0 && !died && !w.obey() {
						t.Fatalf("%v: a hint does not come: %+v", c.choices, w.jobs)
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
	early := j.ticket(1, w.now, j.rev)
	j.rev++ // A further save, which opens no attempt.
	w.start("both", func(p *process, k *Keeper) {
		for _, ticket := range []job.Ticket{j.ticket(1, w.now, j.rev), early} {
			if ok, err := k.Take(context.Background(), "a", w.limit(), ticket); !ok || err != nil {
				t.Errorf("the permit is not given: %v", err)
			}
		}
		if err := k.Look(context.Background(), "a", w.limit(), time.Time{}); err != nil {
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

// In courses without deaths and withdrawals, in which no two processes work on one job, the jobs come to their ends by
// hints alone: no look is needed, of a gate or of a job.
func TestARateIsKeptGoingByHintsAlone(t *testing.T) {
	for seed := range uint64(3_000) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(r.IntN(3), 2+r.IntN(5), 2)
		w.rate = rateOf(1+r.IntN(3), time.Duration(2+10*r.IntN(4))*time.Millisecond)
		for range 20 + r.IntN(100) {
			w.now = w.now.Add(time.Duration(r.IntN(2000)) * time.Microsecond)
			m := w.jobs[fmt.Sprintf("j%d", r.IntN(len(w.jobs)))]
			free := func(id string) bool {
				return !slices.ContainsFunc(w.procs, func(p *process) bool { return p.name == "move "+id })
			}
			switch {
			case len(w.hints) > 0 && !w.hints[0].at.After(w.now) && free(w.hints[0].job):
				w.move(w.jobs[w.hints[0].job], false)
				w.hints = w.hints[1:]
			case r.IntN(4) == 0 && len(w.procs) < 5 && free(m.id) && !m.queued:
				w.move(m, false)
			case len(w.procs) > 0:
				w.step(r.IntN(len(w.procs)))
			}
		}
		for w.run(); w.stuck(); {
			t.Fatalf("seed %d: an attempt waits, and a permit is free", seed)
		}
		if !w.obey() || len(w.wrong) > 0 {
			t.Fatalf("seed %d: a hint does not come, or %v", seed, w.wrong)
		}
	}
}

// A hint takes longer than a token takes to cool, and finds it all the same; an attempt that came meanwhile gets it
// next.
func TestASlowHintFindsItsToken(t *testing.T) {
	w := newWorld(0, 3, 1)
	w.rate = rateOf(1, 5*time.Millisecond)
	for _, id := range []string{"j0", "j1"} {
		w.move(w.jobs[id], false)
		w.run()
	}
	w.now = w.now.Add(5 * time.Millisecond)
	w.look() // It tells j1.
	w.run()
	w.now = w.now.Add(time.Second)
	w.move(w.jobs["j2"], false)
	w.run()
	if j1, j2 := w.jobs["j1"], w.jobs["j2"]; !j1.queued || !j2.queued {
		t.Fatalf("before the hint %+v and %+v are sent", j1, j2)
	}
	for _, id := range []string{"j1", "j2"} {
		w.move(w.jobs[id], false)
		w.run()
		if m := w.jobs[id]; m.queued || len(w.wrong) > 0 {
			t.Errorf("%s has had its hint and stands before the gate; %v", id, w.wrong)
		}
		if g, _ := w.store.Gate(t.Context(), "a", 1); g.Permits[0].Ticket.Job != "j2" { // memory never fails
			t.Errorf("after the hint of %s the token is that of %+v, want it to be of j2", id, g.Permits[0])
		}
	}
}
