package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const outageYAML = `
name: trip
steps:
  - {name: book, agent: hotels, undo: {action: unbook}}
  - {name: charge, agent: bank, timeout: 20s, retry: {attempts: 8, backoff: 1s, max: 1m}, undo: {action: refund}}
`

const calmYAML = `
name: calm
steps:
  - {name: pack, agent: shop}
`

// outageDay is a day of half an hour: a job a second that needs the bank, and one that does not. The bank is down for ten minutes.
type outageDay struct {
	calls, fails, worst int
	// undone counts the jobs of the bank that did not end well, calm the others that were done while it was down.
	undone, calm int
	// took is how long after the bank was well again the last job was done that had come before.
	took time.Duration
}

const (
	dayOf             = 30 * time.Minute
	downFrom, downFor = 10 * time.Minute, 10 * time.Minute
)

// siren notes the alerts of agents that the breaker has paused.
type siren struct {
	bell
	shut []string
}

func (s *siren) AgentAlert(_ context.Context, agent, paused string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = append(s.shut, agent+": "+paused)
	return nil
}

// live lives through a day. down is what the bank does while it is down.
func live(t *testing.T, down work, breakers ...string) (d outageDay) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		isDown := func() bool { return time.Since(began) >= downFrom && time.Since(began) < downFrom+downFor }
		bank := func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			if isDown() {
				return down(ctx, task)
			}
			return nil, nil
		}
		r := &troupe{script: map[string]work{"charge": bank, "refund": bank}}
		bell := &siren{}
		w := open(t, embedded.Config{Agents: r.agents("hotels", "bank", "shop"), Breakers: breakers, Notifier: bell, Tick: 5 * time.Second})
		w.patience = 3 * time.Hour
		trip, calm := w.define(outageYAML), w.define(calmYAML)
		n := int(dayOf / time.Second)
		for i := range n {
			w.submit(trip, fmt.Sprint("t", i), `{}`)
			w.submit(calm, fmt.Sprint("c", i), `{}`)
			time.Sleep(time.Second)
		}
		for i := range n {
			if j := w.until(fmt.Sprint("t", i), atEnd); j.ProcessState != makegood.JobProcessed {
				d.undone++
			} else if j.CreatedAt.Sub(began) < downFrom+downFor {
				d.took = max(d.took, j.FinishedAt.Sub(began)-downFrom-downFor)
			}
			if j := w.ends(fmt.Sprint("c", i), makegood.JobProcessed); j.FinishedAt.Sub(began) >= downFrom && j.FinishedAt.Sub(began) < downFrom+downFor {
				d.calm++
			}
		}
		second := map[time.Duration]int{}
		for _, action := range []string{"charge", "refund"} {
			for _, at := range r.moments(action) {
				d.calls++
				second[at.Sub(began).Truncate(time.Second)]++
				if at.Sub(began) >= downFrom && at.Sub(began) < downFrom+downFor {
					d.fails++
				}
			}
		}
		for _, calls := range second {
			d.worst = max(d.worst, calls)
		}
		if list, err := w.engine.Parts().Holds.List(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("at the end of the day there are pauses: %v, %v", list, err)
		}
		if t.Log(bell.shut); len(bell.shut) != len(breakers) {
			t.Errorf("alerts of %q, want one for an outage", bell.shut)
		}
	})
	return d
}

// The bank is down for ten minutes: it refuses, or hangs. It sees at most 1.3 times the calls of a day on which it is well,
// and at least three times without the breaker; no job is undone or in Error for it; other agents do not notice; and it is
// found well again, without a stampede.
func TestAnOutageBurnsNoAttempts(t *testing.T) {
	healthy := int(dayOf / time.Second)
	refuses := always(agent.NotApplied(errors.New("connection refused")))
	for name, c := range map[string]struct {
		down work
		most float64
	}{"it refuses": {refuses, 1.05}, "it hangs": {silent, 1.1}} {
		if name == "it hangs" && testing.Short() {
			continue
		}
		d := live(t, c.down, "bank")
		t.Logf("%s: %+v, a healthy day has %d calls", name, d, healthy)
		if most := int(c.most * float64(healthy)); d.calls > most {
			t.Errorf("%s: %d calls, want %d at most", name, d.calls, most)
		}
		if d.undone > 0 {
			t.Errorf("%s: %d jobs were undone or stopped", name, d.undone)
		}
		if want := int(downFor/time.Second) * 95 / 100; d.calm < want {
			t.Errorf("%s: %d jobs of another agent were done meanwhile, want %d", name, d.calm, want)
		}
		if most := limits.MaxProbe + 5*limits.ResumeEvery; d.took > most {
			t.Errorf("%s: all were done %v later, want %v at most", name, d.took, most)
		}
		if d.worst > 20 {
			t.Errorf("%s: %d calls in a second, want no stampede", name, d.worst)
		}
	}
	d := live(t, refuses)
	t.Logf("without the breaker: %+v", d)
	if d.calls < 3*healthy || d.undone < healthy/4 {
		t.Errorf("without the breaker: %d calls and %d jobs undone: the outage is no test", d.calls, d.undone)
	}
}

