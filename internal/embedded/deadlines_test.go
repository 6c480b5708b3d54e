package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
)

// late is how long after a deadline the embedded Supervisor may act on it.
const late = time.Second + 100*time.Millisecond

// gaps returns the times between moments.
func gaps(moments []time.Time) []time.Duration {
	var between []time.Duration
	for i := 1; i < len(moments); i++ {
		between = append(between, moments[i].Sub(moments[i-1]))
	}
	return between
}

// checkWithin checks that each got is want or at most late after it.
func checkWithin(t *testing.T, what string, got, want []time.Duration) {
	t.Helper()
	good := len(got) == len(want)
	for i := range want {
		good = good && got[i] >= want[i] && got[i] <= want[i]+late
	}
	if !good {
		t.Errorf("%s: got %v, want %v, each at most %v later", what, got, want, late)
	}
}

// An attempt that says nothing has failed when its CompleteBy passes, and what it did is unknown. The
// next has the same key.
func TestSilenceIsAFailureAtCompleteBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := troupe{script: map[string]work{"charge": func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			if calls.Add(1) == 1 {
				// It ignores the end of its context: nothing it says after that is heard.
				time.Sleep(time.Minute)
			}
			return json.RawMessage(`"ok"`), nil
		}}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, timeout: 10s, retry: {backoff: 1ms, max: 1ms}}]"), "j", `{}`)
		j := w.ends("j", makegood.JobProcessed)
		checkWithin(t, "time between the attempts", gaps(r.moments("charge")), []time.Duration{10 * time.Second})
		charges := r.seen("charge")
		if charges[0].Key != charges[1].Key || charges[1].Attempt != 2 || j.FailureCount != 1 {
			t.Errorf("got keys %s, %s, second attempt %d, %d failures, want one key, 2, 1", charges[0].Key, charges[1].Key, charges[1].Attempt, j.FailureCount)
		}
		time.Sleep(2 * time.Minute)
		if got := len(r.seen("charge")); got != 2 {
			t.Errorf("after the late word: got %d attempts, want 2", got)
		}
	})
}

// An agent that gives up in time says so itself, and need not be waited for.
func TestAnAgentThatEndsWithItsContextReportsBeforeCompleteBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"charge": silent}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, timeout: 20s, retry: {attempts: 1}, undo: {action: refund}}]"), "j", `{}`)
		j := w.ends("j", makegood.JobUndone)
		refund := r.moments("refund")[0].Sub(r.moments("charge")[0])
		if refund < 18*time.Second || refund >= 20*time.Second {
			t.Errorf("undone %s after the attempt began, want a second before its 20 s were over", refund)
		}
		if got := r.seen("refund")[0].Undo.Outcome; got != makegood.OutcomeUnknown || j.FailureCount != 1 {
			t.Errorf("got outcome %s, %d failures, want unknown, 1", got, j.FailureCount)
		}
	})
}

func TestHeartbeatsKeepAnAttemptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"dig": func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			for range 100 {
				time.Sleep(5 * time.Second)
				if err := agent.Heartbeat(ctx); err != nil {
					return nil, err
				}
			}
			return json.RawMessage(`"dug"`), nil
		}}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.patience = time.Hour
		w.submit(w.define("name: long\nsteps: [{name: dig, agent: a, timeout: 10s}]"), "j", `{}`)
		j := w.ends("j", makegood.JobProcessed)
		if got := len(r.seen("dig")); got != 1 || j.FailureCount != 0 {
			t.Errorf("got %d attempts, %d failures, want 1, 0", got, j.FailureCount)
		}
	})
}

