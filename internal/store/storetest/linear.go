package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// linearJobs are the jobs of a history, and clients those that meet on each, with so many calls.
	linearJobs, linearClients, linearCalls = 40, 8, 12
	// linearPatience is how long the checker may look for an order of the calls on one job.
	linearPatience = 20 * time.Second
)

// Linearizable lets many goroutines create, load and save the same jobs, and claim, extend, close and look at the same
// slots, at once, and fails the test unless each answer is that of some order of all calls, one after the other, in
// which a call that had returned comes before one that began later. So an attempt has one winner, none after it was
// closed, an id is created once, and no load and no look is stale.
//
// The seed that it prints decides the calls of each client, and not how the goroutines meet.
func Linearizable(t *testing.T, newHarness func(t *testing.T) Harness) {
	seed := rand.Int64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("the same calls again with %s=%d", seedVariable, seed)
	overlapping, err := linearize(newWorld(t, newHarness(t)), uint64(seed))
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d of %d calls were under way while others began or returned", overlapping, 2*linearJobs*linearClients*linearCalls)
}

// linearize makes a history on each of some jobs and slots, and checks it. It returns how many calls had others beside
// them; without such calls the test proves little.
func linearize(w *world, seed uint64) (overlapping int, err error) {
	for i := range linearJobs {
		job, scene := w.job(fmt.Sprint("linear-", i)), w.scene(fmt.Sprint("linear-", i))
		// No job here is due, so no later test finds it in the index.
		job.CompleteBy = time.Time{}
		for _, h := range []*history{
			{about: "job " + job.ID, zero: sight{}, client: func() client { return &jobClient{world: w, job: job} }},
			{about: "the slot of job " + job.ID, zero: slotState{}, client: func() client { return &slotClient{scene: scene, newest: 1} }},
		} {
			h.run(seed, i)
			for _, call := range h.calls {
				if call.Return > call.Call+1 {
					overlapping++
				}
			}
			if err := h.check(); err != nil {
				return overlapping, err
			}
		}
	}
	return overlapping, nil
}

// state is what the calls read and write, as plain as can be.
type state interface {
	// step reports whether a store in this state may answer so, and returns the state after it.
	step(input, output any) (bool, state)
}

// client asks one thing after the other. The first call has number 0.
type client interface {
	// next returns a call, which reads as the call that it is.
	next(d *rand.Rand, name string, number int) any
	// ask makes the call. An error that is no answer of the contract is given as such.
	ask(input any) (output any, err error)
}

// history is the calls on one job, or on one slot.
type history struct {
	about  string
	zero   state
	client func() client
	// clock returns the order in which calls began and returned.
	clock atomic.Int64
	mu    sync.Mutex
	calls []porcupine.Operation
	err   error
}

// run lets the clients begin at once, and waits for them.
func (h *history) run(seed uint64, number int) {
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range linearClients {
		c, d := h.client(), rand.New(rand.NewPCG(seed, uint64(number*linearClients+i)))
		all.Go(func() {
			<-begin
			for call := range linearCalls {
				h.ask(c, i, c.next(d, fmt.Sprint("client/", i), call))
			}
		})
	}
	close(begin)
	all.Wait()
}

// ask lets a client make a call, and notes it with its answer.
func (h *history) ask(c client, number int, input any) {
	began := h.clock.Add(1)
	output, err := c.ask(input)
	returned := h.clock.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.err = fmt.Errorf("%s: %+v: %w", h.about, input, err)
	}
	h.calls = append(h.calls, porcupine.Operation{ClientId: number, Input: input, Call: began, Output: output, Return: returned})
}

// check looks for an order of the calls that explains their answers.
func (h *history) check() error {
	if h.err != nil {
		return h.err
	}
	result := porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return h.zero },
		Step: func(now, input, output any) (bool, any) { return now.(state).step(input, output) },
	}, h.calls, linearPatience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("no order of the %d calls on %s was found or ruled out within %v", len(h.calls), h.about, linearPatience)
	default:
		return fmt.Errorf("no order of the calls on %s explains their answers:\n%s", h.about, h)
	}
}

// String lists the calls in the order in which they returned.
func (h *history) String() string {
	var text strings.Builder
	for _, c := range h.calls {
		fmt.Fprintf(&text, "%4d to %4d: %+v: %+v\n", c.Call, c.Return, c.Input, c.Output)
	}
	return text.String()
}

// sentinel splits an error into an answer of the contract and one that is none.
func sentinel(err error) (answer, failure error) {
	for _, answer := range []error{store.ErrExists, store.ErrNotFound, store.ErrConflict, store.ErrTaken, store.ErrWithdrawn} {
		if errors.Is(err, answer) {
			return answer, nil
		}
	}
	return nil, err
}