// A service asks for a pause of forty seconds. No attempt begins meanwhile, of any job, and none is counted, though each step
// has but one; then all are done. A person's pause is not shortened by it.
func TestAServiceAsksAllForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until time.Time
		charge := func(context.Context, makegood.Task) (json.RawMessage, error) {
			if until.IsZero() {
				until = time.Now().Add(40 * time.Second)
			}
			if left := time.Until(until); left > 0 {
				return nil, agent.SlowDown(left, errors.New("429 Too Many Requests"))
			}
			return nil, nil
		}
		r := &troupe{script: map[string]work{"charge": charge}}
		w := open(t, embedded.Config{Agents: r.agents("bank"), Breakers: []string{"*"}})
		w.patience = 10 * time.Minute
		c := w.define("name: one\nsteps: [{name: charge, agent: bank, retry: {attempts: 1}, undo: {action: refund}}]")
		w.submit(c, "first", `{}`)
		time.Sleep(time.Second)
		for _, id := range ids(20) {
			w.submit(c, id, `{}`)
			time.Sleep(time.Second)
		}
		if calls := len(r.seen("charge")); calls != 1 {
			t.Errorf("%d calls during the pause, want 1", calls)
		}
		if n := w.standing(makegood.HoldAgent, "bank"); n != 20 {
			t.Errorf("%d jobs stand still, want 20", n)
		}
		for _, id := range append(ids(20), "first") {
			if j := w.ends(id, makegood.JobProcessed); j.FailureCount != 0 {
				t.Errorf("job %s: %d failures were counted", id, j.FailureCount)
			}
		}
		if calls := len(r.seen("charge")); calls != 22 {
			t.Errorf("%d calls, want 22", calls)
		}
	})
}

// An item of a batch asks for a pause: it holds for the agent, and the attempt of the batch is not counted.
func TestAnItemOfABatchAsksAllForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Time
		bank := agent.New("bank", agent.Do("charge", func(_ context.Context, item int) (int, error) {
			if calls = append(calls, time.Now()); len(calls) == 2 {
				return 0, agent.SlowDown(40*time.Second, errors.New("429 Too Many Requests"))
			}
			return item, nil
		}))
		w := open(t, embedded.Config{Agents: []agent.Handler{bank}})
		w.patience = 2 * time.Minute
		c := w.define(`name: many
steps: [{name: charge, agent: bank, map: {over: "${ [range(3)] }", batch: 3}, with: "${ .item }", retry: {attempts: 1}, undo: none}]`)
		w.submit(c, "j", `{}`)
		time.Sleep(10 * time.Second)
		if n := w.standing(makegood.HoldAgent, "bank"); n != 0 || len(calls) != 3 {
			t.Errorf("%d jobs stand still after %d calls, want none after 3: the batch waits for its next attempt", n, len(calls))
		}
		if paused, err := w.engine.Parts().Holds.List(t.Context()); err != nil || len(paused) != 1 {
			t.Errorf("got %v, %v, want that the agent is paused", paused, err)
		}
		w.ends("j", makegood.JobProcessed)
		if len(calls) != 4 || calls[3].Sub(calls[1]) < 40*time.Second {
			t.Errorf("calls at %v, want one more, after 40 s", calls)
		}
	})
}

// Batches whose items fail say that their agent is ill, as single tasks do.
func TestFailedItemsOfBatchesPauseAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank := agent.New("bank", agent.Do("charge", func(context.Context, int) (int, error) { return 0, errors.New("down") }))
		w := open(t, embedded.Config{Agents: []agent.Handler{bank}, Breakers: []string{"*"}})
		c := w.define(`name: many
steps: [{name: charge, agent: bank, map: {over: "${ [range(3)] }", batch: 3}, with: "${ .item }", undo: none}]`)
		for _, id := range ids(10) {
			w.submit(c, id, `{}`)
			time.Sleep(time.Second)
		}
		if paused, err := w.engine.Parts().Holds.List(t.Context()); err != nil || len(paused) != 1 || !paused[0].Tripped {
			t.Errorf("got %v, %v, want that the breaker has paused the agent", paused, err)
		}
	})
}