func TestRetriesBackOffExponentiallyUpToTheirMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"charge": always(agent.NotApplied(errNo))}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.patience = time.Hour
		w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, retry: {attempts: 8, backoff: 10s, max: 1m}}]"), "j", `{}`)
		j := w.ends("j", makegood.JobError)
		waits := gaps(r.moments("charge"))
		longest := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute, time.Minute, time.Minute}
		for i, wait := range waits {
			if wait > longest[i]+late {
				t.Errorf("wait before retry %d: got %s, want at most %s", i+1, wait, longest[i])
			}
		}
		if len(waits) != 7 || j.FailureCount != 8 || !strings.HasSuffix(j.Reason, "(attempt 8 of 8)") {
			t.Errorf("got %d retries, %d failures, reason %q, want 7, 8, attempt 8 of 8", len(waits), j.FailureCount, j.Reason)
		}
	})
}

func TestRetryAfterIsKeptToUpToTheMaximum(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		90 * time.Second: 90 * time.Second,
		time.Hour:        10 * time.Minute,
	} {
		t.Run(asked.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := troupe{script: map[string]work{"charge": once(agent.RetryAfter(asked, errNo))}}
				w := open(t, embedded.Config{Agents: r.agents("a")})
				w.patience = time.Hour
				w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, retry: {backoff: 10ms, max: 10m}}]"), "j", `{}`)
				w.ends("j", makegood.JobProcessed)
				checkWithin(t, "time between the attempts", gaps(r.moments("charge")), []time.Duration{want})
			})
		})
	}
}

func TestTheTimeoutOfAJobUndoesItAndNeverStopsAnUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{
			"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
				for {
					time.Sleep(20 * time.Second)
					if err := agent.Heartbeat(ctx); err != nil {
						return nil, err
					}
				}
			},
			"release": func(context.Context, makegood.Task) (json.RawMessage, error) {
				time.Sleep(25 * time.Minute)
				return json.RawMessage(`"ok"`), nil
			},
		}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.patience = 3 * time.Hour
		w.submit(w.define(`
name: slow
timeout: 10m
steps:
  - {name: reserve, agent: a, undo: {action: release, timeout: 30m}}
  - {name: charge, agent: a, undo: {action: refund}}
  - {name: ship, agent: a}
`), "j", `{}`)
		j := w.ends("j", makegood.JobUndone)
		if got, want := r.order(), "reserve charge refund release"; got != want {
			t.Errorf("got the actions %s, want %s", got, want)
		}
		if want := "the job's timeout of 10m0s passed"; j.Reason != want {
			t.Errorf("got the reason %q, want %q", j.Reason, want)
		}
		// The charge hears of it at its next heartbeat.
		refund := r.moments("refund")[0].Sub(j.CreatedAt)
		if refund < 10*time.Minute || refund > 10*time.Minute+20*time.Second+late {
			t.Errorf("refunded %s after the birth, want within 20 s after the 10m of the job", refund)
		}
	})
}

func TestOnFailureWaitTriesAgainAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := troupe{script: map[string]work{"second": func(context.Context, makegood.Task) (json.RawMessage, error) {
			if calls.Add(1) <= 4 {
				return nil, agent.NotApplied(errNo)
			}
			return nil, nil
		}}}
		w := open(t, embedded.Config{Agents: r.agents("a")})
		w.patience = 10 * time.Hour
		w.submit(w.define(`
name: waits
onFailure: wait 1h
steps:
  - {name: first, agent: a, undo: {action: back}}
  - {name: second, agent: a, retry: {attempts: 2, backoff: 1ms, max: 1ms}}
`), "j", `{}`)
		j := w.ends("j", makegood.JobProcessed)
		if got, want := r.order(), "first second second second second second"; got != want {
			t.Errorf("got the actions %s, want %s", got, want)
		}
		checkWithin(t, "times between the attempts", gaps(r.moments("second")), []time.Duration{0, time.Hour, 0, time.Hour})
		if j.FailureCount != 4 {
			t.Errorf("got %d failures, want 4", j.FailureCount)
		}
	})
}

// claims counts what a store is asked by agents.
type claims struct {
	store.Store
	taken int
}

func (c *claims) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	c.taken++
	return c.Store.Claim(ctx, slot, claim, until)
}

