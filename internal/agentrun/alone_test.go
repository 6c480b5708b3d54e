package agentrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/wire"
)

func alone(task *makegood.Task) { task.Alone = true }

// visits is a log of who came and went.
type visits struct {
	mu  sync.Mutex
	log []string
}

func (v *visits) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, fmt.Sprintf(format, args...))
}

func (w *world) with(config agentrun.Config, h handler) {
	config.Handlers, config.Claims, config.Queue = []agent.Handler{h}, w.table, w.outbox
	config.Tasks, config.Quarantine, config.Instance = "tasks-shop", "quarantine", "i-1"
	w.runner = agentrun.New(config)
}

func TestAClaimSaysHowManyOthersRunInItsProcess(t *testing.T) {
	for _, c := range []struct {
		name   string
		config agentrun.Config
		steps  int
		want   int
	}{
		{"a batch of one", agentrun.Config{}, 1, 0},
		{"a batch of ten", agentrun.Config{}, 10, 9},
		{"a process that takes more beside its batches", agentrun.Config{Others: 4}, 2, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, succeed)
			w.with(c.config, succeed)
			var tasks []makegood.Task
			for i := range c.steps {
				tasks = append(tasks, w.task(fmt.Sprint("s", i)))
			}
			w.wantFailed(w.handle(t.Context(), tasks...))
			for _, claim := range w.table.tried {
				if claim.Beside != c.want {
					t.Errorf("attempt by %s: got %d beside it, want %d", claim.LockedBy, claim.Beside, c.want)
				}
			}
		})
	}
}

// What killed a process comes last, when nobody else can be harmed: all others have replied, and none of those that are to
// run alone as well has been claimed.
func TestATaskThatIsToRunAloneBeginsWhenAllOthersAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v visits
		var w *world
		w = newWorld(t, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			claim := w.table.slot("j/" + task.Step)
			time.Sleep(time.Second)
			v.note("%s works, %d beside, %d claimed, %d told", task.Step, claim.Beside, w.table.claimed(), w.outbox.told())
			return nil, nil
		})
		w.wantFailed(w.handle(t.Context(), w.task("x", alone), w.task("a"), w.task("y", alone), w.task("b"), w.task("shared", shared, alone)))
		slices.Sort(v.log[:3])
		want := []string{
			"a works, 2 beside, 2 claimed, 0 told", "b works, 2 beside, 2 claimed, 0 told", "shared works, 0 beside, 2 claimed, 0 told",
			"x works, 0 beside, 3 claimed, 3 told", "y works, 0 beside, 4 claimed, 4 told",
		}
		if !slices.Equal(v.log, want) {
			t.Errorf("got  %q\nwant %q", v.log, want)
		}
	})
}

// An invocation that has too little time left gives such a task back, unclaimed; not for ever.
func TestATaskThatIsToRunAloneDoesNotBeginAtTheEndOfAnInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, makegood.Task) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			return nil, nil
		})
		invocation := func(deliveries int, tasks ...makegood.Task) []string {
			var event events.SQSEvent
			for _, task := range tasks {
				body, err := wire.EncodeTask(task)
				if err != nil {
					t.Fatal(err)
				}
				event.Records = append(event.Records, events.SQSMessage{
					MessageId: task.Step, Body: body, Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(deliveries)},
				})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			response, _ := w.runner.HandleSQS(ctx, event)
			failed := []string{}
			for _, f := range response.BatchItemFailures {
				failed = append(failed, f.ItemIdentifier)
			}
			return failed
		}
		w.wantFailed(invocation(1, w.task("a"), w.task("x", alone)), "x")
		if claim := w.table.slot("j/x"); claim.Attempt != 0 {
			t.Errorf("it is claimed: %+v", claim)
		}
		w.wantFailed(invocation(3, w.task("b"), w.task("x", alone)))
		w.wantFailed(invocation(1, w.task("y", alone), w.task("z", alone)), "z")
	})
}