// The http agent calls many services: one that asks for a pause delays the attempts that it has answered alone. Nor is it
// tripped.
func TestTheHTTPAgentIsNotPausedForOneService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		call := func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			calls[task.Job]++
			if calls[task.Job] == 1 {
				return nil, agent.SlowDown(40*time.Second, errors.New("429 Too Many Requests"))
			}
			return nil, nil
		}
		r := &troupe{script: map[string]work{"call": call}}
		w := open(t, embedded.Config{Agents: r.agents(makegood.HTTPAgent), Breakers: []string{"*"}})
		c := w.define("name: one\nsteps: [{name: call, agent: http, retry: {attempts: 1}, with: {url: 'https://shop.example'}}]")
		for _, id := range ids(30) {
			w.submit(c, id, `{}`)
			time.Sleep(time.Second)
		}
		if n := len(r.seen("call")); n != 30 {
			t.Errorf("%d calls in the first half minute, want 30", n)
		}
		w.patience = 2 * time.Minute
		for _, id := range ids(30) {
			w.ends(id, makegood.JobProcessed)
		}
	})
}

// A service that answers 429 with Retry-After gets one request each time that it names, of whatever job, and no attempt is
// used up; jobs that call another service do not notice.
func TestAServiceThatSaysWhenIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began, got := time.Now(), map[string]int{}
		transport := func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			got[r.URL.Host]++
			mu.Unlock()
			response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
			if r.URL.Host == "bank.example" && time.Since(began) < 2*time.Minute {
				response.StatusCode, response.Header = http.StatusTooManyRequests, http.Header{"Retry-After": {"30"}}
			}
			return response, nil
		}
		w := open(t, embedded.Config{Agents: []agent.Handler{httpagent.NewOver(through(transport))}})
		c := w.define("name: one\nsteps: [{name: call, agent: http, retry: {attempts: 1}, with: {url: '${ .input }'}}]")
		for i := range 60 {
			w.submit(c, fmt.Sprint("bank", i), `"https://bank.example"`)
			w.submit(c, fmt.Sprint("mail", i), `"https://mail.example"`)
			time.Sleep(950 * time.Millisecond)
		}
		synctest.Wait()
		if got["bank.example"] != 2 || got["mail.example"] != 60 {
			t.Errorf("in 57 seconds these got requests: %v, want 2 and 60", got)
		}
		w.patience = 5 * time.Minute
		for i := range 60 {
			w.ends(fmt.Sprint("bank", i), makegood.JobProcessed)
			w.ends(fmt.Sprint("mail", i), makegood.JobProcessed)
		}
		if n := got["bank.example"]; n != 64 {
			t.Errorf("%d requests to the service that was busy for two minutes, want 60 and one each half minute", n)
		}
	})
}

// through is a transport made of one function.
type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Low traffic: three jobs an hour, each with one attempt. It takes ten failures to trip, so ten jobs are undone; from then on
// the next one that comes after a pause without a job is the test, and jobs that come during the pause wait for it.
func TestLowTrafficTripsAfterTenFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &troupe{script: map[string]work{"charge": always(errors.New("down"))}}
		w := open(t, embedded.Config{Agents: r.agents("bank"), Breakers: []string{"*"}})
		c := w.define("name: one\nsteps: [{name: charge, agent: bank, retry: {attempts: 1}}]")
		for i := range 10 {
			w.submit(c, fmt.Sprint("j", i), `{}`)
			time.Sleep(20 * time.Minute)
			if j, err := w.engine.Job(t.Context(), fmt.Sprint("j", i)); err != nil || !atEnd(j) {
				t.Errorf("job %d: got %+v, %v, want it to have ended", i, j, err)
			}
		}
		if list, err := w.engine.Parts().Holds.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v, want it resumed: no job waits", list, err)
		}
	})
}

// ill is an engine of jobs that need the bank, which is down while it is told to be.
type ill struct {
	*world
	*troupe
	down atomic.Bool
	trip *workflowfile.Compiled
	n    int
}

// newIll returns it with a bank that is down.
func newIll(t *testing.T) *ill {
	o := &ill{}
	o.down.Store(true)
	o.troupe = &troupe{script: map[string]work{"charge": func(context.Context, makegood.Task) (json.RawMessage, error) {
		if o.down.Load() {
			return nil, agent.NotApplied(errors.New("connection refused"))
		}
		return nil, nil
	}}}
	o.world = open(t, embedded.Config{Agents: o.agents("hotels", "bank"), Breakers: []string{"bank"}, Tick: 5 * time.Second})
	o.patience = 20 * time.Minute
	o.trip = o.define(outageYAML)
	return o
}

