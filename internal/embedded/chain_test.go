package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
)

// chainOf is a workflow whose steps of agent a are a chain.
func chainOf(steps string) string {
	return "name: chain\nsteps:\n" + strings.ReplaceAll(steps, "agent: a", "agent: a, inline: true, exclusive: false")
}

// A job of five steps in a chain costs its birth and one save: two flushes.
func TestAChainCostsItsBirthAndASave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		m := newMeter()
		w := open(t, m.config(embedded.Config{Dir: t.TempDir(), Agents: r.agents("a")}))
		c := w.define(strings.ReplaceAll(reference, "agent: a", "agent: a, inline: true, exclusive: false"))
		synctest.Wait()
		w.submit(c, "first", `{}`)
		w.ends("first", makegood.JobProcessed)
		synctest.Wait()
		m.take()
		m.moves = 0
		before := m.file.Stats()
		w.submit(c, "job-00000001", `{"sku":"a-17"}`)
		w.ends("job-00000001", makegood.JobProcessed)
		synctest.Wait()
		after := m.file.Stats()
		if got, want := m.take(), map[string]int{"Create": 1, "Load": 1, "Save": 1}; !maps.Equal(got, want) {
			t.Errorf("calls: got %v, want %v", got, want)
		}
		if groups, syncs := after.Groups-before.Groups, after.Syncs-before.Syncs; groups != 2 || syncs != 2 {
			t.Errorf("got %d groups and %d flushes, want 2 and 2", groups, syncs)
		}
		if m.moves != 1 {
			t.Errorf("the index key was moved %d times after the birth, want once, out of the index", m.moves)
		}
		want := "stepnr01 stepnr02 stepnr03 stepnr04 stepnr05"
		if got := r.order(); got != want+" "+want {
			t.Errorf("got the steps %s, want %s twice", got, want)
		}
	})
}

// saves plays a job of a workflow to its end, and returns how many saves it took after its birth.
func saves(t *testing.T, r *troupe, yaml string, config embedded.Config, want makegood.ProcessState) (n int, j job.Job) {
	t.Helper()
	m := newMeter()
	config.Agents = r.agents("a", "b")
	w := open(t, m.config(config))
	w.patience = time.Hour
	c := w.define(yaml)
	synctest.Wait() // An engine that does not run yet sends its tasks to the queues.
	m.take()
	w.submit(c, "j", `{"sku":"a-17"}`)
	j = w.ends("j", want)
	synctest.Wait()
	return m.take()["Save"], j
}

// Each step of a chain reads what the steps before it gave, though none of it is saved yet.
func TestAStepOfAChainReadsTheStepBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"one": gives(`{"id":17}`), "two": gives(`{"id":18}`)}}
		n, _ := saves(t, &r, chainOf(`
  - {name: one, agent: a}
  - {name: two, agent: a, with: "${ {of: .steps.one.output.id, sku: .input.sku} }"}
  - {name: three, agent: a, with: "${ [.steps.one.output.id, .steps.two.output.id] }"}
`), embedded.Config{}, makegood.JobProcessed)
		if got := string(r.seen("two")[0].Input) + string(r.seen("three")[0].Input); got != `{"of":17,"sku":"a-17"}[17,18]` || n != 1 {
			t.Errorf("got the inputs %s, and %d saves, want both outputs and one save", got, n)
		}
	})
}

