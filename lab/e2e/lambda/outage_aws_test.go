//go:build aws && linux

package lambda

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/job"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// each is how many orders are at each stage when the outage begins.
	each = 100
	// minutes is how long the outage lasts. A minute of it is a second here: the schedule ticks every second, and
	// StartBy, ten minutes by default, is 25: so long may a slow machine take for its backlog.
	minutes      = 30
	sampleLimits = "timeout: 30s\n    startBy: 25s"
)

// Thirty minutes in which no queue is polled and the schedule goes on, with ticks that come twice or not at all: a
// task that waited has not failed and is sent once more at most, the Supervisor leaves one message for a job at most, and the backlog drains by itself.
func TestHalfAnHourWithoutPollingHarmsNoJob(t *testing.T) {
	var ticks atomic.Int64
	w := open(t, options{ticks: func(n int) int {
		ticks.Store(int64(n))
		return []int{1, 2, 1, 0, 1}[n%5]
	}})
	of := w.order(sampleLimits)
	var ids []string
	submit := func(stage string) {
		for i := range each {
			ids = append(ids, fmt.Sprintf("%s-%d", stage, i))
			if err := w.submit(of, ids[len(ids)-1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	submit("running")
	for _, name := range agents {
		w.mappings[deployed.TasksQueue(name)].Stop()
	}
	submit("sent") // Their tasks are sent, and no agent takes them.
	w.waitFor("every task to be sent", func() bool { return w.unclaimed(ids[each:]) == each })
	w.mappings[deployed.EventsQueue].Stop()
	w.mappings[deployed.SubmissionsQueue].Stop()
	submit("unsent")
	waiting, from, before := w.unclaimed(ids), ticks.Load(), w.depth(deployed.EventsQueue)
	w.waitFor("the outage to pass", func() bool { return ticks.Load() >= from+minutes })
	after := w.depth(deployed.EventsQueue)
	t.Logf("%d orders, %d with a task that nobody took; %d messages waited for the Scheduler, and after %d minutes %d", len(ids), waiting, before, minutes, after)
	if after-before > len(ids) {
		t.Errorf("got %d more messages for the Scheduler, want one for a job at most", after-before)
	}

	began := time.Now()
	for _, m := range w.mappings {
		m.Start()
	}
	ended := w.ends(ids)
	t.Logf("the backlog was gone after %v\n%s", time.Since(began).Round(time.Second), w.said())
	if err := w.violations(ended); err != nil {
		t.Error(err)
	}
	again := 0
	for id, j := range ended {
		if j.FailureCount != 0 {
			t.Errorf("job %s: got %d failures, want none", id, j.FailureCount)
		}
		for _, s := range j.Steps {
			again += s.Forward.Resent
			if s.Forward.Resent > 1 {
				t.Errorf("job %s: step %s was sent again %d times, want once at most", id, s.Name, s.Forward.Resent)
			}
		}
	}
	t.Logf("%d tasks were sent again", again)
	if waiting < each {
		t.Errorf("got %d orders with a task that nobody took, want %d at least: the outage was none", waiting, each)
	}
}

// unclaimed is how many of the jobs have a task out that no agent has taken.
func (w *world) unclaimed(ids []string) (n int) {
	w.t.Helper()
	for _, id := range ids {
		j, err := w.store.Load(w.t.Context(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		held, err := w.scheduler.Held(w.t.Context(), j)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range j.Steps {
			if _, claimed := held[s.Name]; s.Forward.State == job.Dispatched && !claimed {
				n++
			}
		}
	}
	return n
}

func (w *world) waitFor(what string, is func() bool) {
	w.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(until) {
			w.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// depth is how many messages a queue holds that can be seen.
func (w *world) depth(queue string) int {
	w.t.Helper()
	m, name := w.mappings[queue], types.QueueAttributeNameApproximateNumberOfMessages
	out, err := m.Client.GetQueueAttributes(w.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &m.QueueURL, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		w.t.Fatal(err)
	}
	depth, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		w.t.Fatal(err)
	}
	return depth
}
