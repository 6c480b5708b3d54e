package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// clerks counts the tasks that an agent does at once, in the engine that runs now.
type clerks struct {
	mu        sync.Mutex
	life      int
	now, most int
}

// work does a task that takes so long, and counts it.
func (c *clerks) work(d time.Duration) work { return c.doing(slowly(d)) }

// doing does a task, and counts it.
func (c *clerks) doing(slow work) work {
	return func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
		c.mu.Lock()
		life := c.life
		c.now++
		c.most = max(c.most, c.now)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.life == life {
				c.now--
			}
		}()
		return slow(ctx, task)
	}
}

// reborn forgets the tasks of an engine that has died.
func (c *clerks) reborn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life++
	c.now = 0
}

func (w *world) limit(agent string, most int) {
	w.t.Helper()
	w.limitTo(agent, makegood.Limit{Concurrency: most})
}

func (w *world) limitTo(agent string, l makegood.Limit) {
	w.t.Helper()
	if _, err := w.engine.Parts().Holds.Limit(w.t.Context(), agent, l, "the bank asks for it", "anna"); err != nil {
		w.t.Fatal(err)
	}
}

// atGate returns how many attempts of an agent have a permit, and how many wait.
func (w *world) atGate(agent string) (permits, waiting int) {
	w.t.Helper()
	list, err := w.engine.Parts().Holds.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range list {
		if h.Kind == makegood.HoldLimit && h.Name == agent {
			return len(h.Permits), h.Jobs
		}
	}
	w.t.Fatalf("agent %s has no limit", agent)
	return 0, 0
}

// isProcessed waits until a job is, also if an earlier engine has ended it.
func (w *world) isProcessed(id string) {
	w.t.Helper()
	if j := w.stored(id, atEnd); j.ProcessState != makegood.JobProcessed {
		w.t.Errorf("job %s is %s: %s", id, j.ProcessState, j.Reason)
	}
}

// An agent with a limit of three does three tasks at once and no more, though the engine dies in between, and does not
// rest while attempts wait. When all is done, nothing is left at the gate. The limit is taken away again.
func TestALimitHoldsThroughDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, most = 60, 3
		var bank clerks
		r := troupe{script: map[string]work{"charge": bank.work(10 * time.Second)}}
		c := embedded.Config{Dir: t.TempDir(), Agents: r.agents("hotels", "bank"), Tick: 5 * time.Second}
		began := time.Now()
		w := open(t, c)
		w.limit("bank", most)
		compiled := w.define(tripYAML)
		for i := range jobs {
			w.submit(compiled, fmt.Sprint("j", i), `{}`)
		}
		for range 2 {
			time.Sleep(25 * time.Second)
			if permits, waiting := w.atGate("bank"); permits != most || waiting == 0 {
				t.Errorf("%d attempts have a permit and %d wait, want %d, and more that wait", permits, waiting, most)
			}
			w.die()
			bank.reborn()
			w = open(t, c)
		}
		w.patience = time.Hour
		for i := range jobs {
			w.isProcessed(fmt.Sprint("j", i))
		}
		if took := time.Since(began); bank.most != most || took > 5*time.Minute {
			t.Errorf("%d charges were under way at once, for %v; want %d, and less than five minutes", bank.most, took, most)
		}
		time.Sleep(3 * time.Minute)
		if permits, waiting := w.atGate("bank"); permits+waiting > 0 {
			t.Errorf("%d permits and %d tickets are left", permits, waiting)
		}
		for i := range 20 {
			w.submit(compiled, fmt.Sprint("k", i), `{}`)
		}
		time.Sleep(time.Second)
		w.limit("bank", 0)
		began = time.Now()
		for i := range 20 {
			w.isProcessed(fmt.Sprint("k", i))
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("without the limit the rest took %v", took)
		}
	})
}

