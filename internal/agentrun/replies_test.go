package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
)

// takes makes an agent whose steps, named by durations, take that long.
func takes(_ context.Context, task makegood.Task) (json.RawMessage, error) {
	d, err := time.ParseDuration(task.Step)
	time.Sleep(d)
	return nil, err
}

// wantSent checks when the replies of which call were sent: "50ms#1 50ms#1 1s#2".
func (w *world) wantSent(want string) {
	w.t.Helper()
	var got []string
	for _, s := range w.outbox.sent {
		got = append(got, s.at.String()+"#"+string(rune('0'+s.calls)))
	}
	if strings.Join(got, " ") != want {
		w.t.Errorf("sent: got %s, want %s", strings.Join(got, " "), want)
	}
}

func TestRepliesTravelTogetherWithoutWaitingForSlowNeighbours(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string
		want  string
	}{
		{"alone: at once", []string{"10ms"}, "10ms#1"},
		{"the last takes along what waits", []string{"10ms", "20ms", "30ms"}, "30ms#1 30ms#1 30ms#1"},
		{"the first waits for 50ms at most", []string{"10ms", "30ms", "2s"}, "60ms#1 60ms#1 2s#2"},
		{"who comes later waits anew", []string{"10ms", "100ms", "2s"}, "60ms#1 150ms#2 2s#3"},
		{"of long ones the first waits for a quarter of its time", []string{"400ms", "490ms", "2s"}, "500ms#1 500ms#1 2s#2"},
		{"and for a quarter of a second at most", []string{"4s", "4200ms", "4300ms", "9s"}, "4.25s#1 4.25s#1 4.55s#2 9s#3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, takes)
				var tasks []makegood.Task
				for _, step := range c.steps {
					tasks = append(tasks, w.task(step))
				}
				w.wantFailed(w.handle(t.Context(), tasks...))
				w.wantSent(c.want)
			})
		})
	}
}

// An attempt of 20 ms is done after 4; waiting 50 ms for company would be the end of its reply.
func TestAReplyWithLittleTimeWaitsForHalfOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, takes)
		short := func(task *makegood.Task) { task.Timeout = 20 * makegood.Millisecond }
		w.wantFailed(w.handle(t.Context(), w.task("4ms", short), w.task("2s")))
		w.wantSent("12ms#1 2s#2")
	})
}

// A record that ends without a reply must not keep the others waiting.
func TestADroppedRecordLetsTheRepliesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, takes)
		taken := w.task("5ms")
		w.table.answer = func(context.Context, string) { time.Sleep(20 * time.Millisecond) }
		w.table.heldBy("j/5ms", "i-2:x", 3)
		w.wantFailed(w.handle(t.Context(), taken, w.task("0s")))
		w.wantSent("20ms#1")
	})
}

func TestEachReplyGoesToTheQueueThatWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, takes)
		other := func(task *makegood.Task) { task.ReplyTo = "other" }
		w.wantFailed(w.handle(t.Context(), w.task("1ms"), w.task("2ms", other), w.task("3ms"), w.task("4ms", other)))
		got := map[string]int{}
		for _, s := range w.outbox.sent {
			got[s.queue]++
		}
		if got["events"] != 2 || got["other"] != 2 || w.outbox.calls != 2 {
			t.Errorf("got %v with %d calls, want two for each queue, with 2", got, w.outbox.calls)
		}
	})
}

// One entry of a batch is not taken, twice. Only that one is sent again.
func TestAReplyThatIsNotTakenIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, takes)
		left := 2
		w.outbox.refuse = func(_ int, _ string, m queue.Message) error {
			if strings.Contains(m.Body, `"1ms"`) && left > 0 {
				left--
				return errDown
			}
			return nil
		}
		w.wantFailed(w.handle(t.Context(), w.task("1ms"), w.task("2ms")))
		w.wantCounters(2, 0, 0, 2, 0, 0, 0)
		if len(w.outbox.sent) != 2 || w.outbox.calls != 3 {
			t.Errorf("got %d messages with %d calls, want 2 with 3", len(w.outbox.sent), w.outbox.calls)
		}
	})
}

// The queue is down, or hangs. The outcome is told for as long as it may be said; then the record
// fails, and its redelivery finds the attempt claimed.
func TestAnOutcomeThatCannotBeToldFailsItsRecord(t *testing.T) {
	for name, hang := range map[string]time.Duration{"down": 0, "hangs": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := newWorld(t, takes)
				w.outbox.refuse = func(int, string, queue.Message) error {
					time.Sleep(hang)
					return errDown
				}
				task := w.task("1s")
				w.wantFailed(w.handle(t.Context(), task), "0")
				w.wantCounters(1, 0, 0, 0, 0, 0, 0)
				if spent := time.Since(began); spent < 8*time.Second || spent > 12*time.Second || w.outbox.calls < 3 {
					t.Errorf("gave up after %v and %d calls, want about 10s and at least 3", spent, w.outbox.calls)
				}
				w.outbox.refuse = nil
				w.wantFailed(w.handle(t.Context(), task))
				w.wantCounters(1, 1, 0, 0, 0, 0, 0)
				w.wantSilence()
			})
		})
	}
}

// The reply itself is at fault, so no attempt will have a better one: the step fails, and says why.
func TestAReplyThatIsRefusedIsReplacedByAFinalFailure(t *testing.T) {
	w := newWorld(t, gives(`"too large"`))
	w.outbox.refuse = func(_ int, _ string, m queue.Message) error {
		if strings.Contains(m.Body, "StepSucceeded") {
			return queue.Refused("2097152 bytes, the limit is 1048576")
		}
		return nil
	}
	w.wantFailed(w.handle(t.Context(), w.task("pay")))
	w.wantFailure("pay", job.StepError{
		Message: "the reply cannot be sent: refused: 2097152 bytes, the limit is 1048576", Applied: makegood.AppliedUnknown,
	})
	w.wantCounters(1, 0, 0, 0, 1, 0, 0)
}

func TestAReplyThatIsRefusedTwiceFailsItsRecord(t *testing.T) {
	w := newWorld(t, fails(errors.New("no")))
	w.outbox.refuse = func(int, string, queue.Message) error { return queue.Refused("never") }
	w.wantFailed(w.handle(t.Context(), w.task("pay")), "0")
	if w.outbox.calls != 2 {
		t.Errorf("got %d calls, want 2", w.outbox.calls)
	}
}

// A reply that has little time left is flushed by its own goroutine; that must not cut the time of
// the others that it takes along.
func TestAHurriedReplyDoesNotCutItsCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, takes)
		short := func(task *makegood.Task) { task.Timeout = 100 * makegood.Millisecond }
		w.outbox.refuse = func(int, string, queue.Message) error {
			time.Sleep(200 * time.Millisecond)
			return nil
		}
		w.handle(t.Context(), w.task("1ms", short), w.task("2ms"), w.task("5s"))
		if len(w.outbox.sent) != 3 {
			t.Errorf("got %d messages with %d calls, want all three", len(w.outbox.sent), w.outbox.calls)
		}
		if w.outbox.calls != 2 {
			t.Errorf("got %d calls, want 2", w.outbox.calls)
		}
	})
}
