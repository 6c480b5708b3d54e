//go:build aws && linux

package functions_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/timetable"
	"github.com/makegood-dev/makegood/internal/wire"
)

// stocking is a job of one step, which the agent in Go does.
const stocking = `
name: stocking
steps:
  - name: reserve
    agent: inventory
    with: {order: "${ .job.id }", amount: "${ .input.amount }"}
`

// soon returns a rate of ten minutes or more that fires thirty to forty seconds from now, and then not again for a
// while: a slow machine sweeps before the fire, and ends its job before the next.
func soon(now time.Time) makegood.Duration {
	for every := int64(600); ; every++ {
		if ahead := every - now.Unix()%every; ahead >= 30 && ahead <= 40 {
			return makegood.Duration(time.Duration(every) * time.Second)
		}
	}
}

// appears waits until there is a job.
func (w *world) appears(t *testing.T, id string) job.Job {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		switch j, err := w.store.Load(t.Context(), id); {
		case err == nil:
			return j
		case !errors.Is(err, store.ErrNotFound):
			t.Fatal(err)
		}
	}
	t.Fatalf("there is no job %s after %v", id, patience)
	return job.Job{}
}

// sweepsAnd sweeps, and waits until the log says what that came to.
func sweepsAnd(t *testing.T, sweeps *lambda, want string) {
	t.Helper()
	before := len(sweeps.output.String())
	if got, want := sweeps.invoke(t, saved(t, "schedule.json")), (answer{"response", "null"}); got != want {
		t.Errorf("a sweep answers %+v, want %+v", got, want)
	}
	// What a process prints arrives in its own time.
	for until := time.Now().Add(patience); !strings.Contains(sweeps.output.String()[before:], want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the supervisor logged %s, want %s", sweeps.output.String()[before:], want)
		}
	}
}

// A sweep tells of a fire that is near by a delayed message, and the next sweep does not again. The fire makes one job, at its time,
// though whoever stored the schedule told of it, too, and twice.
func TestAScheduleMakesOneJobHoweverManyTellOfIt(t *testing.T) {
	w := newWorld(t)
	shop, err := services.Start("127.0.0.1:0", services.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	moves := start(t, build(t, functions+"scheduler"), w.environment...)
	works := start(t, build(t, functions+"agent"), append(w.environment[:len(w.environment):len(w.environment)], "MAKEGOOD_AGENT=inventory", "MAKEGOOD_SHOP="+shop.URL())...)
	sweeps := start(t, build(t, functions+"supervisor"), w.environment...)
	defer w.feeds(t, map[string]*lambda{deployed.EventsQueue: moves, deployed.TasksQueue("inventory"): works})()

	compiled := w.define(t, []byte(stocking))
	table := timetable.New(timetable.Config{Schedules: w.store, Jobs: w.store, Submit: w.scheduler.SubmitCurrent})
	stored, _, err := table.Create(t.Context(), makegood.Schedule{
		Name: "restock", Workflow: compiled.Workflow.Name, Every: soon(time.Now()), Input: json.RawMessage(`{"amount": 2}`),
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	sweepsAnd(t, sweeps, `"ahead":1`)
	sweepsAnd(t, sweeps, `"ahead":0`)
	body, err := wire.EncodeScheduleDue(wire.ScheduleDue{Schedule: stored.Name, Key: stored.Key})
	if err != nil {
		t.Fatal(err)
	}
	hint := queue.Message{Body: body, Group: stored.Name, Delay: (time.Until(stored.Key) + time.Second).Truncate(time.Second)}
	if err := errors.Join(w.queues.Send(t.Context(), deployed.EventsQueue, hint, hint)...); err != nil {
		t.Fatal(err)
	}

	id := domain.FireID(stored.Name, stored.Next)
	if j := w.appears(t, id); j.CreatedAt.Before(stored.Next) {
		t.Errorf("%s was made at %v, before its time", id, j.CreatedAt)
	}
	if j := w.end(t, id); j.ProcessState != makegood.JobProcessed {
		t.Errorf("%s: got %s (%s), want Processed", id, j.ProcessState, j.Reason)
	}
	sweepsAnd(t, sweeps, `"msg":"swept"`)
	w.wantDrained(t)
	page, err := w.store.ListJobs(t.Context(), store.Filter{}, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Jobs) != 1 || page.Jobs[0].ID != id {
		t.Errorf("got the jobs %+v, want %s alone", page.Jobs, id)
	}
	after, err := table.Get(t.Context(), stored.Name)
	if next := stored.Next.Add(time.Duration(stored.Every)); err != nil || after.LastJob != id || !after.Next.Equal(next) || after.Problem != "" {
		t.Errorf("got the schedule %+v, %v, want its last job %s and its next fire at %v", after, err, id, next)
	}
}

// wantDrained waits until all events that have come were dealt with.
func (w *world) wantDrained(t *testing.T) {
	t.Helper()
	var depth queue.Depth
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		var err error
		if depth, err = w.queues.Depth(t.Context(), deployed.EventsQueue); err != nil {
			t.Fatal(err)
		}
		if depth == (queue.Depth{}) {
			return
		}
	}
	t.Fatalf("the events queue has %+v after %v, want it empty", depth, patience)
}
