package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/faultstore"
)

// What is noted of a telling is what became of it, each once: the job is loaded and saved once more if there is anything
// to note, and not at all if there is not.
func TestWhatIsNotedOfATellingIsWhatBecameOfIt(t *testing.T) {
	for _, c := range []struct {
		operator, listener error
		more               int
		applied            int64
	}{
		{nil, nil, 1, 2},
		{errBroken, nil, 1, 2},
		{nil, errBroken, 1, 3},
		{errBroken, errBroken, 1, 2},
		{notify.ErrElsewhere, nil, 1, 2},
		{notify.ErrGathered, nil, 1, 2},
		{errBroken, notify.ErrElsewhere, 0, 1},
		{errBroken, notify.ErrGathered, 0, 1},
		{notify.ErrElsewhere, notify.ErrElsewhere, 0, 1},
	} {
		t.Run(fmt.Sprint(c.operator, ", ", c.listener), func(t *testing.T) {
			w := newWorld(t)
			w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a}]"), "j")
			failure := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no"})
			w.told.deaf, w.heard.deaf = c.operator, c.listener
			w.forget()
			w.handle(failure)
			w.checkCalls(map[string]int{"Load": 1 + c.more, "Save": 1 + c.more})
			counts := w.s.Stats()
			if applied, duplicate := counts.Applied, counts.Duplicate; applied != c.applied || duplicate != 0 {
				t.Errorf("got %d events applied, %d duplicate, want %d, 0", applied, duplicate, c.applied)
			}
		})
	}
}

// By where it stands an operator hears of a job together with others: of one that has stopped, and of one that will be late.
func TestAnOperatorHearsWhereAJobStands(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nonFailure: stop\nexpect: 1m\nsteps: [{name: first, agent: a, timeout: 1h}]"), "j")
	born, claim := w.now, w.claim("j", "first")
	w.now = w.now.Add(50 * time.Second)
	w.handle(w.deadline("j"))
	w.handle(w.failed("j", "first", claim, job.StepError{Message: "no", Kind: "declined"}))
	if len(w.told.notices) != 2 {
		t.Fatalf("told of %+v, want that it is late, and that it has stopped", w.told.notices)
	}
	late, stopped := w.told.notices[0], w.told.notices[1]
	if !late.Late() || !late.ExpectBy.Equal(born.Add(time.Minute)) || late.Step != "first" || late.ErrorKind != "" || !late.Since.IsZero() {
		t.Errorf("late: got %+v, want step first and a minute after its birth", late)
	}
	if stopped.Late() || stopped.Step != "first" || stopped.ErrorKind != "declined" || !stopped.Since.Equal(w.now) {
		t.Errorf("stopped: got %+v, want step first, declined, now", stopped)
	}
}

// The task of an undo that nobody has claimed counts as one that was not started, as that of a step does.
func TestAnUndoThatNobodyClaimsIsCounted(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back, startBy: 10s, timeout: 10s}}]"), "j")
	w.handle(w.done("j", "first"))
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbUndo, Request: "u"}); err != nil {
		t.Fatal(err)
	}
	if got := w.s.Stats().Unstarted; got != 0 {
		t.Errorf("sent for the first time: got %d, want none", got)
	}
	w.handle(w.deadline("j"))
	if got := w.s.Stats().Unstarted; got != 1 || w.job("j").Steps[0].Undo.Resent != 1 {
		t.Errorf("sent again %d times: got %d, want 1", w.job("j").Steps[0].Undo.Resent, got)
	}
}

// None of the closings could be made: there is no answer, and so nothing to load or save for. What could be made is
// brought to the job all the same.
func TestOnlyAnswersAreBroughtToTheJob(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "bad")
	w.failing("Close", faultstore.FailBefore)
	w.forget()
	if _, _, err := w.s.Request(t.Context(), "bad", job.Requested{Verb: makegood.VerbCancel, Request: "r"}); err != nil {
		t.Fatal(err)
	}
	w.checkCalls(map[string]int{"Load": 1, "Save": 1, "Close": 1})
}

// A batch takes long. An attempt that one of its events has opened is looked at by the next, and is open: nobody has been
// sent its task, and it gets no successor.
func TestWhatABatchOpensIsOpenWhenItIsLookedAt(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, timeout: 30s, retry: {backoff: 1ms, max: 1ms}}]"), "j")
	w.use(func(c *scheduler.Config) { c.Random = func() uint64 { return 0 } })
	claim := w.claim("j", "first")
	w.now = w.now.Add(30 * time.Second)
	due := w.deadline("j")
	failure := w.failed("j", "first", claim, job.StepError{Message: "no", Retryable: true, Applied: makegood.AppliedNo})
	w.before("Close", "j", func() { w.now = w.now.Add(29 * time.Second) })
	if failed := w.handle(failure, due); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if a := w.job("j").Steps[0].Forward; a.Attempt != 2 || a.State != job.Dispatched {
		t.Errorf("got attempt %d, %s, want the second, and that it is out", a.Attempt, a.State)
	}
}

// What a batch takes for true of an attempt that it opens itself is true of that try alone. Another Scheduler opens it
// first, and it is claimed: the success of the attempt before comes too late, and does not end what is held.
func TestWhatABatchOpensMayBeAnothersWhenItIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, timeout: 30s, retry: {backoff: 1ms, max: 1ms}}]"), "j")
	w.use(func(c *scheduler.Config) { c.Random = func() uint64 { return 0 } })
	late := w.succeeded("j", "first", w.claim("j", "first"))
	w.now = w.now.Add(time.Hour)
	due := w.deadline("j")
	other := w.second()
	w.beforeSave("j", func() {
		w.handleWith(other, due)
		w.claim("j", "first")
	})
	if failed := w.handle(due, late); failed != nil {
		t.Errorf("wants again: %v, want none", failed)
	}
	if w.open("j", "first") != 2 || w.held("j", "first").Attempt != 2 {
		t.Errorf("got first#%d out, and #%d held, want the second held and out", w.open("j", "first"), w.held("j", "first").Attempt)
	}
}

// hurried is a listener who notes how long they have.
type hurried struct {
	notify.Notifier
	within []time.Duration
}

func (h *hurried) Announce(ctx context.Context, n notify.Notice) error {
	deadline, _ := ctx.Deadline()
	h.within = append(h.within, time.Until(deadline))
	return h.Notifier.Announce(ctx, n)
}

// Who is told has time to hear it, and less than a minute: a listener that hangs must not cost the batch its time.
func TestWhoIsToldHasTimeToHearIt(t *testing.T) {
	w := newWorld(t)
	h := &hurried{Notifier: &w.heard}
	w.s = w.with(func(c *scheduler.Config) { c.Listener, c.Replies = h, []string{"shop"} })
	c := w.define(twoAgents)
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	if len(h.within) != 1 || h.within[0] <= 0 || h.within[0] > 5*time.Second {
		t.Errorf("got the times %v, want one of up to 5s", h.within)
	}
}
