//go:build aws && linux

package lambda

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// Orders while function processes are killed, run into their timeouts and are throttled: nothing is lost, no
// step is advanced twice, nothing happens twice at the shop, and no attempt reaches it twice.
func TestOrdersUnderKillsTimeoutsAndThrottles(t *testing.T) {
	jobs, kills := 2000, 200
	if !strings.HasPrefix(standin.DynamoDB(t).Product, "DynamoDB Local") {
		// MiniStack is some times slower; there a sample keeps the run short.
		jobs, kills = 300, 30
	}
	seed := seed.Of(t) // which process is struck when depends on the machine too
	w := open(t, options{})
	began := time.Now()
	ids := w.submitAndStrike(jobs, kills, rand.New(rand.NewPCG(seed, 0)))
	submitted := time.Since(began)
	ended := w.ends(ids)
	t.Logf("%d jobs, %d kills: submitted after %v, done after %v\n%s", jobs, kills, submitted.Round(time.Second), time.Since(began).Round(time.Second), w.said())
	if err := w.violations(ended); err != nil {
		t.Errorf("%v", err)
	}
	var deaths, timeouts, throttled int64
	for _, f := range w.functions {
		deaths += f.Counts.Deaths.Load()
		timeouts += f.Counts.Timeouts.Load()
		throttled += f.Counts.Throttled.Load()
	}
	// A process may have answered in the moment in which it was struck, and dies in its next invocation or in none.
	if deaths < int64(kills/2) || timeouts == 0 || throttled == 0 {
		t.Errorf("got %d deaths in an invocation, %d timeouts, %d throttles, want %d deaths at least, and some of the others", deaths, timeouts, throttled, kills/2)
	}
}

// submitAndStrike submits jobs, four at a time, and kills a working process after every few of them; some it
// stops instead, so that they run into their timeouts, and some invocations it throttles.
func (w *world) submitAndStrike(jobs, kills int, random *rand.Rand) (ids []string) {
	of := w.order("timeout: 3s")
	work := make(chan string)
	var submitting sync.WaitGroup
	for range 4 {
		submitting.Go(func() {
			for id := range work {
				if err := w.submit(of, id); err != nil {
					w.t.Errorf("submit %s: %v", id, err)
				}
			}
		})
	}
	for i := range jobs {
		ids = append(ids, fmt.Sprintf("o-%05d", i))
		work <- ids[i]
		if i%(jobs/kills) != 0 {
			continue
		}
		w.strike(syscall.SIGKILL, random)
		if i%(10*jobs/kills) == 0 {
			w.strike(syscall.SIGSTOP, random)
			w.functions[victims[random.IntN(len(victims))]].Throttle(3)
		}
	}
	close(work)
	submitting.Wait()
	// After the last kill, so that none of them ends by that instead.
	for range 3 {
		w.strike(syscall.SIGSTOP, random)
	}
	return ids
}

// victims are the functions that are struck.
var victims = []string{"scheduler", "scheduler", "inventory", "shipping", "http", "supervisor"}

// strike signals one working process of a function that runs. It waits until it finds one.
func (w *world) strike(signal syscall.Signal, random *rand.Rand) {
	strike(w.t, signal, random, w.fleet)
}

func strike(t *testing.T, signal syscall.Signal, random *rand.Rand, among ...*fleet) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		f := among[random.IntN(len(among))]
		if f.functions[victims[random.IntN(len(victims))]].Signal(signal, random.IntN) {
			return
		}
	}
	t.Fatal("no function works")
}
