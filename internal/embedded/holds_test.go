package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/agentdoor"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
)

const tripYAML = `
name: trip
timeout: 10m
steps:
  - {name: book, agent: hotels, undo: {action: unbook}}
  - {name: charge, agent: bank, timeout: 30s, startBy: 30m, undo: {action: refund}}
`

// slowly does something that takes a while.
func slowly(d time.Duration) work {
	return func(ctx context.Context, _ makegood.Task) (json.RawMessage, error) {
		select {
		case <-time.After(d):
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w *world) pause(kind makegood.HoldKind, name string) {
	w.t.Helper()
	if _, err := w.engine.Parts().Holds.Pause(w.t.Context(), kind, name, "the bank is down", "anna"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) resume(kind makegood.HoldKind, name string) {
	w.t.Helper()
	if _, err := w.engine.Parts().Holds.Resume(w.t.Context(), kind, name, "anna"); err != nil {
		w.t.Fatal(err)
	}
}

// standing counts the jobs that stand still because of a hold.
func (w *world) standing(kind makegood.HoldKind, name string) int {
	w.t.Helper()
	list, err := w.engine.Parts().Holds.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range list {
		if h.Kind == kind && h.Name == name {
			return h.Jobs
		}
	}
	return 0
}

// An outage: jobs queue up at the bank, and it is paused for an hour, which is longer than a job may take. What was begun is
// finished; of what was queued, and of what comes in meanwhile, nothing is sent, fails, or is undone. The engine is killed in
// between. Resumed, all are done, gently, and each is charged once.
func TestAnAgentIsPausedThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, during = 120, 80
		r := troupe{script: map[string]work{"charge": slowly(10 * time.Second)}}
		c := embedded.Config{Dir: t.TempDir(), Agents: r.agents("hotels", "bank"), Concurrency: embedded.Concurrency{Agents: map[string]int{"hotels": 10, "bank": 10}}, Tick: 5 * time.Second}
		w := open(t, c)
		compiled := w.define(tripYAML)
		for i := range before {
			w.submit(compiled, fmt.Sprint("b", i), `{}`)
		}
		time.Sleep(11 * time.Second)
		w.pause(makegood.HoldAgent, "bank")
		for i := range during {
			w.submit(compiled, fmt.Sprint("d", i), `{}`)
		}
		time.Sleep(30 * time.Minute)
		begun := len(r.seen("charge"))
		if begun < 10 || begun > 30 {
			t.Errorf("%d charges were begun, want those of one to three batches", begun)
		}
		if n, want := w.standing(makegood.HoldAgent, "bank"), before+during-begun; n != want {
			t.Errorf("%d jobs stand still, want %d", n, want)
		}
		w.stop()
		w = open(t, c)
		w.patience = time.Hour
		compiled = w.define(tripYAML)
		time.Sleep(30 * time.Minute)
		if now := len(r.seen("charge")); now != begun {
			t.Errorf("%d charges were begun while the bank was paused", now-begun)
		}
		j, err := w.engine.Job(t.Context(), "d0")
		if err != nil || !j.Paused() || j.HeldBy != "agent bank" || j.HeldReason != "by anna: the bank is down" {
			t.Errorf("got %+v, %v, want a job that says what holds it", j, err)
		}
		_, verdict, err := w.engine.Parts().Scheduler.Request(t.Context(), "d0", job.Requested{Verb: makegood.VerbResume})
		if err != nil || verdict.Kind != machine.Refused || verdict.Reason != "agent bank is paused: makegood resume --whole-agent bank" {
			t.Errorf("got %+v, %v, want to be told what to do", verdict, err)
		}
		resumed := time.Now()
		w.resume(makegood.HoldAgent, "bank")
		w.submit(compiled, "new", `{}`)
		w.ends("new", makegood.JobProcessed)
		if took := time.Since(resumed); took > 2*time.Minute {
			t.Errorf("a new job took %v: new work flows at once", took)
		}
		for i := range during {
			w.ends(fmt.Sprint("d", i), makegood.JobProcessed)
		}
		time.Sleep(10 * time.Minute)
		for i := range before {
			j, err := w.engine.Job(t.Context(), fmt.Sprint("b", i))
			if err != nil || j.ProcessState != makegood.JobProcessed || j.FailureCount != 0 || j.HeldBy != "" {
				t.Errorf("got %+v, %v, want it processed, without a failure", j, err)
			}
		}
		times := map[string]int{}
		for _, task := range r.seen("charge") {
			times[task.Job]++
		}
		for id, n := range times {
			if n != 1 {
				t.Errorf("job %s was charged %d times", id, n)
			}
		}
		first := 0
		for _, at := range r.moments("charge") {
			if at.After(resumed) && at.Before(resumed.Add(time.Minute)) {
				first++
			}
		}
		if first > limits.ResumeFirst+10 {
			t.Errorf("%d were charged in the first minute, want %d and new ones", first, limits.ResumeFirst)
		}
		if list, err := w.engine.Parts().Holds.List(t.Context()); err != nil || len(list) != 0 || len(times) != before+during+1 {
			t.Errorf("got %v, %v, and %d jobs charged, want nothing held, and %d", list, err, len(times), before+during+1)
		}
	})
}

