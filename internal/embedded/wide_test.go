package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

const branches = 100

// fan is a step, a hundred branches behind it, and their join.
func fan(settings string) string {
	yaml := fmt.Sprintf("name: fan\nsteps:\n  - {name: split, agent: a%s}\n", settings)
	needs := ""
	for i := range branches {
		yaml += fmt.Sprintf("  - {name: b%d, agent: a, needs: [split]%s}\n", i, settings)
		needs += fmt.Sprintf("b%d, ", i)
	}
	return yaml + fmt.Sprintf("  - {name: join, agent: a, needs: [%s]%s}\n", needs[:len(needs)-2], settings)
}

// at most this many messages are sent for one that is needed.
const mostSent = 1.2

// Of a wide job every reply is an event of its own, and duplicates of each come. None of them may send
// the siblings again that wait unclaimed.
func TestAWideJobSendsLittleMoreThanItNeedsUnderDuplicates(t *testing.T) {
	seed := seed.Of(t)
	for _, test := range []struct {
		name  string
		jobs  int
		delay float64
		works time.Duration
	}{
		// Every fifth job may have all its branches sent twice here: enough jobs that chance evens out.
		{"duplicates come at once", 60, 0, 0},
		{"duplicates come up to five seconds later", 20, 0.5, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				remote := newServices(seed)
				takes := func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
					if test.works > 0 {
						time.Sleep(time.Duration(remote.roll(task.Key) % uint64(test.works)))
					}
					return remote.handle(ctx, task)
				}
				p := newTap()
				var bad *faultqueue.Queues
				w := open(t, embedded.Config{Agents: []agent.Handler{actor{"a", takes}}, WrapQueues: func(q embedded.Queues) embedded.Queues {
					bad = faultqueue.New(q, faultqueue.Options{Seed: seed, Duplicate: 0.2, Delay: test.delay, Reorder: 1})
					return p.wrap(bad)
				}})
				w.patience = 5 * time.Minute
				synctest.Wait()
				c := w.define(fan(""))
				for _, id := range ids(test.jobs) {
					w.submit(c, id, `{}`)
				}
				for _, id := range ids(test.jobs) {
					w.ends(id, makegood.JobProcessed)
				}
				remote.checkAttempts(t)
				tasks, events := p.count("tasks-a"), p.count("events")
				// A task and a reply for each step, and a submission.
				needed := test.jobs * (2*(branches+2) + 1)
				ratio := float64(tasks+events+test.jobs) / float64(needed)
				t.Logf("%d jobs: %d tasks, %d events and %d submissions sent for %d messages needed: %.3f; the queues duplicated %d",
					test.jobs, tasks, events, test.jobs, needed, ratio, bad.Injected().Duplicated)
				if ratio > mostSent {
					t.Errorf("%.3f messages were sent for each that was needed, want at most %.1f", ratio, mostSent)
				}
			})
		})
	}
}

func TestAWideJobEndsThoughMessagesAreLost(t *testing.T) {
	seed := seed.Of(t)
	synctest.Test(t, func(t *testing.T) {
		remote := newServices(seed)
		w := open(t, embedded.Config{Agents: []agent.Handler{actor{"a", remote.handle}}, WrapQueues: func(q embedded.Queues) embedded.Queues {
			return faultqueue.New(q, hostile(seed))
		}})
		w.patience = time.Hour
		w.submit(w.define(fan(", startBy: 10s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 1s}")), "j", `{}`)
		job := w.ends("j", makegood.JobProcessed)
		remote.check(t, job)
		t.Logf("ended within %s after %d requests, %d failures", job.FinishedAt.Sub(job.CreatedAt), remote.checkAttempts(t), job.FailureCount)
	})
}
