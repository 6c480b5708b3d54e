package embedded_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/supervisor"
)

// deaf is an agent that ignores its context and says nothing in time.
func deaf(context.Context, makegood.Task) (json.RawMessage, error) {
	time.Sleep(3 * time.Second)
	return nil, nil
}

// The Supervisor is woken by the next key. A whole sweep that runs between a key and its alarm leaves
// young keys alone, and must not make the alarm believe that it told of them.
func TestADeadlineIsActedOnAtOnceWhereverItLiesBetweenTwoSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bell
		r := troupe{script: map[string]work{"charge": deaf}}
		w := open(t, embedded.Config{Agents: r.agents("a"), Notifier: &told})
		c := w.define("name: one\nsteps: [{name: charge, agent: a, timeout: 1s, retry: {attempts: 1}}]")
		start := time.Now()
		for _, offset := range []time.Duration{0, 1, 250, 489, 490, 491, 492, 493, 494, 495, 496, 497, 498, 499} {
			begin := start.Add(time.Since(start).Truncate(time.Second) + 5*time.Second + offset*time.Millisecond)
			time.Sleep(time.Until(begin))
			id := begin.Sub(start).String()
			w.submit(c, id, `{}`)
			w.ends(id, makegood.JobError)
			synctest.Wait()
			heard := told.heard()
			late := heard[len(heard)-1].At.Sub(begin.Add(time.Second))
			if late < 0 || late > 20*time.Millisecond {
				t.Errorf("silence that began %v after a second was noticed %s after its CompleteBy, want at most 20ms", offset*time.Millisecond, late)
			}
		}
		time.Sleep(5 * time.Second)
	})
}

// Any number of Supervisors may sweep at once: an overdue key is acted on once.
func TestSeveralSupervisorsAtOnceDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		var index store.Store
		calls := map[string]int{}
		var mu sync.Mutex
		r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			mu.Lock()
			calls[task.Job]++
			n := calls[task.Job]
			mu.Unlock()
			switch n {
			case 1:
				return deaf(ctx, task)
			case 2, 3:
				return nil, agent.RetryAfter(time.Second, errNo)
			default:
				return nil, nil
			}
		}}}
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapQueues: p.wrap, WrapStore: func(s store.Store) store.Store {
			index = s
			return s
		}})
		w.patience = time.Minute
		c := w.define("name: one\nsteps: [{name: charge, agent: a, timeout: 1s, retry: {backoff: 500ms, max: 1s}}]")
		ctx, stop := context.WithCancel(t.Context())
		var sweepers sync.WaitGroup
		for range 5 {
			s := supervisor.New(supervisor.Config{Index: index, Queue: p, Events: "events", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			sweepers.Go(func() {
				for ctx.Err() == nil {
					if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		for _, id := range ids(50) {
			w.submit(c, id, `{}`)
		}
		for _, id := range ids(50) {
			job := w.ends(id, makegood.JobProcessed)
			if job.FailureCount != 3 || job.Steps[0].Attempt != 4 {
				t.Errorf("job %s: got %d failures, %d attempts, want 3, 4", id, job.FailureCount, job.Steps[0].Attempt)
			}
		}
		stop()
		sweepers.Wait()
		time.Sleep(5 * time.Second)
		for id, n := range calls {
			if n != 4 {
				t.Errorf("job %s: the service was asked %d times, want 4", id, n)
			}
		}
	})
}