// What ends a chain: the steps behind are the next one, which the save of this one opens.
func TestAChainEnds(t *testing.T) {
	slow := func(d time.Duration) work {
		return func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			time.Sleep(d)
			return ok(ctx, task)
		}
	}
	waits := func(context.Context, makegood.Task) (json.RawMessage, error) {
		return nil, agent.Wait(time.Now().Add(time.Minute))
	}
	four := `
  - {name: one, agent: a}
  - {name: two, agent: a}
  - {name: three, agent: a}
  - {name: four, agent: a}
`
	for name, c := range map[string]struct {
		steps  string
		script map[string]work
		saves  int
		want   makegood.ProcessState
	}{
		"with its last step":                     {steps: four, saves: 1},
		"after 50 ms":                            {steps: four, script: map[string]work{"one": slow(30 * time.Millisecond), "two": slow(20 * time.Millisecond)}, saves: 2},
		"within 50 ms":                           {steps: four, script: map[string]work{"one": slow(30 * time.Millisecond), "two": slow(19 * time.Millisecond), "three": slow(time.Second)}, saves: 2},
		"with an output kept outside of the job": {steps: four, script: map[string]work{"two": gives(largeJSON)}, saves: 2},
		"before an exclusive step":               {steps: strings.Replace(four, "three, agent: a", "three, agent: b, inline: true", 1), saves: 3},
		"before a step that goes by the queue":   {steps: strings.Replace(four, "three, agent: a", "three, agent: b, exclusive: false", 1), saves: 3},
		"before a step with a condition":         {steps: strings.Replace(four, "three, agent: a", `three, agent: a, when: "${ .input.sku != null }"`, 1), saves: 2},
		"with a failure":                         {steps: four, script: map[string]work{"two": once(agent.RetryAfter(time.Second, errors.New("busy")))}, saves: 3},
		"with a step that waits":                 {steps: strings.Replace(four, "two, agent: a", "two, agent: a, retry: {attempts: 1}", 1), script: map[string]work{"two": waits}, saves: 3, want: makegood.JobError},
		"before an input that cannot be made":    {steps: strings.Replace(four, "three, agent: a", `three, agent: a, with: "${ .steps.two.output | fromjson }"`, 1), saves: 2, want: makegood.JobError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := troupe{script: c.script}
				want := c.want
				if want == "" {
					want = makegood.JobProcessed
				}
				n, j := saves(t, &r, chainOf(c.steps), embedded.Config{Dir: memoryDir(t)}, want)
				if n != c.saves {
					t.Errorf("got %d saves of %s, want %d", n, r.order(), c.saves)
				}
				if strings.HasPrefix(name, "before an input") {
					if s := stepOf(t, j, "three").Forward; s.Error == nil || s.Error.Kind != makegood.KindExpression {
						t.Errorf("got %+v, want a failed expression", s.Error)
					}
				}
				for _, s := range j.Steps {
					if s.Forward.Tries > 1 && s.Name != "two" || s.Forward.Unknown && s.Name != "two" {
						t.Errorf("step %s used %d attempts, unknown: %v; what was not begun counts for nothing", s.Name, s.Forward.Tries, s.Forward.Unknown)
					}
				}
			})
		})
	}
}

// An agent whose places are all taken ends a chain, and nothing waits: the step goes by the queue.
func TestAChainEndsWhereAnAgentHasNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		r := troupe{script: map[string]work{"hold": d.wait}}
		w := open(t, embedded.Config{Agents: r.agents("a", "b"), Concurrency: embedded.Concurrency{Agents: map[string]int{"b": 1}}})
		holds := w.define("name: holds\nsteps: [{name: hold, agent: b, timeout: 1h}]")
		c := w.define(chainOf("  - {name: one, agent: a}\n  - {name: two, agent: b, inline: true, exclusive: false}\n  - {name: three, agent: a}\n"))
		synctest.Wait()
		w.submit(holds, "h", `{}`)
		<-d.arrived
		w.submit(c, "j", `{}`)
		j := w.until("j", func(j job.Job) bool { return stepOf(t, j, "one").Forward.State == job.Done })
		if two := stepOf(t, j, "two").Forward; two.State != job.Dispatched || two.Inline != "" || r.order() != "hold one" {
			t.Errorf("got %+v after %s, want the second step in its queue", two, r.order())
		}
		close(d.open)
		w.ends("j", makegood.JobProcessed)
	})
}

// An engine that is told to stop within a chain saves the results of the steps that are done. It saves the steps behind
// the running one as not begun, and interrupts only the running step.
func TestAChainIsCutOffByTheEndOfItsEngine(t *testing.T) {
	steps := []string{"one", "two", "three"}
	for cut, at := range steps {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := troupe{script: map[string]work{at: silent}}
				config := embedded.Config{Dir: memoryDir(t), Agents: r.agents("a")}
				w := open(t, config)
				c := w.define(chainOf("  - {name: one, agent: a, undo: none}\n  - {name: two, agent: a, undo: {action: back}}\n  - {name: three, agent: a}\n"))
				synctest.Wait()
				w.submit(c, "j", `{}`)
				synctest.Wait()
				w.stop()
				r.mu.Lock()
				r.script = nil
				r.mu.Unlock()
				w = open(t, config)
				j := w.ends("j", makegood.JobProcessed)
				for i, name := range steps {
					want := 2
					if i < cut {
						want = 1
					}
					if s := stepOf(t, j, name); s.Attempt != want || s.Forward.FailureCount != 0 || s.Forward.Unknown != (i == cut) {
						t.Errorf("step %s: got attempt %d after %d failures, unknown: %v, want attempt %d after none", name, s.Attempt, s.Forward.FailureCount, s.Forward.Unknown, want)
					}
				}
				if got := len(r.seen("")); got != 4 {
					t.Errorf("got %d attempts, want one of each step and another of step %s: %s", got, at, r.order())
				}
			})
		})
	}
}