// more submits jobs, one each second.
func (o *ill) more(n int) {
	for range n {
		o.submit(o.trip, fmt.Sprint("j", o.n), `{}`)
		o.n++
		time.Sleep(time.Second)
	}
}

// bank returns the pause of the bank; the zero value: it has none.
func (o *ill) bank() job.Hold {
	o.t.Helper()
	list, err := o.engine.Parts().Holds.List(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	if len(list) == 0 {
		return job.Hold{}
	}
	return list[0].Hold
}

// trips submits jobs until the breaker has paused the bank, waits for so many probes, and returns the pause.
func (o *ill) trips(probes int) (h job.Hold) {
	o.t.Helper()
	for range 60 {
		if o.more(1); o.bank().Tripped && o.bank().On() {
			break
		}
	}
	first := o.bank()
	for h = first; h.Probes < first.Probes+probes && time.Since(h.Since) < time.Hour; h = o.bank() {
		time.Sleep(time.Second)
	}
	if !h.Tripped || !h.On() || h.Probes != first.Probes+probes {
		o.t.Fatalf("got %+v, want it paused by the breaker, and %d probes later", h, probes)
	}
	return h
}

// allEnd wants that all jobs are done.
func (o *ill) allEnd() {
	o.t.Helper()
	for i := range o.n {
		o.ends(fmt.Sprint("j", i), makegood.JobProcessed)
	}
}

// The bank has recovered, and the next scheduled probe is minutes away: a probe by hand finds that at once. An agent
// that the breaker has not paused cannot be probed.
func TestAnOutageEndsEarlierByAProbeByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newIll(t)
		keeper := o.engine.Parts().Holds
		h := o.trips(5)
		o.down.Store(false)
		time.Sleep(time.Second)
		if left := time.Until(h.Next); left < 4*time.Minute {
			t.Errorf("the next probe comes in %v: no test", left)
		}
		if h, err := keeper.Probe(t.Context(), "bank"); err != nil || h.Next.After(time.Now()) {
			t.Errorf("got %+v, %v, want a probe now", h, err)
		}
		time.Sleep(2 * time.Second)
		if h := o.bank(); h.On() || h.ReleasedBy != "breaker" || h.Probes != 6 {
			t.Errorf("got %+v, want it resumed after the sixth probe", h)
		}
		o.allEnd()
		o.pause(makegood.HoldAgent, "hotels")
		for _, name := range []string{"bank", "hotels"} {
			if _, err := keeper.Probe(t.Context(), name); !errors.Is(err, holds.ErrNotHeld) {
				t.Errorf("agent %s: got %v, want to hear that the breaker has not paused it", name, err)
			}
		}
	})
}

// A bank that was well for a while, and is down again, is probed as soon and as often as the first time.
func TestAnOutageAfterAnotherTripsTheBreakerAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newIll(t)
		for range 2 {
			o.down.Store(true)
			if h := o.trips(0); h.Probes != 0 || h.Next.Sub(h.Since) != limits.FirstProbe {
				t.Errorf("got %+v, want its first probe after %v", h, limits.FirstProbe)
			}
			if h := o.trips(3); h.Next.Sub(h.Since) < 140*time.Second {
				t.Errorf("got %+v, want its fourth probe after 150 s", h)
			}
			o.down.Store(false)
			o.allEnd()
			time.Sleep(5 * time.Minute)
			if h := o.bank(); h.Name != "" {
				t.Errorf("got %+v, want no pause", h)
			}
		}
	})
}

// A person opens the breaker, and new work flows at once. While the bank is down it trips again, and is probed as
// rarely as before; when the bank is well, opening it is the end of the outage.
func TestAPersonOpensTheBreakerInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newIll(t)
		was, calls := o.trips(4), len(o.seen("charge"))
		o.resume(makegood.HoldAgent, "bank")
		if o.more(1); len(o.seen("charge")) == calls {
			t.Error("nothing was sent to the bank in the second after it was resumed")
		}
		h := o.trips(0)
		if !h.Since.After(was.Since) || h.Probes != was.Probes || h.Next.Sub(h.Since) != 160*time.Second {
			t.Errorf("got %+v, want a second pause, and its next probe after 160 s", h)
		}
		o.down.Store(false)
		o.resume(makegood.HoldAgent, "bank")
		o.more(1)
		if j := o.ends(fmt.Sprint("j", o.n-1), makegood.JobProcessed); j.FinishedAt.Sub(j.CreatedAt) > time.Second {
			t.Errorf("a new job took %v, want it done at once", j.FinishedAt.Sub(j.CreatedAt))
		}
		o.allEnd()
	})
}
