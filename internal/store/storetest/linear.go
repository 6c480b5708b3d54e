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

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// linearJobs are the jobs of a history, and clients those who meet on each, with so many calls.
	linearJobs, linearClients, linearCalls = 40, 8, 12
	// linearPatience is how long the checker may look for an order of the calls on one job.
	linearPatience = 20 * time.Second
)

// Linearizable lets many goroutines create, load, claim and save the same jobs at once, and fails the
// test unless each answer is that of some order of all calls, one after the other, in which a call that
// had returned comes before one that began later. So an attempt has one winner, none after its
// withdrawal, an id is created once, and no load is stale.
//
// The seed that it prints decides who asks for what, and not how the goroutines meet.
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
	t.Logf("%d of %d calls were under way while others began or returned", overlapping, linearJobs*linearClients*linearCalls)
}

// linearize makes a history on each of some jobs and checks it. It gives how many calls had others
// beside them, without which there is nothing to see.
func linearize(w *world, seed uint64) (overlapping int, err error) {
	for i := range linearJobs {
		h := &history{w: w, job: w.job(fmt.Sprint("linear-", i)), begin: make(chan struct{})}
		// Nothing here is due, so no later test finds it in the index.
		h.job.CompleteBy = time.Time{}
		var all sync.WaitGroup
		for number := range linearClients {
			c := &client{history: h, number: number, Rand: rand.New(rand.NewPCG(seed, uint64(i*linearClients+number)))}
			all.Go(c.run)
		}
		close(h.begin)
		all.Wait()
		for _, call := range h.calls {
			if call.Return > call.Call+1 {
				overlapping++
			}
		}
		if err := h.check(); err != nil {
			return overlapping, err
		}
	}
	return overlapping, nil
}

// kind is what is asked of a store.
type kind string

const (
	creates kind = "create"
	loads   kind = "load"
	claims  kind = "claim"
	opens   kind = "save"
)

// asked is a call. Which fields count depends on its kind.
type asked struct {
	kind kind
	by   string
	// attempt is the one that is claimed, or that a save opens; zero: it withdraws what is open.
	attempt int
	// seen is the job as a save was decided on it.
	seen sight
	// ends: the save ends the slot, and does not rest on the claims.
	ends bool
}

// said is the answer to a call: a sentinel or nil, and what a load gave.
type said struct {
	err  error
	seen sight
}

// sight is all that matters here of a job: the register that the calls read and write. The zero value
// is no job.
type sight struct {
	rev, claimsRev int64
	// creator is whose Create won, and open the attempt that may be claimed.
	creator string
	open    int
	// holder has the slot of attempt held.
	held   int
	holder string
}

// step says whether a store in this state may answer so, and the state after it.
func (s sight) step(a asked, got said) (bool, sight) {
	want, next := said{}, s
	switch {
	case a.kind == creates && s.rev > 0:
		want.err = store.ErrExists
	case a.kind == creates:
		next = sight{rev: 1, creator: a.by, open: 1}
	case s.rev == 0:
		want.err = store.ErrNotFound
	case a.kind == loads:
		want.seen = s
	case a.kind == claims:
		next, want.err = s.claim(a)
	case s.rev != a.seen.rev, !a.ends && s.claimsRev != a.seen.claimsRev:
		want.err = store.ErrConflict
	default:
		next.rev++
		next.open = a.attempt
		if a.ends {
			next.held, next.holder = 0, ""
		}
	}
	return got == want, next
}

func (s sight) claim(a asked) (sight, error) {
	switch {
	case s.held == a.attempt && s.holder == a.by:
		return s, nil
	case s.open != a.attempt:
		return s, store.ErrWithdrawn
	case s.held >= a.attempt:
		return s, store.ErrTaken
	}
	s.held, s.holder = a.attempt, a.by
	s.claimsRev++
	return s, nil
}

// history is the calls on one job.
type history struct {
	w   *world
	job makegood.Job
	// begin lets all clients begin at once.
	begin chan struct{}
	// clock gives the order in which calls began and returned.
	clock atomic.Int64
	mu    sync.Mutex
	calls []porcupine.Operation
	err   error
}

