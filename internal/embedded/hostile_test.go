package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// patient is the order workflow with short deadlines and enough attempts for messages that are lost.
const patient = `
name: order
steps:
  - {name: reserve, agent: inventory, startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: release}}
  - {name: charge, agent: payments, startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: refund}}
  - {name: ship, agent: shipping, startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: recall}}
`

// hostile are the queues of a bad day.
func hostile(seed uint64) faultqueue.Options {
	return faultqueue.Options{
		Seed: seed, Duplicate: 0.2, Lose: 0.05, Delay: 0.2, Reorder: 1, FailBefore: 0.02, FailAfter: 0.02,
	}
}

// flaky is a store that fails at one call in fifty, before or after it was executed.
func flaky(seed uint64) func(store.Store) store.Store {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(inner store.Store) store.Store {
		return faultstore.New(inner, func(faultstore.Call) faultstore.Effect {
			switch random.IntN(100) {
			case 0:
				return faultstore.FailBefore
			case 1:
				return faultstore.FailAfter
			default:
				return faultstore.None
			}
		})
	}
}

// Whatever queues, services and the store do, as long as it ends: every job ends as the script says,
// with a ledger that agrees, and no attempt is made twice.
func TestEveryJobEndsAsItShouldOnHostileQueues(t *testing.T) {
	for _, test := range []struct {
		name  string
		jobs  int
		store func(uint64) func(store.Store) store.Store
		// refuses says which actions of a job are refused for good.
		refuses func(job int) string
	}{
		{"nothing is refused", 1000, nil, func(int) string { return "" }},
		{"some steps and undos are refused", 1000, nil, refusals},
		{"the store fails too", 300, flaky, refusals},
	} {
		if testing.Short() {
			test.jobs /= 5
		}
		t.Run(test.name, func(t *testing.T) {
			seed := seed.Of(t)
			synctest.Test(t, func(t *testing.T) { day(t, seed, test.jobs, test.store, test.refuses) })
		})
	}
}

// refusals refuses every tenth job at one of its steps, and every fiftieth the refund, too.
func refusals(job int) string {
	switch {
	case job%50 == 7:
		return "ship refund"
	case job%10 == 7:
		return [...]string{"ship", "charge", "reserve"}[job/10%3]
	default:
		return ""
	}
}

// ending is the end of a job for which these actions are refused for good.
func ending(refused string) makegood.ProcessState {
	switch {
	case strings.Contains(refused, "refund"):
		return makegood.JobError
	case refused != "":
		return makegood.JobUndone
	default:
		return makegood.JobProcessed
	}
}

func day(t *testing.T, seed uint64, jobs int, wrapStore func(uint64) func(store.Store) store.Store, refuses func(int) string) {
	remote := newServices(seed)
	remote.faulty = true
	remote.refuses = func(task makegood.Task) bool {
		for _, action := range strings.Fields(refuses(number(task.Job))) {
			if task.Action == action {
				return true
			}
		}
		return false
	}
	var bad *faultqueue.Queues
	c := embedded.Config{Agents: remote.agents(), WrapQueues: func(q embedded.Queues) embedded.Queues {
		bad = faultqueue.New(q, hostile(seed))
		return bad
	}}
	if wrapStore != nil {
		c.WrapStore = wrapStore(seed)
	}
	start := time.Now()
	w := open(t, c)
	w.patience = 12 * time.Hour
	definition := w.defineStubbornly(patient)
	var wg sync.WaitGroup
	for _, id := range ids(jobs) {
		wg.Go(func() { w.submitStubbornly(definition, id, `{"sku": "a"}`) })
	}
	wg.Wait()
	counts, failures, ended := map[makegood.ProcessState]int{}, 0, time.Duration(0)
	for i, id := range ids(jobs) {
		job := w.stored(id, atEnd)
		counts[job.ProcessState]++
		failures += job.FailureCount
		if want := ending(refuses(i)); job.ProcessState != want {
			t.Errorf("job %s: got %s (%s), want %s", id, job.ProcessState, job.Reason, want)
		}
	}
	ended = time.Since(start)
	// What was held up comes in now, and must change nothing.
	time.Sleep(5 * time.Minute)
	for _, id := range ids(jobs) {
		remote.check(t, w.stored(id, atEnd))
	}
	requests := remote.checkAttempts(t)
	t.Logf("%d jobs ended within %s: %v; %d requests, %d failures, %d forward calls after their undo; queues: %+v",
		jobs, ended.Round(time.Second), counts, requests, failures, remote.tombstones, bad.Injected())
}

func number(job string) (n int) {
	_, _ = fmt.Sscanf(job, "job-%d", &n)
	return n
}