// A process that takes task after task lets those that run finish first, and lets nobody in meanwhile.
func TestAProcessThatTakesManyLetsOneRunAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v visits
		var w *world
		began := time.Now()
		w = newWorld(t, nil)
		w.with(agentrun.Config{Others: 9}, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			v.note("%s begins at %v, %d beside", task.Step, time.Since(began), w.table.slot("j/"+task.Step).Beside)
			time.Sleep(task.Timeout.Std() - 2*time.Second)
			return nil, nil
		})
		var running sync.WaitGroup
		comes := func(at time.Duration, step string, takes makegood.Duration, change ...func(*makegood.Task)) {
			running.Go(func() {
				time.Sleep(at)
				w.handle(t.Context(), w.task(step, append(change, func(task *makegood.Task) { task.Timeout = takes + 2*makegood.Second })...))
			})
		}
		comes(0, "a", 10*makegood.Second)
		comes(time.Second, "x", 5*makegood.Second, alone)
		comes(2*time.Second, "b", 5*makegood.Minute)
		comes(20*time.Second, "y", 5*makegood.Minute, alone)
		comes(60*time.Second, "c", makegood.Second)
		running.Wait()
		want := []string{
			"a begins at 0s, 9 beside",
			"x begins at 10s, 0 beside",
			"b begins at 15s, 9 beside",
			// Thirty seconds are enough to wait for one that takes five minutes.
			"y begins at 50s, 9 beside",
			// What kills its process does that in its first minute.
			"c begins at 1m50s, 9 beside",
		}
		if !slices.Equal(v.log, want) {
			t.Errorf("got  %q\nwant %q", v.log, want)
		}
	})
}

// After a minute others may come in beside a task that runs alone, and before they do its claim says so: what ends the process
// then need not be its doing. A claim that cannot be written keeps them out.
func TestWhoeverComesInBesideATaskThatRunsAloneIsInItsClaimBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v visits
		var w *world
		began := time.Now()
		w = newWorld(t, nil)
		w.with(agentrun.Config{Others: 9}, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			x := w.table.slot("j/x")
			v.note("%s begins after %v, x has %d beside it, and until %v", task.Step, time.Since(began).Truncate(time.Minute), x.Beside, x.CompleteBy.Sub(began))
			time.Sleep(task.Timeout.Std() - 2*time.Second)
			return nil, nil
		})
		w.table.faults = []string{"", "unwritten", "unwritten", "lost"}
		var running sync.WaitGroup
		running.Go(func() {
			w.handle(t.Context(), w.task("x", alone, func(task *makegood.Task) { task.Timeout = 5 * makegood.Minute }))
		})
		time.Sleep(time.Second)
		running.Go(func() { w.handle(t.Context(), w.task("c")) })
		running.Wait()
		if w.table.heartbeats != 4 {
			t.Errorf("got %d heartbeats, want one for each time that it was not known to be written, and one more", w.table.heartbeats)
		}
		want := []string{"x begins after 0s, x has 0 beside it, and until 5m0s", "c begins after 1m0s, x has 9 beside it, and until 5m0s"}
		if !slices.Equal(v.log, want) {
			t.Errorf("got  %q\nwant %q", v.log, want)
		}
	})
}

// Two agents of one process share a room: what runs alone has nothing of the other beside it.
func TestATaskThatRunsAloneHasNothingOfAnotherAgentBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v visits
		began := time.Now()
		room := new(agentrun.Room)
		work := func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			v.note("%s begins after %v", task.Step, time.Since(began))
			time.Sleep(5 * time.Second)
			return nil, nil
		}
		one, other := newWorld(t, nil), newWorld(t, nil)
		one.with(agentrun.Config{Others: 1, Room: room}, work)
		other.with(agentrun.Config{Others: 1, Room: room}, work)
		var running sync.WaitGroup
		running.Go(func() { one.handle(t.Context(), one.task("x", alone)) })
		time.Sleep(time.Second)
		running.Go(func() { other.handle(t.Context(), other.task("c")) })
		running.Wait()
		if want := []string{"x begins after 0s", "c begins after 5s"}; !slices.Equal(v.log, want) {
			t.Errorf("got  %q\nwant %q", v.log, want)
		}
	})
}

// Whoever waits to run alone, or for such a one, stops waiting when the process does; the room is open to others then.
func TestWaitingToRunAloneEndsWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.with(agentrun.Config{Others: 9}, func(_ context.Context, task makegood.Task) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			return nil, nil
		})
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		var running sync.WaitGroup
		running.Go(func() { w.handle(t.Context(), w.task("a")) })
		time.Sleep(time.Second)
		running.Go(func() { w.wantFailed(w.handle(ctx, w.task("x", alone)), "0") })
		time.Sleep(time.Second)
		running.Go(func() { w.wantFailed(w.handle(ctx, w.task("b")), "0") })
		running.Wait()
		w.wantFailed(w.handle(t.Context(), w.task("c")))
		if claim := w.table.slot("j/x"); claim.Attempt != 0 {
			t.Errorf("the one that waited is claimed: %+v", claim)
		}
	})
}
