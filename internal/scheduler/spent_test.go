package scheduler_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
	"github.com/makegood-dev/makegood/internal/wire"
)

// spentOn counts what a job of one step costs from its birth until it has come as far as a test wants.
func spentOn(t *testing.T, until func(w *world)) job.Spent {
	t.Helper()
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Counts = true })
	w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a, timeout: 30s, retry: {attempts: 1}}]")
	body, err := wire.EncodeSubmit(wire.Submit{Workflow: "one", ID: "j", Input: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	w.handle(w.raw(body))
	before := w.job("j").Spent
	until(w)
	return w.job("j").Spent.Minus(before)
}

// A reply brings what its attempt has cost, as it says. Of one that says nothing a task that was sent, received and deleted is
// reckoned, and a claim if it has one; of an attempt that is silent an invocation besides.
func TestWhatAnAttemptHasCostIsCounted(t *testing.T) {
	const request = job.SpentParts
	for name, c := range map[string]struct {
		until func(w *world)
		want  job.Spent
	}{
		"a reply":                 {func(w *world) { w.handle(w.done("j", "first")) }, job.Spent{Writes: 1, Requests: 6 * request}},
		"a reply without a claim": {func(w *world) { w.handle(w.succeeded("j", "first", job.Claim{Attempt: 1})) }, job.Spent{Requests: 6 * request}},
		"a reply that says it": {func(w *world) {
			reply := job.StepSucceeded{Reply: w.by("j", "first", w.claim("j", "first")), Output: wire.Inline(json.RawMessage(`1`))}
			body, err := wire.EncodeReply("j", reply, job.Spent{Writes: 100, HalfReads: 7, GBMicros: 9})
			if err != nil {
				w.t.Fatal(err)
			}
			w.handle(w.raw(body))
		}, job.Spent{Writes: 100, HalfReads: 7, GBMicros: 9, Requests: 3 * request}},
		"silence": {func(w *world) {
			w.claim("j", "first")
			w.now = w.now.Add(time.Minute)
			w.handle(w.deadline("j"))
		}, job.Spent{Writes: 1, Requests: 7 * request, Invocations: request}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spentOn(t, c.until); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// The time of a function is paid by the job that it works for, and one that it has worked for before has no part in it.
func TestTheTimeOfAFunctionIsCountedForTheJobItWorksFor(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.use(func(c *scheduler.Config) {
		c.Counts, c.Clock = true, spend.NewClock(1024, func() time.Time { return now })
	})
	w.define("name: one\nsteps: [{name: first, agent: a}, {name: second, agent: a}]")
	for _, id := range []string{"j", "k"} {
		body, err := wire.EncodeSubmit(wire.Submit{Workflow: "one", ID: id, Input: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		w.handle(w.raw(body))
	}
	w.strike = func(op, _ string) faultstore.Effect {
		if op == "Load" {
			now = now.Add(10 * time.Millisecond)
		}
		return faultstore.None
	}
	before := w.job("j").Spent
	w.handle(w.done("j", "first"))
	if got := w.job("j").Spent.Minus(before); got.GBMicros != 10_000 || got.Invocations != job.SpentParts {
		t.Errorf("got %+v, want 10 ms of 1 GB, and an invocation", got)
	}
}