// A pause that lasts a moment costs nobody the time after which an unclaimed task is sent again.
func TestAShortPauseLosesNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := troupe{script: map[string]work{"charge": slowly(2 * time.Second)}}
		w := open(t, embedded.Config{Agents: r.agents("hotels", "bank"), Concurrency: embedded.Concurrency{Agents: map[string]int{"hotels": 10, "bank": 10}}})
		w.patience = 5 * time.Minute
		compiled := w.define(tripYAML)
		for i := range 50 {
			w.submit(compiled, fmt.Sprint("j", i), `{}`)
		}
		for range 5 {
			time.Sleep(time.Second)
			w.pause(makegood.HoldAgent, "bank")
			time.Sleep(time.Second)
			w.resume(makegood.HoldAgent, "bank")
		}
		for i := range 50 {
			if j := w.ends(fmt.Sprint("j", i), makegood.JobProcessed); j.FailureCount != 0 {
				t.Errorf("got %+v, want no failure", j)
			}
		}
	})
}

// A workflow is paused: its jobs are stored and begin nothing, and those of others go on.
func TestAWorkflowIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r troupe
		w := open(t, embedded.Config{Agents: r.agents("hotels", "bank", "a", "b")})
		w.patience = 5 * time.Minute
		trip, two := w.define(tripYAML), w.define(twoSteps)
		w.pause(makegood.HoldWorkflow, "trip")
		w.submit(trip, "t", `{}`)
		w.submit(two, "two", `{"text":"x"}`)
		w.ends("two", makegood.JobProcessed)
		time.Sleep(time.Hour)
		if n := len(r.seen("book")); n != 0 || w.standing(makegood.HoldWorkflow, "trip") != 1 {
			t.Errorf("%d begun, and %d stand still, want none, and 1", n, w.standing(makegood.HoldWorkflow, "trip"))
		}
		w.resume(makegood.HoldWorkflow, "trip")
		w.ends("t", makegood.JobProcessed)
	})
}

// An agent outside is paused: who asks for tasks is given none, and those that it has are replied to as ever.
func TestAnAgentOutsideIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, embedded.Config{Outside: []embedded.Outside{{Name: "harbour"}}})
		compiled := w.define(ferryYAML)
		w.submit(compiled, "f-1", `{}`)
		loading := w.take("h-1")
		w.pause(makegood.HoldAgent, "harbour")
		w.submit(compiled, "f-2", `{}`)
		if kind := w.replies("f-1", loading); kind != machine.Applied {
			t.Errorf("a reply while it is paused: %s, want it applied", kind)
		}
		tasks, err := w.engine.Door().Take(t.Context(), "harbour", agentdoor.Ask{Instance: "h-1", Max: 10, Wait: 10 * time.Millisecond})
		if err != nil || len(tasks) != 0 {
			t.Errorf("got %v, %v, want no task", tasks, err)
		}
		if n := w.standing(makegood.HoldAgent, "harbour"); n != 2 {
			t.Errorf("%d jobs stand still, want 2", n)
		}
		w.resume(makegood.HoldAgent, "harbour")
		if sailing := w.take("h-1"); sailing.said.Step != "sail" {
			t.Errorf("got %+v, want the task of the job that is older", sailing)
		}
	})
}

// A task that is in the queue of an agent outside when it is paused is let go, and its job is held.
func TestATaskOfAnAgentOutsideIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, embedded.Config{Outside: []embedded.Outside{{Name: "harbour"}}})
		w.submit(w.define(ferryYAML), "f-1", `{}`)
		w.pause(makegood.HoldAgent, "harbour")
		tasks, err := w.engine.Door().Take(t.Context(), "harbour", agentdoor.Ask{Instance: "h-1", Max: 10, Wait: time.Second})
		if err != nil || len(tasks) != 0 {
			t.Fatalf("got %v, %v, want no task", tasks, err)
		}
		j := w.until("f-1", func(j job.Job) bool { return j.HeldBy != "" && j.Steps[0].Forward.State == job.NotStarted })
		if j.Steps[0].Forward.Tries != 0 || j.FailureCount != 0 {
			t.Errorf("got %+v, want an attempt that is not counted", j.Steps[0].Forward)
		}
		w.resume(makegood.HoldAgent, "harbour")
		if again := w.take("h-1"); again.said.Attempt != 2 {
			t.Errorf("got attempt %d, want the next one", again.said.Attempt)
		}
	})
}
