package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
)

// An inline step costs a load and a save: no task, no claim, no reply and no message.
func TestAnInlineStepCostsALoadAndASave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		m := newMeter()
		w := open(t, m.config(embedded.Config{Dir: t.TempDir(), Agents: r.agents("a")}))
		c := w.define(strings.ReplaceAll(reference, "agent: a", "agent: a, inline: true"))
		synctest.Wait()
		m.take()
		before := m.file.Stats()
		w.submit(c, "job-00000001", `{"sku":"a-17"}`)
		w.ends("job-00000001", makegood.JobProcessed)
		synctest.Wait()
		after := m.file.Stats()
		if got, want := m.take(), map[string]int{"Create": 1, "Definition": 1, "Load": 5, "Save": 5}; !maps.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
		// One group more than flushes keeps, once in the life of an engine, that something was done in it.
		if groups, syncs := after.Groups-before.Groups, after.Syncs-before.Syncs; groups != 7 || syncs != 6 {
			t.Errorf("got %d groups and %d flushes, want 7 and 6", groups, syncs)
		}
		if m.moves != 1 {
			t.Errorf("the index key was moved %d times after the birth, want once, out of the index", m.moves)
		}
		if got, want := r.order(), "stepnr01 stepnr02 stepnr03 stepnr04 stepnr05"; got != want {
			t.Errorf("got the steps %s, want %s", got, want)
		}
	})
}

// Retries and undos of an inline step are inline, too, and nothing of it is in a claim.
func TestAnInlineStepIsTriedAgainAndUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"charge": once(errors.New("busy")), "ship": always(agent.Final(errors.New("no such address")))}}
		m := newMeter()
		w := open(t, m.config(embedded.Config{Agents: r.agents("a")}))
		synctest.Wait() // An engine that does not run yet sends its tasks to the queues.
		w.submit(w.define(`
name: order
steps:
  - {name: charge, agent: a, inline: true, undo: {action: refund}}
  - {name: ship, agent: a, inline: true, undo: {action: recall}}
`), "j", `{}`)
		j := w.ends("j", makegood.JobUndone)
		if got, want := r.order(), "charge charge ship recall refund"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		asked := m.take()
		if asked["Claim"]+asked["Close"]+asked["Send tasks-a"]+asked["Send undos-a"] != 0 {
			t.Errorf("got the calls %v, want no claim and no task", asked)
		}
		if want := "step ship failed: no such address"; j.Reason != want {
			t.Errorf("got the reason %q, want %q", j.Reason, want)
		}
		for _, task := range r.seen("") {
			if task.Claim != (makegood.TaskClaim{}) || task.CompleteBy.IsZero() {
				t.Errorf("the task of %s has the claim %+v and ends at %v, want none, and an end", task.Action, task.Claim, task.CompleteBy)
			}
		}
	})
}

// The limit of an agent holds over both ways together, and nothing waits for a place that is needed elsewhere.
func TestInlineAttemptsKeepToTheLimitOfTheirAgent(t *testing.T) {
	for name, c := range map[string]embedded.Concurrency{
		"of this agent": {Agents: map[string]int{"a": 2}}, "of all agents": {All: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int64
				r := troupe{script: map[string]work{"slow": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					n := now.Add(1)
					defer now.Add(-1)
					for high := most.Load(); n > high && !most.CompareAndSwap(high, n); high = most.Load() {
					}
					time.Sleep(time.Second)
					return ok(ctx, task)
				}}}
				w := open(t, embedded.Config{Agents: r.agents("a"), Concurrency: c})
				w.patience = time.Hour
				slow := w.define("name: slow\nsteps: [{name: slow, agent: a, inline: true}]")
				for i := range 20 {
					w.submit(slow, fmt.Sprint("j", i), `{}`)
				}
				for i := range 20 {
					w.ends(fmt.Sprint("j", i), makegood.JobProcessed)
				}
				if got := most.Load(); got != 2 {
					t.Errorf("got %d at once, want 2", got)
				}
			})
		})
	}
}

// Branches that are inline run side by side, and replies that come together share a save.
func TestInlineBranchesRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		r.script = map[string]work{"slow": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			time.Sleep(time.Second)
			return ok(ctx, task)
		}}
		m := newMeter()
		w := open(t, m.config(embedded.Config{Agents: r.agents("a")}))
		var yaml strings.Builder
		yaml.WriteString("name: wide\nsteps:\n")
		for i := range 20 {
			fmt.Fprintf(&yaml, "  - {name: s%d, agent: a, action: slow, inline: true, needs: []}\n", i)
		}
		c := w.define(yaml.String())
		synctest.Wait()
		m.take()
		began := time.Now()
		w.submit(c, "j", `{}`)
		w.ends("j", makegood.JobProcessed)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("20 branches of a second took %s", took)
		}
		if got := m.take()["Save"]; got != 1 {
			t.Errorf("got %d saves of 20 replies that came together, want 1", got)
		}
	})
}

// An engine that ends while inline attempts are under way makes others when it starts again: they may have had their
// effect, and are not counted.
func TestInlineAttemptsAreMadeAgainAfterARestart(t *testing.T) {
	for name, stop := range map[string]func(*world){"stopped": func(w *world) { w.stop() }, "killed": func(w *world) { w.die() }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := troupe{script: map[string]work{"charge": silent}}
				config := embedded.Config{Dir: t.TempDir(), Agents: r.agents("a")}
				w := open(t, config)
				c := w.define("name: pay\nsteps: [{name: charge, agent: a, inline: true, retry: {attempts: 1}, undo: {action: refund}}]")
				synctest.Wait()
				w.submit(c, "j", `{}`)
				j := w.until("j", func(j job.Job) bool { return stepOf(t, j, "charge").Forward.Inline != "" })
				if held := stepOf(t, j, "charge").Forward; held.Inline == "" || held.State != job.Dispatched {
					t.Fatalf("got %+v, want an inline attempt", held)
				}
				stop(w)
				r.mu.Lock()
				r.script = nil
				r.mu.Unlock()
				w = open(t, config)
				j = w.ends("j", makegood.JobProcessed)
				if s := stepOf(t, j, "charge"); s.Attempt != 2 || s.Forward.FailureCount != 0 {
					t.Errorf("got attempt %d after %d failures, want the second after none", s.Attempt, s.Forward.FailureCount)
				}
			})
		})
	}
}

// An inline attempt that is running when its job is cancelled runs to its end, and then its effect is undone.
func TestACancelWaitsForInlineAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		r := troupe{script: map[string]work{"charge": d.wait}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		c := w.define("name: pay\nsteps: [{name: charge, agent: a, inline: true, undo: {action: refund}}]")
		synctest.Wait()
		w.submit(c, "j", `{}`)
		<-d.arrived
		w.request("j", makegood.VerbCancel)
		synctest.Wait()
		if got, want := r.order(), "charge"; got != want {
			t.Fatalf("got %s while the step runs, want %s", got, want)
		}
		close(d.open)
		w.ends("j", makegood.JobCancelled)
		if got, want := r.order(), "charge refund"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// An agent that panics, or ends its goroutine, fails its step; the job goes on.
func TestAnInlineStepWhoseAgentPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"charge": func(context.Context, makegood.Task) (json.RawMessage, error) { panic("nil map") }}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.submit(w.define("name: pay\nsteps: [{name: charge, agent: a, inline: true, retry: {attempts: 1}}]"), "j", `{}`)
		if j := w.ends("j", makegood.JobError); !strings.Contains(j.Reason, "nil map") {
			t.Errorf("got the reason %q, want the panic", j.Reason)
		}
	})
}