// Nobody claims a shared step, so silence is counted from its dispatch: startBy and timeout.
func TestASharedStepIsNotClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := troupe{script: map[string]work{"ping": func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
			if calls.Add(1) == 1 {
				time.Sleep(time.Minute)
			}
			if err := agent.Heartbeat(ctx); err == nil {
				t.Errorf("heartbeat of a shared attempt: got no error")
			}
			return json.RawMessage(`"pong"`), nil
		}}}
		var c claims
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapStore: func(s store.Store) store.Store { c.Store = s; return &c }})
		w.submit(w.define(`
name: shared
steps:
  - {name: ping, agent: a, exclusive: false, startBy: 5s, timeout: 10s, retry: {backoff: 1ms, max: 1ms}}
`), "j", `{}`)
		j := w.ends("j", makegood.JobProcessed)
		checkWithin(t, "time between the attempts", gaps(r.moments("ping")), []time.Duration{15 * time.Second})
		if c.taken != 0 || j.FailureCount != 1 {
			t.Errorf("got %d claims, %d failures, want 0, 1", c.taken, j.FailureCount)
		}
		if got := string(stepOf(t, j, "ping").Forward.Output.Inline); got != `"pong"` {
			t.Errorf("got the output %s, want pong", got)
		}
		time.Sleep(time.Minute)
	})
}

// Never-started is not failed: the same attempt is sent again, after 1, 2, 4 times startBy, and from
// the third time on an operator hears of the agent, once for all jobs.
func TestATaskThatNobodyClaimsIsSentAgainUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTap()
		var told bell
		release := p.hold("tasks-a")
		var r troupe
		w := open(t, embedded.Config{Agents: r.agents("a"), WrapQueues: p.wrap, Notifier: &told})
		c := w.define("name: one\nsteps: [{name: charge, agent: a, startBy: 1m}]")
		w.submit(c, "j", `{}`)
		w.submit(c, "k", `{}`)
		start := time.Now()
		time.Sleep(20 * time.Minute)
		tasks, times := p.tasks(t, "a")
		for _, id := range []string{"j", "k"} {
			var sent []time.Time
			for i, task := range tasks {
				if task.Job != id {
					continue
				}
				sent = append(sent, times[i])
				if task.Attempt != 1 {
					t.Errorf("job %s: attempt %d was sent, want only 1", id, task.Attempt)
				}
			}
			checkWithin(t, "times between the tasks of "+id, gaps(sent), []time.Duration{
				time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute,
			})
		}
		if !slices.Equal(told.silent, []string{"a"}) {
			t.Fatalf("alerts: got %v, want one for agent a", told.silent)
		}
		checkWithin(t, "time of the alert", []time.Duration{told.alerts[0].Sub(start)}, []time.Duration{7 * time.Minute})

		release()
		j := w.ends("j", makegood.JobProcessed)
		w.ends("k", makegood.JobProcessed)
		synctest.Wait()
		if got := len(r.seen("charge")); got != 2 || j.FailureCount != 0 {
			t.Errorf("of %d tasks: got %d attempts, %d failures, want 2, 0", len(tasks), got, j.FailureCount)
		}
	})
}

// A step that is running whenever the engine dies may be what kills it.
func TestTwentyInterruptionsOfAStepAreSurvivedTheNextIsAnError(t *testing.T) {
	dir := t.TempDir()
	for run := 1; run <= limits.MaxInterruptions+2; run++ {
		began := make(chan makegood.Task, 1)
		r := troupe{script: map[string]work{"charge": func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			began <- task
			return silent(ctx, task)
		}}}
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
		if run == 1 {
			w.submit(w.define("name: one\nsteps: [{name: charge, agent: a, retry: {attempts: 1}, undo: {action: refund}}]"), "j", `{}`)
		}
		if run == limits.MaxInterruptions+2 {
			j := w.ends("j", makegood.JobError)
			if want := "cut off 21 times by the death of the engine, 18 times while no other attempt ran"; !strings.Contains(j.Reason, want) || j.FailureCount != 0 {
				t.Errorf("got %q, %d failures, want it to say %q, 0", j.Reason, j.FailureCount, want)
			}
			w.stop()
			break
		}
		if task := <-began; task.Attempt != run || task.Key != "j/charge/1" {
			t.Errorf("run %d: got attempt %d under key %s, want %d under j/charge/1", run, task.Attempt, task.Key, run)
		}
		w.die()
	}
}

