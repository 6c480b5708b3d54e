package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/together"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// timed is a queue whose requests take five milliseconds.
type timed struct{ *world }

func (q timed) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	select {
	case <-time.After(5 * time.Millisecond):
		return q.world.Send(ctx, name, messages...)
	case <-ctx.Done():
		errs := make([]error, len(messages))
		for i := range errs {
			errs[i] = context.Cause(ctx)
		}
		return errs
	}
}

// asDeployed has the world send as the function does.
func (w *world) asDeployed() {
	w.use(func(c *scheduler.Config) { c.Queue = together.New(timed{w}) })
}

// sizes are how many tasks each request to a queue had, in their order.
func (w *world) sizes(name string) (sizes []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sends {
		if s.queue == name {
			sizes = append(sizes, len(s.jobs))
		}
	}
	return sizes
}

// Submissions that arrive together, whichever way: by how many requests their first tasks leave. A request has ten at
// most.
func TestTheFirstTasksOfSubmissionsThatArriveTogetherLeaveTogether(t *testing.T) {
	const n = 10
	for _, c := range []struct {
		name, workflow, queue string
		submit                func(*world)
		want                  string
	}{
		{"in a batch of messages", twoAgents, "tasks-a", func(w *world) { w.handle(w.submissions("two", n)...) }, "[10]"},
		{
			"in a batch of messages, behind an inline step", "name: two\nsteps: [{name: first, agent: a, inline: true, timeout: 2s}, {name: second, agent: b}]", "tasks-b",
			func(w *world) {
				function(w, func(_ context.Context, task makegood.Task) (json.RawMessage, error) { return json.RawMessage(`1`), nil })
				w.handle(w.submissions("two", n)...)
			}, "[1 9]",
		},
		{"by as many callers of a process, as by the schedules of one minute", twoAgents, "tasks-a", func(w *world) { w.submitAtOnce(n) }, "[1 9]"},
		{"by a caller", twoAgents, "tasks-a", func(w *world) { w.submitAtOnce(1) }, "[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.asDeployed()
				w.define(c.workflow)
				began := time.Now()
				c.submit(w)
				if got := fmt.Sprint(w.sizes(c.queue)); got != c.want {
					t.Errorf("requests of so many tasks: got %s, want %s", got, c.want)
				}
				if took := time.Since(began); took > 10*time.Millisecond {
					t.Errorf("it took %v, want two requests' time at most", took)
				}
			})
		})
	}
}

// submitAtOnce has n callers submit a job each.
func (w *world) submitAtOnce(n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, _, err := w.s.SubmitCurrent(w.t.Context(), "two", scheduler.Submission{ID: fmt.Sprint("job-", i), Input: json.RawMessage(`{}`)}); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

// One task of a request that several jobs share is not taken. Its own job makes up for it alone, and the others go on.
func TestATaskThatIsNotTakenHarmsNoOtherJobOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.asDeployed()
		w.define(twoAgents)
		w.deny = func(_ string, m queue.Message) error {
			switch jobOf(m) {
			case "job-3":
				return errBroken
			case "job-5":
				return queue.Refused("it is too large")
			}
			return nil
		}
		w.submitAtOnce(10)
		for i := range 10 {
			j := w.job(fmt.Sprint("job-", i))
			if stopped := j.ProcessState == makegood.JobError; stopped != (i == 5) || !stopped && j.Steps[0].Attempt != 1 {
				t.Errorf("%s is %s, in attempt %d, want that only the refused one has stopped", j.ID, j.ProcessState, j.Steps[0].Attempt)
			}
		}
		w.deny = nil
		w.forget()
		w.handle(w.record("job-3", job.Submitted{})) // As an event that comes again, or its deadline later.
		w.checkSends(send{"tasks-a", []string{"job-3"}})
	})
}

// The process is killed when ten jobs are stored and their tasks wait for a request that hangs, or are in it. Their
// messages come again, and each task is sent: none of it was kept anywhere but in the jobs.
func TestKilledBetweenTheSaveAndTheSharedRequestNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(twoAgents)
		w.use(func(c *scheduler.Config) { c.Queue = together.New(hangs{timed{w}}) })
		batch := w.submissions("two", 10)
		killed, kill := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errors.New("killed"))
		defer kill()
		var all sync.WaitGroup
		for half := range 2 { // Two invocations' worth, so that one waits for the other's request.
			all.Go(func() {
				response, err := w.s.HandleSQS(killed, events.SQSEvent{Records: batch[5*half : 5*half+5]})
				if err != nil || len(response.BatchItemFailures) != 5 {
					t.Errorf("got %d records to deliver again, %v, want all five", len(response.BatchItemFailures), err)
				}
			})
		}
		all.Wait()
		w.asDeployed()
		w.forget()
		if failed := w.handle(batch...); failed != nil {
			t.Errorf("wants again: %v, want none", failed)
		}
		if got := fmt.Sprint(w.sizes("tasks-a")); got != "[10]" {
			t.Errorf("requests of so many tasks: got %s, want [10]", got)
		}
		for i := range 10 {
			if j := w.job(fmt.Sprint("job-", i)); j.Rev != 1 || j.Steps[0].Attempt != 1 {
				t.Errorf("%s has revision %d, attempt %d, want 1 and 1: the first birth counts", j.ID, j.Rev, j.Steps[0].Attempt)
			}
		}
	})
}

// hangs is a queue whose requests end with their context alone.
type hangs struct{ timed }

func (hangs) Send(ctx context.Context, _ string, messages ...queue.Message) []error {
	<-ctx.Done()
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = context.Cause(ctx)
	}
	return errs
}
