package holds_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
)

func (w *world) trip(k *holds.Keeper, want bool) {
	w.Helper()
	if tripped, err := k.Trip(w.Context(), "payments", "its last 10 attempts failed"); tripped != want || err != nil {
		w.Errorf("tripped: got %v, %v, want %v", tripped, err, want)
	}
}

// the returns the pause of the agent; the zero value: it has none.
func (w *world) the(agent string) job.Hold {
	w.Helper()
	held, err := w.store.Holds(w.Context(), true)
	w.ok(err)
	for _, h := range held.Holds {
		if h.Kind == makegood.HoldAgent && h.Name == agent {
			return h
		}
	}
	return job.Hold{}
}

// due releases every second for so long. It returns the times after which a job became the probe, and these jobs.
func (w *world) due(k *holds.Keeper, since time.Time, long time.Duration) (after []time.Duration, probes []string) {
	w.Helper()
	for n := w.the("payments").Probes; time.Since(since) < long; time.Sleep(time.Second) {
		w.ok(k.Release(w.Context()))
		if h := w.the("payments"); h.Probes > n {
			n, after, probes = h.Probes, append(after, time.Since(since)), append(probes, h.Probe)
		}
	}
	return after, probes
}

// The breaker lets one job through after ten seconds, then after twice as long each time, up to five minutes: another each
// time. One process trips it, and only once. A success of before proves nothing; that of a probe resumes the agent.
func TestTheBreakerLetsOneJobThroughAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lost = func(string) bool { return true } // A probe that fails is held again.
		k := w.keeper()
		w.held(50, "agent payments")
		w.trip(k, true)
		w.trip(w.keeper(), false)
		began := time.Now()
		after, probes := w.due(k, began, 25*time.Minute)
		want := []time.Duration{10, 30, 70, 150, 310, 610, 910, 1210}
		for i, a := range after {
			if i >= len(want) || a != want[i]*time.Second {
				t.Errorf("probes after %v, want %v seconds", after, want)
				break
			}
		}
		known := map[string]bool{}
		for _, p := range probes {
			known[p] = true
		}
		if len(after) != len(want) || len(known) != len(probes) {
			t.Errorf("probes %v after %v, want %d different ones", probes, after, len(want))
		}
		w.ok(k.Heal(t.Context(), "payments", false, began.Add(limits.HoldsFresh)))
		if h := w.the("payments"); !h.On() {
			t.Errorf("an attempt of before has resumed it: %+v", h)
		}
		w.lost = nil
		w.ok(k.Heal(t.Context(), "payments", false, began.Add(limits.FirstProbe)))
		if h := w.the("payments"); h.On() || h.ReleasedBy != "breaker" {
			t.Errorf("got %+v, want it resumed by the breaker", h)
		}
		w.supervise(k, 10)
		w.everyOnce(50)
	})
}

// An agent that is paused again while its jobs go on is not probed more often than before.
func TestAnAgentThatIsIllAgainIsProbedAsRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lost = func(string) bool { return true }
		k := w.keeper()
		w.held(500, "agent payments")
		w.trip(k, true)
		w.due(k, time.Now(), 100*time.Second)
		w.ok(k.Heal(t.Context(), "payments", false, time.Now()))
		w.ok(k.Release(t.Context()))
		w.trip(k, true)
		if h := w.the("payments"); h.Probes != 3 || !h.On() || h.Next.Sub(h.Since) != 80*time.Second {
			t.Errorf("got %+v, want the fourth probe after 80s", h)
		}
	})
}

// With no job that waits there is no probe: the agent is resumed after ten seconds, and what comes next is the test.
func TestWithNoJobThatWaitsTheAgentIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.trip(k, true)
		time.Sleep(limits.FirstProbe - time.Second)
		w.ok(k.Release(t.Context()))
		if h := w.the("payments"); !h.On() {
			t.Errorf("resumed too early: %+v", h)
		}
		time.Sleep(time.Second)
		w.ok(k.Release(t.Context()))
		if h := w.the("payments"); h.On() {
			t.Errorf("got %+v, want it resumed", h)
		}
		w.supervise(k, 10)
		if h := w.the("payments"); h.Name != "" {
			t.Errorf("got %+v, want none", h)
		}
	})
}