// What nobody had claimed when the engine died only gets its next number.
func TestAnUnclaimedAttemptIsInterruptedWithoutBeingCounted(t *testing.T) {
	dir := t.TempDir()
	for run := range 30 {
		p := newTap()
		p.hold("tasks-a")
		var r troupe
		w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a"), WrapQueues: p.wrap})
		if run == 0 {
			w.submit(w.define("name: one\nsteps: [{name: charge, agent: a}]"), "j", `{}`)
		} else {
			w.until("j", func(j job.Job) bool { return j.Incarnation == run+1 && stepOf(t, j, "charge").Attempt == run+1 })
		}
		w.stop()
	}
	var r troupe
	w := open(t, embedded.Config{Dir: dir, Agents: r.agents("a")})
	w.ends("j", makegood.JobProcessed)
	if got := r.seen("charge"); len(got) != 1 || got[0].Attempt != 31 {
		t.Errorf("got %+v, want one attempt, the 31st", got)
	}
}

// Error is told to an operator until somebody has heard it; then the job rests.
func TestAnErrorIsToldUntilItWasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := bell{fail: 7}
		r := troupe{script: map[string]work{"charge": always(agent.Final(errNo))}}
		w := open(t, embedded.Config{Agents: r.agents("a"), Notifier: &told})
		w.patience = time.Hour
		w.submit(w.define("name: one\nsteps: [{name: charge, agent: a}]"), "j", `{}`)
		j := w.until("j", func(j job.Job) bool { return j.ProcessState == makegood.JobError && j.Told() })
		if j.Seq != 1 {
			t.Errorf("got %d announcements, want 1", j.Seq)
		}
		time.Sleep(30 * time.Minute)
		heard := told.heard()
		if len(heard) < 8 {
			t.Fatalf("told %d times, want at least 8: 7 failed", len(heard))
		}
		for _, n := range heard {
			if n.Job != "j" || n.Seq != 1 || n.ProcessState != makegood.JobError || n.Reason != "step charge failed: the service says no" {
				t.Errorf("told %+v, want number 1 of job j, Error, with the reason", n)
			}
		}
		if after := told.times[len(heard)-1].Sub(told.times[6]); after > time.Minute+late {
			t.Errorf("heard %s after the last failure, want within a minute", after)
		}
		if len(heard) > 9 {
			t.Errorf("told %d times, want it to end soon after it was heard", len(heard))
		}
	})
}

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("job-%d", i)
	}
	return all
}

// The log of an engine that nobody else is told by has a line of the first of many jobs that stop alike, and one with how many followed.
func TestTheLogHasOneLineOfManyJobsThatStopAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said bytes.Buffer
		logger := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return said.Write(p)
		}), &slog.HandlerOptions{Level: slog.LevelWarn}))
		r := troupe{script: map[string]work{"charge": always(agent.Kind("declined", agent.Final(errNo)))}}
		w := open(t, embedded.Config{Agents: r.agents("a"), Logger: logger})
		w.patience = time.Hour
		c := w.define("name: one\nsteps: [{name: charge, agent: a}]")
		for _, id := range ids(20) {
			w.submit(c, id, `{}`)
		}
		for _, id := range ids(20) {
			w.until(id, func(j job.Job) bool { return j.ProcessState == makegood.JobError && j.Told() })
		}
		w.stop()
		mu.Lock()
		defer mu.Unlock()
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "status=Error step=charge kind=declined") || !strings.Contains(lines[1], "heldBack=") {
			t.Errorf("got\n%s\nwant a line of the first job, and one that counts the others", said.String())
		}
	})
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