// The engine dies at each of the calls of three jobs that come to a gate with one permit. Each job is done, one at a time,
// and nothing is left at the gate.
func TestDeathsAtAGate(t *testing.T) {
	for n, over := 1, false; !over; n++ {
		synctest.Test(t, func(t *testing.T) {
			var bank clerks
			r := troupe{script: map[string]work{"charge": bank.work(time.Second)}}
			c := embedded.Config{Dir: memoryDir(t), Agents: r.agents("hotels", "bank"), Tick: 5 * time.Second}
			w := open(t, c)
			w.limit("bank", 1)
			compiled := w.define(tripYAML)
			for i := range 3 {
				w.submit(compiled, fmt.Sprint("j", i), `{}`)
			}
			w.die()
			l := &lifespan{left: n, died: make(chan struct{})}
			bank.reborn()
			w = open(t, l.wrap(c, faultqueue.Options{}))
			select {
			case <-l.died:
			case <-time.After(2 * time.Minute):
				over = true
			}
			w.die()
			bank.reborn()
			w = open(t, c)
			w.patience = time.Hour
			for i := range 3 {
				w.isProcessed(fmt.Sprint("j", i))
			}
			if bank.most != 1 {
				t.Errorf("call %d: %d charges were under way at once", n, bank.most)
			}
			time.Sleep(5 * time.Minute)
			if permits, waiting := w.atGate("bank"); permits+waiting > 0 {
				t.Errorf("call %d: %d permits and %d tickets are left", n, permits, waiting)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// The engine dies at each of the calls of a request to undo a finished job, whose agent has a limit. The permit of an
// attempt that was never saved is given to another job, though no later event saves the first one.
func TestDeathsOfARequestAtAGate(t *testing.T) {
	for n, over := 1, false; !over; n++ {
		synctest.Test(t, func(t *testing.T) {
			var bank clerks
			r := troupe{script: map[string]work{"charge": bank.work(time.Second), "refund": bank.work(time.Second)}}
			c := embedded.Config{Dir: memoryDir(t), Agents: r.agents("bank"), Tick: 5 * time.Second}
			w := open(t, c)
			w.limit("bank", 1)
			compiled := w.define("name: trip\nsteps:\n  - {name: charge, agent: bank, undo: {action: refund}}\n")
			w.submit(compiled, "j", `{}`)
			w.isProcessed("j")
			w.die()
			l := &lifespan{left: n, died: make(chan struct{})}
			w = open(t, l.wrap(c, faultqueue.Options{}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, _, _ = w.engine.Parts().Scheduler.Request(ctx, "j", job.Requested{Verb: makegood.VerbUndo, Request: "r"}) // Its engine may die.
			cancel()
			select {
			case <-l.died:
			case <-time.After(2 * time.Minute):
				over = true
			}
			w.die()
			bank.reborn()
			w = open(t, c)
			w.patience = 10 * time.Minute
			w.submit(compiled, "k", `{}`)
			w.isProcessed("k")
			time.Sleep(5 * time.Minute)
			if permits, waiting := w.atGate("bank"); permits+waiting > 0 || bank.most != 1 {
				t.Errorf("call %d: %d permits and %d tickets are left, %d at once", n, permits, waiting, bank.most)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// Twenty callers of a service that takes 50 ms, and 64 with a limit of twenty: how many jobs of one step end in a second.
func BenchmarkALimitOfTwenty(b *testing.B) {
	for name, c := range map[string]struct{ callers, limit int }{"20 callers": {20, 0}, "64 callers, a limit of 20": {64, 20}} {
		b.Run(name, func(b *testing.B) {
			r := troupe{script: map[string]work{"charge": slowly(50 * time.Millisecond)}}
			w := open(b, embedded.Config{
				Dir: b.TempDir(), Agents: r.agents("bank"), Concurrency: embedded.Concurrency{Agents: map[string]int{"bank": 64}},
			})
			if c.limit > 0 {
				w.limit("bank", c.limit)
			}
			compiled := w.define("name: trip\nsteps:\n  - {name: charge, agent: bank, undo: none}\n")
			jobs := w.engine.Jobs("b", slog.New(slog.DiscardHandler))
			var next atomic.Int64
			var callers sync.WaitGroup
			b.ResetTimer()
			for range c.callers {
				callers.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						id := fmt.Sprint("j", n)
						w.submit(compiled, id, `{}`)
						if _, err := jobs.Wait(b.Context(), id); err != nil {
							b.Error(err)
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// The items of a map and inline steps of an agent with a limit keep to it together.
func TestALimitHoldsForItemsAndInlineSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bank clerks
		r := troupe{script: map[string]work{"charge": bank.work(time.Second), "look": bank.work(time.Second)}}
		w := open(t, embedded.Config{Dir: t.TempDir(), Agents: r.agents("bank"), Tick: 5 * time.Second})
		w.limit("bank", 3)
		items := w.define("name: items\nsteps:\n  - {name: charge, map: {over: \"${ [range(30)] }\", concurrency: 10}, agent: bank, undo: none}\n")
		inline := w.define("name: inline\nsteps:\n  - {name: look, agent: bank, inline: true, undo: none}\n")
		w.submit(items, "m", `{}`)
		for i := range 6 {
			w.submit(inline, fmt.Sprint("i", i), `{}`)
		}
		w.patience = time.Hour
		w.isProcessed("m")
		for i := range 6 {
			w.isProcessed(fmt.Sprint("i", i))
		}
		if bank.most != 3 {
			t.Errorf("%d attempts were under way at once, want 3", bank.most)
		}
	})
}

// Three hundred jobs of one tenant wait when fifty of another come, and an urgent one of a third: each of the fifty waits
// for one of the many, and the urgent one for none that waits.
func TestTenantsAndPrioritiesAtALimit(t *testing.T) {
	for _, most := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			const many, few = 300, 50
			var mu sync.Mutex
			var began []string
			slow := slowly(time.Second)
			r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
				mu.Lock()
				began = append(began, task.Job)
				mu.Unlock()
				return slow(ctx, task)
			}}}
			w := open(t, embedded.Config{Dir: memoryDir(t), Agents: r.agents("bank"), Tick: 5 * time.Second})
			w.limit("bank", most)
			c := w.define("name: trip\nsteps:\n  - {name: charge, agent: bank, undo: none}\n")
			comes := func(id string, s scheduler.Submission) {
				s.ID, s.Definition, s.Input = id, c.Hash, json.RawMessage(`{}`)
				if _, _, err := w.engine.Submit(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			for i := range many {
				comes(fmt.Sprint("many-", i), scheduler.Submission{Tenant: "many"})
			}
			time.Sleep(time.Millisecond)
			mu.Lock()
			before := len(began)
			mu.Unlock()
			for i := range few {
				comes(fmt.Sprint("few-", i), scheduler.Submission{Tenant: "few"})
			}
			comes("urgent", scheduler.Submission{Tenant: "third", Priority: makegood.PriorityUrgent})
			w.patience = time.Hour
			for i := range few {
				w.isProcessed(fmt.Sprint("few-", i))
			}
			mu.Lock()
			defer mu.Unlock()
			others, own := 0, 0
			for n, id := range began[before:] {
				switch {
				case id == "urgent" && n >= most:
					t.Errorf("limit %d: %d begin before the urgent one", most, n)
				case strings.HasPrefix(id, "few"):
					// Those that are let in together begin in any order.
					if own++; others > own+most-1 {
						t.Errorf("limit %d: %d of the many begin before the %d. of the few", most, others, own)
					}
				case id != "urgent" && own < few:
					others++
				}
			}
		})
	}
}

// The breaker and a limit at one agent: while it is down for four minutes, the items of a map and inline steps stand
// still. Then all of them are done, no more at once than the limit, and nothing is left at the gate.
func TestALimitAndABreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bank clerks
		began := time.Now()
		charge := func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			if at := time.Since(began); at > 5*time.Second && at < 4*time.Minute {
				return nil, errors.New("down")
			}
			return bank.work(time.Second)(ctx, task)
		}
		r := troupe{script: map[string]work{"charge": charge, "look": charge}}
		w := open(t, embedded.Config{Dir: t.TempDir(), Agents: r.agents("bank"), Breakers: []string{"bank"}, Tick: 5 * time.Second})
		w.limit("bank", 3)
		items := w.define("name: items\nsteps:\n  - {name: charge, map: {over: \"${ [range(30)] }\", concurrency: 10}, agent: bank, undo: none}\n")
		inline := w.define("name: inline\nsteps:\n  - {name: look, agent: bank, inline: true, undo: none}\n")
		w.submit(items, "m", `{}`)
		for i := range 20 {
			w.submit(inline, fmt.Sprint("i", i), `{}`)
		}
		time.Sleep(time.Minute)
		if list, err := w.engine.Parts().Holds.List(t.Context()); err != nil || !slices.ContainsFunc(list, func(h holds.Counted) bool { return h.Tripped }) {
			t.Errorf("the breaker has not tripped: %v, %v", list, err)
		}
		w.patience = time.Hour
		w.isProcessed("m")
		for i := range 20 {
			w.isProcessed(fmt.Sprint("i", i))
		}
		time.Sleep(5 * time.Minute)
		if permits, waiting := w.atGate("bank"); bank.most > 3 || permits+waiting > 0 {
			t.Errorf("%d at once, %d permits and %d tickets left", bank.most, permits, waiting)
		}
	})
}

// With a rate of 100 a second and a burst of ten, at most ten attempts begin in each window of 100 ms, to the
// millisecond, and all of them in hardly more time than that takes. With a concurrency, too, no more are under
// way at once than that.
func TestARateHoldsToTheMillisecond(t *testing.T) {
	for name, l := range map[string]makegood.Limit{"rate": {Rate: "100/s", Burst: 10}, "both": {Rate: "100/s", Burst: 10, Concurrency: 4}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const jobs = 300
				var bank clerks
				var began []time.Time
				slow := bank.work(30 * time.Millisecond)
				r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					bank.mu.Lock()
					began = append(began, time.Now())
					bank.mu.Unlock()
					return slow(ctx, task)
				}}}
				c := embedded.Config{Dir: memoryDir(t), Agents: r.agents("bank"), Tick: 5 * time.Second}
				w := open(t, c)
				w.limitTo("bank", l)
				compiled := w.define("name: trip\nsteps:\n  - {name: charge, agent: bank, undo: none}\n")
				from := time.Now()
				for i := range jobs {
					w.submit(compiled, fmt.Sprint("j", i), `{}`)
				}
				w.patience = time.Hour
				for i := range jobs {
					w.isProcessed(fmt.Sprint("j", i))
				}
				for i, at := range began[10:] {
					if d := at.Sub(began[i]); d < 100*time.Millisecond {
						t.Fatalf("eleven attempts began within %v", d)
					}
				}
				if took := time.Since(from); len(began) != jobs || took > jobs*time.Second/100+time.Second {
					t.Errorf("%d attempts began in %v, want %d in hardly more than %d s", len(began), took, jobs, jobs/100)
				}
				if l.Concurrency > 0 && bank.most != l.Concurrency {
					t.Errorf("%d attempts were under way at once, want %d", bank.most, l.Concurrency)
				}
				time.Sleep(3 * time.Minute)
				if permits, waiting := w.atGate("bank"); permits+waiting > 0 {
					t.Errorf("%d permits and %d tickets are left", permits, waiting)
				}
			})
		})
	}
}

// A workflow is paused while its attempts wait before a gate: they give their permit back at once, and those of another
// workflow go on.
func TestAPausedWorkflowKeepsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bank clerks
		r := troupe{script: map[string]work{"charge": bank.work(time.Second)}}
		w := open(t, embedded.Config{Dir: t.TempDir(), Agents: r.agents("bank"), Tick: 5 * time.Second})
		w.limit("bank", 1)
		paused := w.define("name: a\nsteps:\n  - {name: charge, agent: bank, undo: none}\n")
		works := w.define("name: b\nsteps:\n  - {name: charge, agent: bank, undo: none}\n")
		for i := range 10 {
			w.submit(paused, fmt.Sprint("a", i), `{}`)
		}
		for i := range 10 {
			w.submit(works, fmt.Sprint("b", i), `{}`)
		}
		w.pause(makegood.HoldWorkflow, "a")
		began := time.Now()
		for i := range 10 {
			w.isProcessed(fmt.Sprint("b", i))
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("ten charges of a second took %v", took)
		}
		w.resume(makegood.HoldWorkflow, "a")
		w.patience = time.Hour
		for i := range 10 {
			w.isProcessed(fmt.Sprint("a", i))
		}
	})
}
