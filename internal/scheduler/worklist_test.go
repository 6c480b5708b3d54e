package scheduler_test

import (
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// A job is moved once a round: by its reply, by both refusals together, and by who was told.
func TestWhatFollowsOfAJobInARoundIsOneSave(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: fan\nonFailure: stop\nsteps:\n- {name: first, agent: a}\n- {name: left, agent: b, needs: [first]}\n- {name: right, agent: b, needs: [first]}"), "j")
	reply := w.done("j", "first")
	w.deny = func(string, queue.Message) error { return queue.Refused("too heavy") }
	w.forget()
	if failed := w.handle(reply); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	w.checkCalls(map[string]int{"Load": 3, "Save": 3})
	j := w.job("j")
	left, _ := j.Step("left")
	right, _ := j.Step("right")
	if left.Forward.State != job.Failed || right.Forward.State != job.NotStarted || right.Attempt != 1 {
		t.Errorf("got left %q, right %q, attempt %d, want that left failed, and the attempt of right was closed unstarted",
			left.Forward.State, right.Forward.State, right.Attempt)
	}
	if j.ProcessState != makegood.JobError || !j.Told() {
		t.Errorf("got %s, told %t, want Error, and that it was told", j.ProcessState, j.Told())
	}
}

// A cancel closes what nobody has claimed, and that opens an undo. Nobody hears of the cancel before the task of the undo is
// out, though it is of a later round.
func TestPeopleAreToldWhenTheTasksOfAllRoundsAreOut(t *testing.T) {
	w := newWorld(t)
	w.use(func(c *scheduler.Config) { c.Replies = []string{"shop"} })
	c := w.define("name: two\nsteps: [{name: first, agent: a, undo: {action: back}}, {name: second, agent: b, undo: {action: back}}]")
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	w.handle(w.done("j", "first"))
	w.forget()
	w.heard.notices = nil
	w.heard.before = func() {
		if len(w.sends) == 0 {
			t.Error("the listener is told while the task of the undo has not been sent")
		}
	}
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbCancel, Request: "r"}); err != nil {
		t.Fatal(err)
	}
	w.checkSends(send{"tasks-a", []string{"j"}})
	if n := len(w.heard.notices); n != 1 {
		t.Errorf("the listener heard %d announcements, want one", n)
	}
}
