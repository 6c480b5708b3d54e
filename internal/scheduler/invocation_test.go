package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// linked is an agent in the Scheduler's function.
type linked struct {
	name string
	do   func(ctx context.Context, task makegood.Task) (json.RawMessage, error)
}

func (l linked) Name() string { return l.name }

func (l linked) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	return l.do(ctx, task)
}

// function is a Scheduler's function with an agent linked in.
func function(w *world, do func(context.Context, makegood.Task) (json.RawMessage, error)) {
	w.use(func(c *scheduler.Config) {
		c.Now, c.Counts, c.Clock = time.Now, true, spend.NewClock(1024, time.Now)
		c.Lane = agentrun.NewLane([]agent.Handler{linked{"a", do}}, nil, time.Now, slog.New(slog.DiscardHandler))
	})
}

// invoke hands a batch to the function, which has so long.
func (w *world) invoke(has time.Duration, records ...record) (failed int, took time.Duration) {
	w.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), has)
	defer cancel()
	response, err := w.s.HandleSQS(ctx, events.SQSEvent{Records: records})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(response.BatchItemFailures), time.Since(began)
}

// Of a batch of ten jobs one has a slow step, and one an agent that ignores its end: the others go their whole way, and the invocation
// ends in time.
func TestAnInvocationWithASlowInlineStepEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		begun := map[string]int{}
		function(w, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			mu.Lock()
			begun[fmt.Sprintf("%s/%s", task.Job, task.Step)]++
			mu.Unlock()
			switch task.Job + task.Step {
			case "job-3s1":
				time.Sleep(4 * time.Second)
			case "job-4s1":
				time.Sleep(time.Minute)
			}
			return json.RawMessage(`{"ok":true}`), nil
		})
		var yaml strings.Builder
		yaml.WriteString("name: two\nsteps:\n")
		for i := range 5 {
			fmt.Fprintf(&yaml, "  - {name: s%d, agent: a, inline: true, timeout: 5s}\n", i)
		}
		w.define(yaml.String())
		failed, took := w.invoke(28*time.Second, w.submissions("two", 10)...)
		if failed != 0 || took > 27*time.Second {
			t.Errorf("%d records failed after %s, want none, in time", failed, took)
		}
		for i := range 10 {
			id := fmt.Sprint("job-", i)
			j := w.job(id)
			if want := makegood.JobProcessed; i != 4 && j.ProcessState != want {
				t.Errorf("%s is %s, want %s", id, j.ProcessState, want)
			}
		}
		time.Sleep(10 * time.Second)
		w.now = time.Now()
		w.invoke(28*time.Second, w.deadline("job-4")) // It was silent.
		time.Sleep(time.Second)
		w.now = time.Now()
		w.invoke(28*time.Second, w.deadline("job-4")) // The next is due.
		s := w.job("job-4").Steps[1]
		if s.Attempt != 2 || s.Forward.Inline != "" || !s.Forward.Alone || s.Forward.Tries != 1 {
			t.Errorf("got %+v, want a second attempt by the queue, which runs alone", s)
		}
		for what, n := range begun {
			if n != 1 {
				t.Errorf("%s was begun %d times", what, n)
			}
		}
		time.Sleep(time.Hour)
	})
}

// A chain that is longer than its invocation goes on by the queues, with a little time left to say so.
func TestAChainThatIsLongerThanItsInvocation(t *testing.T) {
	for name, saves := range map[string]bool{"and saves": true, "and cannot save": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var mu sync.Mutex
				begun := map[string]int{}
				function(w, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
					mu.Lock()
					begun[task.Step]++
					mu.Unlock()
					if task.Step == "s2" && !saves {
						w.strikes(func(op, _ string) faultstore.Effect {
							if op == "Save" {
								return faultstore.FailBefore
							}
							return faultstore.None
						})
					}
					time.Sleep(2 * time.Second)
					return json.RawMessage(`{"ok":true}`), nil
				})
				var yaml strings.Builder
				yaml.WriteString("name: two\nsteps:\n")
				for i := range 20 {
					fmt.Fprintf(&yaml, "  - {name: s%d, agent: a, inline: true, timeout: 5s}\n", i)
				}
				w.define(yaml.String())
				var replies []queue.Message
				w.deny = func(name string, m queue.Message) error {
					if name == "events" {
						replies = append(replies, m)
					}
					return nil
				}
				failed, took := w.invoke(20*time.Second, w.submissions("two", 1)...)
				if failed != 0 || took > 19*time.Second {
					t.Errorf("%d records failed after %s, want none, in time", failed, took)
				}
				w.strikes(nil)
				w.now = time.Now()
				if !saves {
					if len(replies) != 1 {
						t.Fatalf("got %d replies on the events queue, want that of s2", len(replies))
					}
					w.invoke(20*time.Second, w.raw(replies[0].Body))
				}
				j := w.job("job-0")
				open := 0
				for _, s := range j.Steps {
					if s.Forward.State == job.Dispatched {
						open++
						if s.Forward.Inline != "" {
							t.Errorf("step %s is inline, and no invocation runs it", s.Name)
						}
					}
				}
				if open != 1 {
					t.Errorf("%d attempts are open, want one", open)
				}
				for step, n := range begun {
					if n != 1 {
						t.Errorf("%s was begun %d times", step, n)
					}
				}
			})
		})
	}
}

// strikes puts a plan of faults in the place of the one before.
func (w *world) strikes(strike func(op, job string) faultstore.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strike = strike
}
