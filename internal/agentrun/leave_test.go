package agentrun_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/wire"
)

// A task of a newer release is neither claimed nor poison: it is sent again to the agent's own queue, delayed, as it was
// but for its time in front. A field that is not known is no reason to leave one.
func TestATaskOfANewerReleaseIsLeft(t *testing.T) {
	for name, body := range map[string]string{
		"another version": `{"v":2,"type":"Task","job":"j"}`,
		"an unknown type": `{"v":1,"type":"Batch","job":"j"}`,
	} {
		w := newWorld(t, succeed)
		w.wantFailed(w.handleBodies(t.Context(), body))
		left, _ := wire.Leave(body, time.Now())
		got := w.outbox.sent
		if len(got) != 1 || got[0].queue != "tasks-shop" || got[0].Delay != limits.LeaveFor || len(got[0].Body) != len(left) || got[0].Body[35:] != left[35:] {
			t.Errorf("%s: got %+v, want %s sent to tasks-shop, delayed by %s", name, got, left, limits.LeaveFor)
		}
		w.wantCounters(0, 0, 0, 0, 0, 0, 0)
		if left := w.runner.Stats().Left; left != 1 {
			t.Errorf("%s: counted %d as left, want 1", name, left)
		}
	}
	w := newWorld(t, succeed)
	body, err := wire.EncodeTask(w.task("pay"))
	if err != nil {
		t.Fatal(err)
	}
	w.wantFailed(w.handleBodies(t.Context(), `{"colour":"red",`+body[1:]))
	w.wantCounters(1, 0, 0, 1, 0, 0, 0)
}

// One that was left for too long is put in front of a person.
func TestATaskThatNobodyUnderstoodGoesIntoQuarantine(t *testing.T) {
	w := newWorld(t, succeed)
	body, _ := wire.Leave(`{"v":2,"type":"Task","job":"j"}`, time.Now().Add(-limits.MaxLeft-time.Minute))
	w.wantFailed(w.handleBodies(t.Context(), body))
	w.wantCounters(0, 0, 0, 0, 0, 0, 1)
	if got := w.outbox.sent; len(got) != 1 || got[0].queue != "quarantine" {
		t.Errorf("got %+v, want it in quarantine", got)
	}
}

// Work takes minutes, and a process may die of it. A copy of what is left that was sent before would be there beside the
// received one from then on: two after one death, a million after twenty. So leaving comes last, with one request for all.
func TestWhatIsLeftIsSentWhenTheWorkOfItsBatchIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
			time.Sleep(time.Second)
			w.outbox.mu.Lock()
			defer w.outbox.mu.Unlock()
			if len(w.outbox.sent) != 0 {
				t.Errorf("sent while an agent works: %+v", w.outbox.sent)
			}
			return succeed(ctx, task)
		})
		body, err := wire.EncodeTask(w.task("pay"))
		if err != nil {
			t.Fatal(err)
		}
		w.wantFailed(w.handleBodies(t.Context(), `{"v":2,"type":"Task","job":"j"}`, body, `{"v":1,"type":"Batch","job":"j"}`))
		var to []string
		calls := map[int]bool{}
		for _, m := range w.outbox.sent {
			to, calls[m.calls] = append(to, m.queue), true
		}
		if want := []string{"events", "tasks-shop", "tasks-shop"}; !slices.Equal(to, want) || len(calls) != 2 {
			t.Errorf("got messages to %v in %d requests, want to %v in 2", to, len(calls), want)
		}
	})
}

// What cannot be left is delivered again, and the work beside it is not.
func TestATaskThatCannotBeLeftComesAgain(t *testing.T) {
	w := newWorld(t, succeed)
	w.outbox.refuse = func(_ int, to string, _ queue.Message) error {
		if to == "tasks-shop" {
			return errDown
		}
		return nil
	}
	body, err := wire.EncodeTask(w.task("pay"))
	if err != nil {
		t.Fatal(err)
	}
	w.wantFailed(w.handleBodies(t.Context(), body, `{"v":2,"type":"Task","job":"j"}`), "1")
}
