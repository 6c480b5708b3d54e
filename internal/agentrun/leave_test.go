package agentrun_test

import (
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
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
		if len(got) != 1 || got[0].queue != "tasks-shop" || got[0].Delay != makegood.LeaveFor || len(got[0].Body) != len(left) || got[0].Body[35:] != left[35:] {
			t.Errorf("%s: got %+v, want %s sent to tasks-shop, delayed by %s", name, got, left, makegood.LeaveFor)
		}
		w.wantCounters(0, 0, 0, 0, 0, 0, 0)
		if left := w.runner.Counters().Left.Load(); left != 1 {
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
	body, _ := wire.Leave(`{"v":2,"type":"Task","job":"j"}`, time.Now().Add(-makegood.MaxLeft-time.Minute))
	w.wantFailed(w.handleBodies(t.Context(), body))
	w.wantCounters(0, 0, 0, 0, 0, 0, 1)
	if got := w.outbox.sent; len(got) != 1 || got[0].queue != "quarantine" {
		t.Errorf("got %+v, want it in quarantine", got)
	}
}
