package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// The input and the output that an undo gets are the agent's own: it may write into them, as into those of a task that came by a queue.
func TestAnInlineAgentMayWriteIntoItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scribble := func(result error) work {
			return func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
				for i := range task.Input {
					task.Input[i] = '#'
				}
				if task.Undo != nil {
					for i := range task.Undo.Output {
						task.Undo.Output[i] = '#'
					}
				}
				return json.RawMessage(`{"id":17}`), result
			}
		}
		r := troupe{script: map[string]work{"one": scribble(nil), "two": scribble(nil), "three": scribble(agent.Final(errors.New("no"))), "back": scribble(nil)}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		c := w.define(`
name: order
steps:
  - {name: one, agent: a, inline: true, undo: {action: back}}
  - {name: two, agent: a, inline: true, needs: [], undo: {action: back}}
  - {name: three, agent: a, inline: true, undo: {action: back}}
`)
		synctest.Wait()
		w.submit(c, "j", `{"sku":"a-17"}`)
		j := w.ends("j", makegood.JobUndone)
		if got := string(j.Input.Inline); got != `{"sku":"a-17"}` {
			t.Errorf("got the input %s, want it as it came", got)
		}
		if got := string(stepOf(t, j, "one").Forward.Output.Inline); got != `{"id":17}` {
			t.Errorf("got the output %s, want it as it was", got)
		}
	})
}

// slowAsker takes its time, and says when it was asked.
type slowAsker struct {
	takes time.Duration
	asked chan struct{}
}

func (a slowAsker) Ask(ctx context.Context, _ string, _ notify.Question) error {
	a.asked <- struct{}{}
	select {
	case <-time.After(a.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const besideApproval = `
name: order
steps:
  - {name: charge, agent: a, inline: true, timeout: 2s, needs: []}
  - {name: deliver, agent: a, inline: true, timeout: 2s, needs: [charge]}
  - {name: allow, agent: approval, with: {question: well, choices: [yes]}, waiting: {ask: boss}, needs: []}
`

// People that are slow to hear of a job do not delay the outcome of its inline attempts past their time.
func TestInlineAttemptsDoNotWaitForThePeopleThatAreAsked(t *testing.T) {
	for name, yaml := range map[string]string{
		"at the birth": besideApproval,
		"on the way":   strings.ReplaceAll(besideApproval, "waiting: {ask: boss}, needs: []", "waiting: {ask: boss}, needs: [charge]"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r troupe
				w := open(t, embedded.Config{Agents: r.agents("a"), Asker: slowAsker{4 * time.Second, make(chan struct{}, 9)}, Asked: []string{"boss"}})
				c := w.define(yaml)
				synctest.Wait()
				began := time.Now()
				w.submit(c, "j", `{}`)
				j := w.until("j", func(j job.Job) bool { return stepOf(t, j, "deliver").Forward.State == job.Done })
				if took := r.moments("deliver")[0].Sub(began); took > time.Second {
					t.Errorf("the second step began after %s", took)
				}
				if got, want := r.order(), "charge deliver"; got != want || stepOf(t, j, "deliver").Forward.FailureCount != 0 {
					t.Errorf("got %s, and %d failures, want %s, and none", got, stepOf(t, j, "deliver").Forward.FailureCount, want)
				}
			})
		})
	}
}

// An engine is not closed before the inline attempts that a caller's submission has begun have ended, and a folder is not free before.
func TestACloseWaitsForTheInlineAttemptsOfASubmission(t *testing.T) {
	for name, takes := range map[string]time.Duration{"that ends in time": 3 * time.Second, "that ignores its end": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var atWork atomic.Bool
				r := troupe{script: map[string]work{"charge": func(context.Context, makegood.Task) (json.RawMessage, error) {
					atWork.Store(true)
					defer atWork.Store(false)
					time.Sleep(takes)
					return json.RawMessage(`"charged"`), nil
				}}}
				asker := slowAsker{4 * time.Second, make(chan struct{}, 9)}
				config := embedded.Config{Dir: t.TempDir(), Agents: r.agents("a"), Asker: asker, Asked: []string{"boss"}}
				w := open(t, config)
				c := w.define(strings.ReplaceAll(besideApproval, "timeout: 2s", "timeout: 1m"))
				synctest.Wait()
				submitted := make(chan struct{})
				go func() {
					defer close(submitted)
					w.submit(c, "j", `{}`)
				}()
				<-asker.asked
				w.stop()
				next, err := embedded.Open(t.Context(), config)
				for ; errors.Is(err, sqlitestore.ErrLocked); next, err = embedded.Open(t.Context(), config) {
					time.Sleep(time.Second)
				}
				if err != nil {
					t.Fatal(err)
				}
				if atWork.Load() {
					t.Error("the folder is free while the agent of an inline attempt is at work")
				}
				if err := next.Close(); err != nil {
					t.Error(err)
				}
				<-submitted
				time.Sleep(time.Minute)
			})
		})
	}
}