// An agent breaks a chain off by a panic, or by ending its goroutine. The chain saves the results of the steps before
// that one, and gives all places of its agents back.
func TestAChainWhoseAgentBreaksOff(t *testing.T) {
	for name, breaks := range map[string]work{
		"by a panic":               func(context.Context, makegood.Task) (json.RawMessage, error) { panic("nil map") },
		"by the end of its thread": func(context.Context, makegood.Task) (json.RawMessage, error) { runtime.Goexit(); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := troupe{script: map[string]work{"two": breaks}}
				n, j := saves(t, &r, chainOf("  - {name: one, agent: a}\n  - {name: two, agent: a, retry: {attempts: 1}}\n  - {name: three, agent: a}\n"),
					embedded.Config{Concurrency: embedded.Concurrency{Agents: map[string]int{"a": 1}}}, makegood.JobError)
				if one, three := stepOf(t, j, "one").Forward, stepOf(t, j, "three").Forward; one.State != job.Done || three.State != job.NotStarted || three.Unknown || n != 2 {
					t.Errorf("got the first %q, the third %q, unknown: %v, in %d saves; want done and not started in one, and one that the operator was told", one.State, three.State, three.Unknown, n)
				}
			})
		})
	}
}

// A long chain is cut every 20 steps.
func TestAChainHasTwentySteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		var steps strings.Builder
		for i := range 50 {
			fmt.Fprintf(&steps, "  - {name: s%d, agent: a}\n", i)
		}
		if n, _ := saves(t, &r, chainOf(steps.String()), embedded.Config{}, makegood.JobProcessed); n != 3 {
			t.Errorf("got %d saves of 50 steps, want 3", n)
		}
	})
}

// Replies of a chain that cannot be saved at once go by the events queue. That of the first step counts; one that
// overtakes another there is lost. Where replies are lost, each attempt falls silent, and its step is made again in its turn.
func TestRepliesOfAChainThatCannotBeSavedGoByTheQueue(t *testing.T) {
	for name, sends := range map[string]bool{"by the queue": true, "nor sent": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r troupe
				w := openBroken(t, &r, "three", sends)
				w.patience = time.Hour
				c := w.define(chainOf("  - {name: one, agent: a, timeout: 20s, undo: none}\n  - {name: two, agent: a, timeout: 20s, undo: none}\n  - {name: three, agent: a, timeout: 20s}\n"))
				synctest.Wait()
				w.submit(c, "j", `{}`)
				w.ends("j", makegood.JobProcessed)
				ran := map[string]int{}
				for _, task := range r.seen("") {
					ran[task.Action]++
				}
				if got := r.order(); !strings.HasPrefix(got, "one two three") || ran["one"] > 1 && sends || ran["one"] > 2 || ran["two"] > 2 || ran["three"] > 2 {
					t.Errorf("got %s, want each step once more at most, and the first once where its reply was sent", got)
				}
				if got := r.order(); !sends && got != "one two three one two three" {
					t.Errorf("got %s, want all of the chain again, in its order", got)
				}
			})
		})
	}
}

// A step that has given its output is not silent because the one behind it takes longer than itself may.
func TestAQuickStepOfAChainIsNotSilentBeforeTheSlowOneBehindIt(t *testing.T) {
	for name, timeout := range map[string]string{"of a longer timeout": "20s", "of the same timeout": "5s"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takes := func(d time.Duration) work {
					return func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
						time.Sleep(d)
						return ok(ctx, task)
					}
				}
				r := troupe{script: map[string]work{"one": takes(40 * time.Millisecond), "two": takes(5*time.Second - time.Millisecond)}}
				n, j := saves(t, &r, chainOf(`
  - {name: one, agent: a, timeout: 5s, retry: {attempts: 1}}
  - {name: two, agent: a, timeout: `+timeout+`, retry: {attempts: 1}}
`), embedded.Config{}, makegood.JobProcessed)
				if n != 1 || r.order() != "one two" || j.FailureCount != 0 {
					t.Errorf("got %d saves, the steps %s and %d failures, want one save, each step once and none", n, r.order(), j.FailureCount)
				}
			})
		})
	}
}
