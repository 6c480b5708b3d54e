package scheduler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
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

// tooLarge is a store that cannot keep a job with a long reason.
type tooLarge struct{ store.Jobs }

func (s tooLarge) Save(ctx context.Context, c store.Change) error {
	if len(c.Job.Reason) > 500 {
		return fmt.Errorf("%w: 500000 bytes", store.ErrTooLarge)
	}
	return s.Jobs.Save(ctx, c)
}

// A job that has become too large to be kept is put in front of a person, who reads why. What brought it there is not
// delivered for ever.
func TestAJobThatIsTooLargeToBeKeptIsParked(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Jobs = tooLarge{c.Jobs} })
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
	if again := w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: strings.Repeat("x", 600)})); again != nil {
		t.Errorf("comes again: %v", again)
	}
	if j := w.job("j"); j.ProcessState != makegood.JobError || !strings.Contains(j.Reason, "too large to be kept: 500000 bytes") {
		t.Errorf("got %s, %q, want Error, and that it is too large", j.ProcessState, j.Reason)
	}
	if len(w.told.notices) != 1 {
		t.Errorf("the operator was told %d times, want once", len(w.told.notices))
	}
}