// A workflow of as many inline steps as there may be ends, as a chain and as branches, and leaves no goroutine and no place behind.
func TestAsManyInlineStepsAsThereMayBe(t *testing.T) {
	for name, needs := range map[string]string{"a chain": "", "branches": ", needs: []"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r troupe
				m := newMeter()
				w := open(t, m.config(embedded.Config{Agents: r.agents("a"), Concurrency: embedded.Concurrency{All: 200}}))
				var yaml strings.Builder
				yaml.WriteString("name: wide\nsteps:\n")
				for i := range 200 {
					fmt.Fprintf(&yaml, "  - {name: s%d, agent: a, inline: true%s}\n", i, needs)
				}
				c := w.define(yaml.String())
				for i := range 3 {
					synctest.Wait()
					m.take()
					before := goroutines()
					w.submit(c, fmt.Sprint("j", i), `{}`)
					w.ends(fmt.Sprint("j", i), makegood.JobProcessed)
					synctest.Wait()
					if got := m.take(); got["Claim"] != 0 {
						t.Errorf("job %d: got %d claims, want none: places were not given back", i, got["Claim"])
					}
					if after := goroutines(); after > before+5 {
						t.Errorf("job %d: got %d goroutines, and %d before", i, after, before)
					}
				}
			})
		})
	}
}

// goroutines is how many there are in the bubble of the one that calls. Those of earlier tests are not among them.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	bubble := regexp.MustCompile(`synctest bubble \d+`).Find(stacks) // The first stack is that of the one that calls.
	n := 0
	for head := range strings.Lines(string(stacks)) {
		if strings.HasPrefix(head, "goroutine ") && strings.Contains(head, string(bubble)+"]") {
			n++
		}
	}
	return n
}

// A pause of an agent holds the next inline attempts up, and what runs runs on.
func TestAPauseOfAnAgentHoldsInlineStepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		r := troupe{script: map[string]work{"one": d.wait}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		c := w.define("name: order\nsteps: [{name: one, agent: a, inline: true, undo: none}, {name: two, agent: a, inline: true}]")
		synctest.Wait()
		w.submit(c, "j", `{}`)
		<-d.arrived
		w.pause(makegood.HoldAgent, "a")
		close(d.open)
		time.Sleep(time.Minute)
		w.submit(c, "k", `{}`)
		time.Sleep(time.Minute)
		if got := r.order(); got != "one" {
			t.Fatalf("got %s during the pause, want one", got)
		}
		w.resume(makegood.HoldAgent, "a")
		w.patience = 10 * time.Minute // The jobs are let go one after the other.
		w.ends("j", makegood.JobProcessed)
		w.ends("k", makegood.JobProcessed)
		if got := len(r.seen("")); got != 4 {
			t.Errorf("got %d attempts, want 4: %s", got, r.order())
		}
	})
}

// openBroken opens an engine whose saves fail for three seconds after the first attempt of a step, and so do its messages to
// the events queue, unless it sends them.
func openBroken(t *testing.T, r *troupe, step string, sends bool) *world {
	t.Helper()
	var broken atomic.Bool
	r.script = map[string]work{"one": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
		if task.Attempt == 1 {
			broken.Store(true)
			time.AfterFunc(3*time.Second, func() { broken.Store(false) })
		}
		return ok(ctx, task)
	}}
	m := newMeter()
	config := m.config(embedded.Config{Agents: r.agents("a")})
	config.WrapStore = func(inner store.Store) store.Store {
		return faultstore.New(inner, func(c faultstore.Call) faultstore.Effect {
			if c.Op == "Save" && broken.Load() {
				return faultstore.FailBefore
			}
			return faultstore.None
		})
	}
	m.tap.refuse = func(name string, _ queue.Message) error {
		if name == "events" && broken.Load() && !sends {
			return errors.New("the queue is full")
		}
		return nil
	}
	return open(t, config)
}

// A reply that cannot be saved at once goes by the events queue, and counts: its attempt is not made again.
func TestAnInlineReplyThatCannotBeSavedCounts(t *testing.T) {
	for name, sends := range map[string]bool{"by the queue": true, "nor sent": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r troupe
				w := openBroken(t, &r, "one", sends)
				c := w.define("name: order\nsteps: [{name: one, agent: a, inline: true, timeout: 20s, undo: none}, {name: two, agent: a, inline: true}]")
				synctest.Wait()
				w.submit(c, "j", `{}`)
				w.patience = time.Hour
				w.ends("j", makegood.JobProcessed)
				want := "one two"
				if !sends {
					want = "one one two"
				}
				if got := r.order(); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}
