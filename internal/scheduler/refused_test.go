package scheduler_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// Of two tasks that became due, one is refused, which stops the job. Telling of that does not hold up the other task,
// and nobody hears a thing twice for it.
func TestWhatFollowsARefusedTaskWaitsForTheTasksOfOthersAndIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define("name: fan\nsteps:\n- {name: first, agent: a}\n- {name: left, agent: a, needs: [first]}\n- {name: right, agent: b, needs: [first]}")
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: json.RawMessage(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	reply := w.done("j", "first")
	w.deny = func(name string, _ queue.Message) error {
		if name == "tasks-a" {
			return queue.Refused("too heavy")
		}
		return nil
	}
	w.forget()
	w.heard.before = func() {
		if !slices.ContainsFunc(w.sends, func(s send) bool { return s.queue == "tasks-b" }) {
			t.Error("the listener was told before the task of the other step was sent")
		}
	}
	if failed := w.handle(reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	heard := map[int]int{}
	for _, n := range w.heard.notices {
		heard[n.Seq]++
	}
	for seq := 1; seq <= w.job("j").Seq; seq++ {
		if heard[seq] != 1 {
			t.Errorf("the listener heard of announcement %d %d times, want once", seq, heard[seq])
		}
	}
}
