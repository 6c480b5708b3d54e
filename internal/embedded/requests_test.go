package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// forked is the order workflow with two branches, one of which may be skipped.
const forked = `
name: forked
steps:
  - {name: reserve, agent: inventory, startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: release}}
  - {name: charge, agent: payments, needs: [reserve], startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: refund}}
  - {name: pack, agent: inventory, needs: [reserve], when: "${ .input.pack }", startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: unpack}}
  - {name: ship, agent: shipping, needs: [charge, pack], startBy: 20s, timeout: 10s, retry: {attempts: 20, backoff: 1s, max: 5s}, undo: {action: recall}}
`

// People ask for anything at any moment, on a bad day, of jobs whose steps and undos are refused now
// and then. In the end every job is where it was last wanted, and the ledger agrees.
func TestEveryJobEndsAsItShouldWhateverIsAskedOfIt(t *testing.T) {
	seed := seed.Of(t)
	synctest.Test(t, func(t *testing.T) {
		remote := newServices(seed)
		remote.faulty = true
		remote.refuses = remote.onceFor(12)
		w := open(t, embedded.Config{Agents: remote.agents(), WrapQueues: func(q embedded.Queues) embedded.Queues {
			return faultqueue.New(q, hostile(seed))
		}})
		c := w.define(forked)
		var mu sync.Mutex
		granted := map[string]int{}
		var people sync.WaitGroup
		for i, id := range ids(300) {
			people.Go(func() {
				p := person{w: w, id: id, random: rand.New(rand.NewPCG(seed, uint64(i)))}
				w.submitStubbornly(c, id, fmt.Sprintf(`{"pack": %t}`, i%3 > 0))
				p.ask()
				p.settle()
				mu.Lock()
				defer mu.Unlock()
				for _, verb := range p.granted {
					granted[string(verb)]++
				}
			})
		}
		people.Wait()
		// What was held up comes in now, and must change nothing.
		time.Sleep(5 * time.Minute)
		states := map[makegood.ProcessState]int{}
		rounds := 0
		for _, id := range ids(300) {
			j := w.stored(id, func(j job.Job) bool { return j.ProcessState.Finished() })
			states[j.ProcessState]++
			rounds += j.Round
			if j.ProcessState != j.Desired || !j.CompleteBy.IsZero() {
				t.Errorf("job %s: got %s, wanted %s, key %s, want what was wanted, and at rest",
					id, j.ProcessState, j.Desired, j.CompleteBy)
			}
			remote.check(t, j)
		}
		t.Logf("300 jobs in %d rounds ended %v; %d requests, %d forward calls after their undo; granted: %v",
			rounds, states, remote.checkAttempts(t), remote.tombstones, granted)
	})
}

// person asks things of a job.
type person struct {
	w       *world
	id      string
	random  *rand.Rand
	asked   int
	granted []makegood.Verb
}

func (p *person) ask() {
	for range p.random.IntN(6) {
		time.Sleep(time.Duration(p.random.IntN(20_000)) * time.Millisecond)
		p.request(domain.Verbs()[p.random.IntN(len(domain.Verbs()))])
	}
}

// settle lets a job go on that waits for a person, until it is at its end.
func (p *person) settle() {
	for range 1000 {
		j, err := p.w.engine.Job(p.w.t.Context(), p.id)
		switch {
		case err != nil:
			p.w.t.Errorf("job %s: %v", p.id, err)
			return
		case j.ProcessState.Finished():
			return
		case j.Paused():
			p.request(makegood.VerbResume)
		case j.ProcessState == makegood.JobError:
			p.request(makegood.VerbResubmit)
		}
		time.Sleep(5 * time.Second)
	}
	p.w.t.Errorf("job %s does not come to an end", p.id)
}

func (p *person) request(verb makegood.Verb) {
	p.asked++
	r := job.Requested{Verb: verb, Request: fmt.Sprintf("r%d", p.asked)}
	_, verdict, err := p.w.engine.Parts().Scheduler.Request(p.w.t.Context(), p.id, r)
	switch {
	case err != nil:
		p.w.t.Errorf("%s of job %s: %v", verb, p.id, err)
	case verdict.Kind == machine.Applied:
		p.granted = append(p.granted, verb)
	case verdict.Kind == machine.Refused && verdict.Reason == "":
		p.w.t.Errorf("%s of job %s is refused without a reason", verb, p.id)
	}
}
