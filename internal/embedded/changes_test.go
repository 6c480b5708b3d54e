package embedded_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
)

// A function that is told of changes hangs at its first call, whatever its context says: it is told of all of them by the
// next, jobs go on, and Run and Close return though it hangs again.
func TestAFunctionForChangesThatHangsStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		free, told := make(chan struct{}), make(chan makegood.Changes, 10)
		var calls atomic.Int64
		defer close(free)
		w := open(t, embedded.Config{
			Agents: r.agents("a"),
			Changes: func(_ context.Context, run makegood.Changes) error {
				if calls.Add(1) == 1 || run.Job == "last" {
					<-free
				}
				told <- run
				return nil
			},
		})
		one := w.define("name: one\nsteps: [{name: first, agent: a}]")
		w.submit(one, "j", `{}`)
		w.ends("j", makegood.JobProcessed)
		if run := <-told; run.Job != "j" || run.Changes[0].Number != 1 {
			t.Errorf("told of %+v, want all changes of job j", run)
		}
		w.submit(one, "last", `{}`)
		w.ends("last", makegood.JobProcessed)
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("Run and Close took %v, want no longer than a stop may", took)
		}
	})
}
