package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// stuckClosings does not answer for one job before the time of the invocation is over, as a throttled partition would.
type stuckClosings struct{ store.Closings }

func (s stuckClosings) Close(ctx context.Context, slot store.Slot, c store.Closing) (job.Found, error) {
	if slot.Job == "slow" && slot.Step == "second" {
		<-ctx.Done()
		return job.Found{}, ctx.Err()
	}
	return s.Closings.Close(ctx, slot, c)
}

// inTime sends as SQS does: nothing when the time is over.
type inTime struct{ queue.Sender }

func (s inTime) Send(ctx context.Context, name string, messages ...queue.Message) []error {
	if err := ctx.Err(); err != nil {
		return slices.Repeat([]error{err}, len(messages))
	}
	return s.Sender.Send(ctx, name, messages...)
}

const threeSteps = `name: three
steps:
- {name: first, agent: a, undo: {action: back}}
- {name: second, agent: b, needs: [first]}
- {name: third, agent: b, needs: [first]}`

func TestAClosingThatHangsHoldsUpItsOwnJobAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.define(threeSteps)
		var failures []record
		for _, id := range []string{"slow", "good"} {
			w.submit(c, id)
			w.handle(w.done(id, "first"))
			failures = append(failures, w.failed(id, "third", w.claim(id, "third"), job.StepError{Message: "no"}))
		}
		w.forget()
		w.use(func(c *scheduler.Config) { c.Closings, c.Queue = stuckClosings{c.Closings}, inTime{c.Queue} })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		answer, err := w.s.HandleSQS(ctx, events.SQSEvent{Records: failures})
		if err != nil {
			t.Fatal(err)
		}
		if again := answer.BatchItemFailures; len(again) != 1 || again[0].ItemIdentifier != failures[0].MessageId {
			t.Errorf("comes again: %v, want the record of the slow job alone", again)
		}
		w.checkSends(send{"tasks-a", []string{"good"}})
	})
}

func TestPoisonIsPutAwayThoughANeighbourTakesAllTheTime(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Queue = inTime{c.Queue} })
	w.submit(w.define(twoAgents), "slow")
	reply := w.done("slow", "first")
	ctx, over := context.WithCancel(t.Context())
	defer over()
	w.strike = func(operation, of string) faultstore.Effect {
		if operation != "Save" || of != "slow" {
			return faultstore.None
		}
		over()
		return faultstore.FailBefore
	}
	if _, err := w.s.HandleSQS(ctx, events.SQSEvent{Records: []record{reply, w.raw("nonsense")}}); err != nil {
		t.Fatal(err)
	}
	if d, err := w.local.Depth(t.Context(), "quarantine"); err != nil || d.Waiting != 1 || w.s.Stats().Poisoned != 1 {
		t.Errorf("got %d in quarantine, %v, %d counted, want 1 and 1", d.Waiting, err, w.s.Stats().Poisoned)
	}
}

// What follows from a closing is derived under the cause of the event that asked for it, and so is what that event itself
// made due.
func TestNoTaskGoesOutTwiceInOneInvocation(t *testing.T) {
	w := newWorld(t)
	var yaml strings.Builder
	yaml.WriteString("name: fan\nsteps:\n")
	for i := range 20 {
		fmt.Fprintf(&yaml, "- {name: s%d, agent: a, needs: [], undo: {action: back}}\n", i)
	}
	w.submit(w.define(yaml.String()), "j")
	var done []record
	for i := range 10 {
		done = append(done, w.done("j", fmt.Sprint("s", i)))
	}
	w.handle(done...)
	failure := w.failed("j", "s10", w.claim("j", "s10"), job.StepError{Message: "no"})
	w.forget()
	w.handle(failure)
	sent, undos := 0, 0
	for _, s := range w.sends {
		sent += len(s.jobs)
	}
	for _, s := range w.job("j").Steps {
		if s.Undo.State == job.Dispatched {
			undos++
		}
	}
	if sent != undos || undos == 0 {
		t.Errorf("got %d tasks sent for %d undos", sent, undos)
	}
}

// told is somebody who is told, as the caller's own code is.
type told struct {
	notify.Notifier
	do func()
}

func (t told) Announce(context.Context, notify.Notice) error { t.do(); return nil }

func (t told) AgentAlert(context.Context, string, string) error { t.do(); return nil }

// Those who are told may be the caller's own code: it may panic, or ignore that its time is over.
func TestWhoIsToldStopsNothing(t *testing.T) {
	for name, do := range map[string]func(release chan struct{}){
		"panics": func(chan struct{}) { panic("told too much") },
		"hangs":  func(release chan struct{}) { <-release },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				release := make(chan struct{})
				defer close(release)
				w.use(func(c *scheduler.Config) { c.Notifier = told{do: func() { do(release) }} })
				w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
				if again := w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"})); again != nil {
					t.Errorf("comes again: %v", again)
				}
				if j := w.job("j"); j.ProcessState != makegood.JobError || len(j.Untold) != 1 {
					t.Errorf("got %s, %d untold, want Error, and the operator not told yet", j.ProcessState, len(j.Untold))
				}
			})
		})
	}
}
