package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/limits"
)

// One job of many kills the engine whenever its step begins. What ran beside it is cut off as often as it is, at first, and is not
// to blame: it runs alone after three deaths, and ends well. The one over which the engine dies alone is stopped in the end.
func TestWhatKillsTheEngineIsToBlameAndNoneThatRanBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := embedded.Config{Dir: t.TempDir()}
		stopped := false
		for run := 1; !stopped; run++ {
			if run > 2*limits.MaxInterruptions {
				t.Fatalf("the bomb has gone off %d times, and goes on", run)
			}
			off := make(chan struct{}, 1)
			r := troupe{script: map[string]work{
				"explode": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					off <- struct{}{}
					return silent(ctx, task)
				},
				"sail": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					select {
					case <-time.After(5 * time.Second):
						return ok(ctx, task)
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				},
			}}
			c.Agents = r.agents("dock", "mine")
			w := open(t, c)
			if run == 1 {
				boat := w.define("name: boat\nsteps: [{name: sail, agent: dock}]")
				for i := range 5 {
					w.submit(boat, fmt.Sprint("boat-", i), `{}`)
				}
				w.submit(w.define("name: bomb\nsteps: [{name: explode, agent: mine, timeout: 10m}]"), "bomb", `{}`)
			}
			select {
			case <-off:
				synctest.Wait()
				w.die()
			case <-time.After(time.Hour):
				stopped = true
				for i := range 5 {
					w.stored(fmt.Sprint("boat-", i), inState(makegood.JobProcessed))
				}
				j := w.stored("bomb", inState(makegood.JobError))
				if want := "18 times while no other attempt ran"; !strings.Contains(j.Reason, want) {
					t.Errorf("got %q, want it to say %q", j.Reason, want)
				}
				w.stop()
			}
		}
	})
}

// An engine that is told to stop has not died: however often that cuts a step off, it is under no suspicion.
func TestAnEngineThatIsToldToStopHasNotDiedOverAnything(t *testing.T) {
	c := embedded.Config{Dir: t.TempDir()}
	for run := 1; run <= 5; run++ {
		began := make(chan makegood.Task, 1)
		r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			began <- task
			return silent(ctx, task)
		}}}
		c.Agents = r.agents("a")
		w := open(t, c)
		if run == 1 {
			w.submit(w.define("name: one\nsteps: [{name: charge, agent: a}]"), "j", `{}`)
		}
		if task := <-began; task.Attempt != run || task.Alone {
			t.Errorf("run %d: got attempt %d, alone %v, want it not to run alone", run, task.Attempt, task.Alone)
		}
		w.stop()
	}
}

// An engine that dies again and again, and has done nothing meanwhile, says so when it starts, and what that means.
func TestALoopOfDeathsIsCalledWhatItIs(t *testing.T) {
	var log bytes.Buffer
	c := embedded.Config{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for run := 1; run <= 8; run++ {
		log.Reset()
		began := make(chan struct{}, 1)
		r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			began <- struct{}{}
			if run == 7 {
				return ok(ctx, task)
			}
			return silent(ctx, task)
		}}}
		c.Agents = r.agents("a")
		w := open(t, c)
		if run == 1 {
			w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, retry: {attempts: 1}}]"), "j", `{}`)
		}
		if run < 8 {
			<-began
		}
		if run == 7 {
			w.ends("j", makegood.JobProcessed)
		}
		w.die()
		loop := strings.Contains(log.String(), "the engine dies again and again")
		// Six have died before the seventh has done something, which ends it.
		if want := run == 6 || run == 7; loop != want {
			t.Errorf("run %d: got said to be in a loop %v, want %v:\n%s", run, loop, want, log.String())
		}
		if run == 7 && !strings.Contains(log.String(), "deaths=6") {
			t.Errorf("got %s, want it to count 6 deaths", log.String())
		}
	}
}