// The pause that a service asked for ends by its time, the latest that was asked for. A person's pause stays, takes the
// place of any other, and is neither probed nor ended; that of the breaker probes no earlier than the service wants.
func TestAServiceAsksForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		slow := func(d time.Duration) job.Hold {
			w.ok(k.SlowDown(t.Context(), "payments", time.Now().Add(d), "429"))
			return w.the("payments")
		}
		began := time.Now()
		slow(20 * time.Second)
		slow(10 * time.Second)
		if h := slow(30 * time.Second); h.Until.Sub(began) != 30*time.Second || h.By != "slow down" {
			t.Errorf("got %+v, want it until 30s", h)
		}
		w.trip(k, false)
		w.held(3, "agent payments")
		w.due(k, began, 30*time.Second)
		if h := w.the("payments"); !h.On() {
			t.Errorf("got %+v, want it paused", h)
		}
		w.due(k, began, 31*time.Second)
		if h := w.the("payments"); h.On() {
			t.Errorf("got %+v, want it resumed", h)
		}
		w.supervise(k, 5)
		w.everyOnce(3)

		w.trip(k, true)
		if h := slow(time.Minute); !h.Tripped || time.Until(h.Next) != time.Minute {
			t.Errorf("got %+v, want the next probe in a minute", h)
		}
		if h := w.pause(k, makegood.HoldAgent, "payments"); h.Automatic() || h.By != "anna" {
			t.Errorf("got %+v, want the pause of a person", h)
		}
		if h := slow(time.Minute); h.By != "anna" || !h.Next.IsZero() {
			t.Errorf("got %+v, want the pause of a person as it was", h)
		}
		w.ok(k.Heal(t.Context(), "payments", false, time.Now().Add(time.Hour)))
		w.due(k, time.Now(), 10*time.Minute)
		if h := w.the("payments"); !h.On() || h.Probes > 0 {
			t.Errorf("got %+v, want it paused", h)
		}
	})
}

// An agent begins a task of a probe, and of no other job.
func TestAProbeIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := w.keeper()
		w.held(1, "agent payments")
		w.trip(k, true)
		w.due(k, time.Now(), 11*time.Second)
		r := holds.NewReader(w.store, nil)
		for id, want := range map[string]bool{"payments-00000": false, "another": true} {
			if got, err := r.Holds(t.Context(), makegood.Task{Job: id, Agent: "payments"}); got != want || err != nil {
				t.Errorf("%s is held: got %v, %v, want %v", id, got, err, want)
			}
		}
	})
}

// A probe by hand comes now, but no sooner than the first: the success of an attempt that was opened before all knew
// of the pause proves nothing. The breaker's own waits do not grow by it; what the breaker has not paused has none.
func TestAProbeByHandComesNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lost = func(string) bool { return true }
		k := w.keeper()
		if _, err := k.Probe(t.Context(), "payments"); !errors.Is(err, holds.ErrNotHeld) {
			t.Errorf("not paused: got %v, want %v", err, holds.ErrNotHeld)
		}
		w.held(50, "agent payments")
		w.trip(k, true)
		began := time.Now()
		for _, at := range []time.Duration{0, 100 * time.Second} {
			w.due(k, began, at)
			if h, err := k.Probe(t.Context(), "payments"); err != nil || h.Next.Sub(began) != max(at, limits.FirstProbe) {
				t.Errorf("asked after %v: got %+v, %v", at, h, err)
			}
		}
		_, err := k.Probe(t.Context(), "payments") // Asked for twice, it is one.
		w.ok(err)
		for n, wait := range []time.Duration{80 * time.Second, 160 * time.Second} {
			w.ok(k.Release(t.Context()))
			if h := w.the("payments"); h.Probes != 4+n || time.Until(h.Next) != wait {
				t.Errorf("got %d probes, the next after %v, want %d, and %v", h.Probes, time.Until(h.Next), 4+n, wait)
			}
			time.Sleep(wait)
		}
		_, err = k.Pause(t.Context(), makegood.HoldAgent, "payments", "", "anna")
		w.ok(err)
		if _, err := k.Probe(t.Context(), "payments"); !errors.Is(err, holds.ErrNotHeld) {
			t.Errorf("paused by a person: got %v, want %v", err, holds.ErrNotHeld)
		}
	})
}
