package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
)

// As many long steps run at once as an agent may have, and the others wait. An undo of the same agent waits for none of them.
func TestLongStepsKeepNoUndoOfTheirAgentWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		concurrency embedded.Concurrency
		want        int
	}{
		"nothing is said":         {embedded.Concurrency{}, embedded.DefaultConcurrency},
		"three of this agent":     {embedded.Concurrency{Agents: map[string]int{"dock": 3}}, 3},
		"three of all agents":     {embedded.Concurrency{All: 3}, 3},
		"more than a batch holds": {embedded.Concurrency{Agents: map[string]int{"dock": 100}}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var long atomic.Int64
				r := troupe{script: map[string]work{"clean": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					long.Add(1)
					defer long.Add(-1)
					return silent(ctx, task)
				}}}
				w := open(t, embedded.Config{Agents: r.agents("dock"), Concurrency: c.concurrency})
				w.submit(w.define("name: trip\nsteps: [{name: load, agent: dock, undo: {action: unload}}, {name: rest, agent: wait, with: {for: 9h}}]"), "trip", `{}`)
				w.until("trip", func(j job.Job) bool { return stepOf(t, j, "rest").Forward.State == job.Waiting })
				cleaning := w.define("name: cleaning\nsteps: [{name: clean, agent: dock, timeout: 1h}]")
				for i := range c.want + 5 {
					w.submit(cleaning, fmt.Sprint("cleaning-", i), `{}`)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := int(long.Load()); got != c.want {
					t.Errorf("got %d long steps at once, want %d", got, c.want)
				}
				asked := time.Now()
				w.request("trip", makegood.VerbCancel)
				w.ends("trip", makegood.JobCancelled)
				if took := time.Since(asked); took > time.Second || int(long.Load()) != c.want {
					t.Errorf("its undo was through after %v, with %d long steps at once, want it at once beside %d", took, long.Load(), c.want)
				}
			})
		})
	}
}