// check looks for an order of the calls that explains their answers.
func (h *history) check() error {
	if h.err != nil {
		return h.err
	}
	result := porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return sight{} },
		Step: func(state, input, output any) (bool, any) { return state.(sight).step(input.(asked), output.(said)) },
	}, h.calls, linearPatience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("no order of the %d calls on job %s was found or ruled out within %v", len(h.calls), h.job.ID, linearPatience)
	default:
		return fmt.Errorf("no order of the calls on job %s explains their answers:\n%s", h.job.ID, h)
	}
}

// String tells the calls in the order in which they returned.
func (h *history) String() string {
	var text strings.Builder
	for _, c := range h.calls {
		a, s := c.Input.(asked), c.Output.(said)
		fmt.Fprintf(&text, "%4d to %4d: %s %s", c.Call, c.Return, a.by, a.kind)
		switch a.kind {
		case claims:
			fmt.Fprintf(&text, " #%d", a.attempt)
		case opens:
			fmt.Fprintf(&text, " over %+v: opens #%d, ends the slot: %t", a.seen, a.attempt, a.ends)
		}
		if a.kind == loads && s.err == nil {
			fmt.Fprintf(&text, ": %+v\n", s.seen)
			continue
		}
		fmt.Fprintf(&text, ": %v\n", s.err)
	}
	return text.String()
}

// client asks one thing after the other.
type client struct {
	*rand.Rand
	*history
	number int
	// last is the job as this client loaded it last, and newest the newest attempt that it knows of.
	last   makegood.Job
	newest int
}

func (c *client) run() {
	name := fmt.Sprint("client/", c.number)
	<-c.begin
	c.ask(asked{kind: creates, by: name})
	c.ask(asked{kind: loads, by: name})
	for range linearCalls - 2 {
		switch n := c.IntN(10); {
		case n < 3:
			c.ask(asked{kind: loads, by: name})
		case n < 8:
			// Mostly the newest attempt, sometimes one that is over.
			c.ask(asked{kind: claims, by: name, attempt: max(1, c.newest-c.IntN(4)/3)})
		default:
			a := asked{kind: opens, by: name, seen: sightOf(c.last), ends: c.IntN(2) == 0}
			if c.IntN(4) > 0 {
				a.attempt = c.newest + 1
			}
			c.ask(a)
		}
	}
}

// ask makes a call and notes it with its answer.
func (c *client) ask(a asked) {
	began := c.clock.Add(1)
	got, err := c.call(a)
	returned := c.clock.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = fmt.Errorf("%s of job %s by %s: %w", a.kind, c.job.ID, a.by, err)
	}
	c.calls = append(c.calls, porcupine.Operation{ClientId: c.number, Input: a, Call: began, Output: got, Return: returned})
}

// call asks the store. An error that is no answer of the contract is given as such.
func (c *client) call(a asked) (said, error) {
	var got said
	var err error
	job, ctx := c.job, c.w.ctx
	switch a.kind {
	case creates:
		job.Reason = a.by
		err = c.w.store.Create(ctx, job)
	case loads:
		if job, err = c.w.store.Load(ctx, job.ID); err == nil {
			c.last, got.seen = job, sightOf(job)
			c.newest = max(c.newest, job.Open["reserve"], slot(job).Attempt)
		}
	case claims:
		err = c.w.store.Claim(ctx, job.ID, "reserve", c.w.claim(a.attempt, a.by, time.Hour))
	default:
		err = c.w.store.Save(ctx, c.change(a))
	}
	for _, answer := range []error{store.ErrExists, store.ErrNotFound, store.ErrConflict, store.ErrTaken, store.ErrWithdrawn} {
		if errors.Is(err, answer) {
			got.err, err = answer, nil
		}
	}
	return got, err
}

func (c *client) change(a asked) store.Change {
	change := store.Change{Job: c.last.Clone(), Seen: c.last.CompleteBy, OnClaims: !a.ends}
	// A nonce of its own, by which a store may know its own write again.
	change.Job.LockedBy = fmt.Sprint(a.by, ":", c.clock.Load())
	change.Job.Open = nil
	if a.attempt > 0 {
		change.Job.Open = map[string]int{"reserve": a.attempt}
	}
	if a.ends {
		change.Ended = []string{"reserve"}
	}
	return change
}

func sightOf(job makegood.Job) sight {
	held := slot(job)
	return sight{
		rev: job.Rev, claimsRev: job.Claims.Rev, creator: job.Reason, open: job.Open["reserve"], held: held.Attempt, holder: held.LockedBy,
	}
}
