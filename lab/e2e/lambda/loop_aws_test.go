//go:build aws && linux

package lambda

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

// steps is how many steps the long job has: each is a hop of the Scheduler and one of the agent.
const steps = 60

// sequence is a workflow of steps one after the other, whose tasks are sent again when nobody claims them for
// two seconds.
func sequence() []byte {
	var yaml strings.Builder
	yaml.WriteString("name: sequence\nonFailure: stop\nsteps:\n")
	for i := range steps {
		fmt.Fprintf(&yaml, "  - {name: s%d, agent: inventory, action: reserve, startBy: 2s, timeout: 3s, with: {order: \"${ .job.id }-%d\", amount: 1}, undo: none}\n", i, i)
	}
	return []byte(yaml.String())
}

// A job of sixty steps is one chain of requests, which Lambda would break as a recursive loop: with
// RecursiveLoop: Allow, as template.yaml has it, it passes; with that removed its chain is broken at the
// sixteenth hop, and it limps from one silence that the Supervisor notices to the next.
func TestASequenceOfSixtyStepsNeedsRecursiveLoopAllow(t *testing.T) {
	terminates := []bool{false, true}
	if queues := standin.SQS(t); strings.HasPrefix(queues.Product, "MiniStack") {
		t.Logf("deviates: %s drops the X-Ray header of SendMessageBatch, so that no chain can be broken there", queues.Product)
		terminates = []bool{false}
	}
	for _, terminate := range terminates {
		w := open(t, options{traced: true, terminate: terminate})
		if err := w.submit(w.define(sequence()), "long"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		atDrop, dropped := w.doneAtFirstDrop("long")
		j := w.ends([]string{"long"})["long"]
		t.Logf("terminate %v: %s after %v, helped %d times, %d steps done when it ended or was first broken", terminate, j.ProcessState, time.Since(began).Round(time.Millisecond), helped(j), atDrop)
		if j.ProcessState != makegood.JobProcessed {
			t.Errorf("terminate %v: got %s (%s), want Processed", terminate, j.ProcessState, j.Reason)
		}
		if dropped != terminate || terminate && atDrop > lambdahost.MaxHops {
			t.Errorf("terminate %v: the chain was broken: %v, with %d steps done, want broken: %v, and at most %d done", terminate, dropped, atDrop, terminate, lambdahost.MaxHops)
		}
		if terminate && helped(j) == 0 {
			t.Errorf("terminate %v: the job ended by itself, want the Supervisor to have helped it", terminate)
		}
		w.stop()
	}
}

// doneAtFirstDrop waits until a function is refused as recursive, or the job has ended, and returns how many steps
// are done then.
func (w *world) doneAtFirstDrop(id string) (done int, dropped bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); time.Now().Before(until); <-tick.C {
		for _, f := range w.functions {
			dropped = dropped || f.Counts.Recursive.Load() > 0
		}
		j, err := w.store.Load(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		if done = 0; dropped || j.ProcessState.Finished() {
			for _, s := range j.Steps {
				if s.Forward.State == job.Done {
					done++
				}
			}
			return done, dropped
		}
	}
	w.t.Fatalf("%s neither ended nor was dropped", id)
	return 0, false
}

// helped is how often a task was sent again or tried again after a silence.
func helped(j job.Job) int {
	times := j.FailureCount
	for _, s := range j.Steps {
		times += s.Forward.Resent
	}
	return times
}
