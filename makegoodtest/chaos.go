package makegoodtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/queue/faultqueue"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

const (
	// badLives is how many lives of the engine may be bad, at most; the one after them is a good one.
	badLives = 3
	// lifeCalls is after how many calls at most a bad life ends.
	lifeCalls = 40
	// failRate is the rate at which a call of the engine fails, before or after its effect.
	failRate = 0.02
	// lostAsked and lostAnswer are the rates at which a request to an agent, or its answer, is lost.
	lostAsked, lostAnswer = 0.1, 0.2
)

var errNoAnswer = errors.New("chaos: no answer came from the service")

// badQueues are the rates of what befalls messages in a bad life.
func badQueues(seed uint64) faultqueue.Options {
	return faultqueue.Options{Seed: seed, Duplicate: 0.2, Lose: 0.05, Delay: 0.2, Reorder: 1}
}

// Chaos runs the job once for each seed from 1 to seeds, with new services, on bad days: messages are lost, doubled,
// delayed and reordered, calls of the engine fail before and after they had their effect, requests to an agent or its
// answers are lost, and the engine is killed up to three times; after the last time no more faults occur. Then, a
// little after the end of the job, Check is asked. Such a job may use up its attempts and end Undone, or in Error
// when an undo uses them up.
//
// A violation fails the test as in CrashEverywhere, with the line that replays its seed. The seed decides about all
// faults; the Go runtime decides which goroutine meets which, so a replay may need a few tries.
func Chaos(t *testing.T, c Case, seeds int) {
	t.Helper()
	first, last := uint64(1), uint64(seeds)
	if *seedFlag != 0 {
		first, last = *seedFlag, *seedFlag
	}
	var found violations
	for seed := first; seed <= last && !found.enough(); seed++ {
		found.run(chaosRun(t, c, seed), replay(t, "seed", fmt.Sprint(seed)), fmt.Sprint("seed ", seed))
	}
	found.fail(t)
}

func chaosRun(t *testing.T, c Case, seed uint64) (report string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newWorld(t, c)
		d := &dice{random: rand.New(rand.NewPCG(seed, 0))}
		lives, lived := 1+d.below(badLives), false
		for n := 0; n < lives && !lived; n++ {
			w.open(w.badLife(d, seed+uint64(n)<<32))
			lived = w.lived()
		}
		for !lived {
			w.open(faults{})
			lived = w.lived()
		}
		if _, err := w.verdict(); err != nil {
			report = w.report(err)
		}
	})
	return report
}

// badLife makes the faults of a life that ends after a while.
func (w *world) badLife(d *dice, seed uint64) faults {
	left := 1 + d.below(lifeCalls)
	return faults{
		strike: func(call) effect {
			left--
			switch {
			case left == 0:
				return faultstore.CrashBefore + effect(d.below(2))
			case d.hit(failRate):
				return faultstore.FailBefore + effect(d.below(2))
			}
			return faultstore.None
		},
		queues: badQueues(seed),
		handle: func(ctx context.Context, a agent.Handler, task makegood.Task) (json.RawMessage, error) {
			if d.hit(lostAsked) {
				w.noteSuffered("what " + attempt(task) + " asks of agent " + task.Agent + " was lost")
				return nil, errNoAnswer
			}
			output, err := a.Handle(ctx, task)
			if err == nil && d.hit(lostAnswer) {
				w.noteSuffered("what agent " + task.Agent + " answered to " + attempt(task) + " was lost")
				return nil, errNoAnswer
			}
			return output, err
		},
	}
}

// dice are random numbers for many goroutines.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) hit(rate float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.Float64() < rate
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}
