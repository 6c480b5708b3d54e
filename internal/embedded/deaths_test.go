package embedded_test

import (
	"encoding/json"
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
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// lifespan lets an engine die after so many calls of its store and queues; zero: never.
type lifespan struct {
	mu   sync.Mutex
	left int
	gone bool
	died chan struct{}
}

// spend takes a call off, and reports whether it is the last, or comes after that.
func (l *lifespan) spend() (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left == 0 {
		l.gone = true
	}
	return l.gone
}

func (l *lifespan) isOver() bool {
	select {
	case <-l.died:
		return true
	default:
		return false
	}
}

// wrap puts the death, and the faults of a bad day, between an engine and its store and queues.
func (l *lifespan) wrap(c embedded.Config, day faultqueue.Options) embedded.Config {
	die := sync.OnceFunc(func() { close(l.died) })
	c.WrapStore = func(inner store.Store) store.Store {
		s := faultstore.New(inner, func(faultstore.Call) faultstore.Effect {
			if l.spend() {
				return faultstore.CrashAfter
			}
			return faultstore.None
		})
		s.OnCrash = die
		return s
	}
	c.WrapQueues = func(inner embedded.Queues) embedded.Queues {
		day.OnCrash = func(faultqueue.Call) { die() }
		day.Plan = func(faultqueue.Call) faultqueue.Fault {
			if l.spend() {
				return faultqueue.CrashBefore
			}
			return faultqueue.None
		}
		return faultqueue.New(inner, day)
	}
	return c
}

// Hundreds of jobs, hostile queues, faulty services, people who ask for things, and an engine that dies
// in the middle of it, time and again.
func TestManyJobsEndAsTheyShouldThoughTheEngineDiesOnABadDay(t *testing.T) {
	seed := seed.Of(t)
	synctest.Test(t, func(t *testing.T) {
		const jobs, deaths = 200, 8
		random := rand.New(rand.NewPCG(seed, 3))
		remote := newServices(seed)
		remote.faulty = true
		remote.refuses = remote.onceFor(12)
		dir := memoryDir(t)
		for life := range deaths {
			l := &lifespan{left: 500 + random.IntN(8000), died: make(chan struct{})}
			w := open(t, l.wrap(embedded.Config{Dir: dir, Agents: remote.agents()}, hostile(seed+uint64(life))))
			for i, id := range ids(jobs) {
				go l.harass(w, id, rand.New(rand.NewPCG(seed, uint64(life*jobs+i))))
			}
			<-l.died
			w.stop()
		}
		w := open(t, embedded.Config{Dir: dir, Agents: remote.agents(), WrapQueues: func(q embedded.Queues) embedded.Queues {
			return faultqueue.New(q, hostile(seed))
		}})
		c := w.define(forked)
		var people sync.WaitGroup
		for _, id := range ids(jobs) {
			people.Go(func() {
				w.submitStubbornly(c, id, `{"pack": true}`)
				p := person{w: w, id: id}
				p.settle()
			})
		}
		people.Wait()
		time.Sleep(5 * time.Minute)
		states, interruptions := map[makegood.ProcessState]int{}, 0
		for _, id := range ids(jobs) {
			j := w.stored(id, func(j job.Job) bool { return j.ProcessState.Finished() })
			states[j.ProcessState]++
			for _, s := range j.Steps {
				interruptions += s.Forward.Interruptions + s.Undo.Interruptions
			}
			remote.check(t, j)
		}
		t.Logf("%d jobs ended %v after %d deaths: %d requests, %d claimed attempts cut off, %d forward calls after their undo",
			jobs, states, deaths, remote.checkAttempts(t), interruptions, remote.tombstones)
	})
}

// harass submits a job and asks something of it, until the engine dies.
func (l *lifespan) harass(w *world, id string, random *rand.Rand) {
	c, err := workflowfile.Parse("test.yaml", []byte(forked))
	for defined := false; !defined && err == nil; defined = w.engine.Define(w.t.Context(), c) == nil {
		if l.isOver() {
			return
		}
	}
	submission := scheduler.Submission{ID: id, Definition: c.Hash, Input: json.RawMessage(`{"pack": true}`)}
	for submitted := false; !submitted; {
		_, _, err := w.engine.Submit(w.t.Context(), submission)
		if submitted = err == nil; !submitted && l.isOver() {
			return
		}
	}
	for n := 0; !l.isOver(); n++ {
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
		verb := domain.Verbs()[random.IntN(len(domain.Verbs()))]
		// The engine may be dead, or the verb be refused: both are as good as never having asked.
		_, _, _ = w.engine.Parts().Scheduler.Request(w.t.Context(), id, job.Requested{Verb: verb, Request: fmt.Sprintf("%d-%d", time.Now().UnixNano(), n)})
	}
}
