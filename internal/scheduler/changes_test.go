package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/scheduler"
)

// reader hears of every change, and takes each number once, in order.
type reader struct {
	mu sync.Mutex
	// deaf is what it answers instead, and hangs lets it wait until the time is over.
	deaf  error
	hangs bool
	runs  []changes.Run
	taken map[string][]makegood.Change
}

func (r *reader) Publish(ctx context.Context, runs []changes.Run) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, runs...)
	errs := make([]error, len(runs))
	if r.hangs {
		<-ctx.Done()
	}
	for i, run := range runs {
		if errs[i] = r.deaf; r.deaf != nil && !errors.Is(r.deaf, changes.ErrLater) {
			continue
		}
		for _, c := range run.Changes.Changes {
			if taken := r.taken[run.Job]; c.Number == len(taken)+1 {
				if r.taken == nil {
					r.taken = map[string][]makegood.Change{}
				}
				r.taken[run.Job] = append(taken, c)
			}
		}
	}
	return errs
}

// heard says what was taken of a job: of each change its step and what it came to.
func (r *reader) heard(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, c := range r.taken[id] {
		text := c.To
		if c.Step != "" {
			text = c.Step + ":" + c.To
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

const (
	twoSteps  = "name: two\nsteps: [{name: first, agent: a}, {name: second, agent: a}]"
	bothHeard = "Pending first:dispatched first:done Processing second:dispatched second:done Processed"
)

// publishing is a world in which somebody hears of every change.
func publishing(t *testing.T) (*world, *reader) {
	t.Helper()
	w, r := newWorld(t), &reader{}
	w.use(func(c *scheduler.Config) { c.Changes = r })
	return w, r
}

// A job costs one save more than where nobody hears of its changes, and none while it goes on; each change is said once.
func TestEveryChangeIsPublishedForOneSaveMore(t *testing.T) {
	w, r := publishing(t)
	w.submit(w.define(twoSteps), "j")
	w.forget()
	w.handle(w.done("j", "first"))
	w.checkCalls(map[string]int{"Load": 1, "Save": 1, "Close": 0})
	w.forget()
	w.handle(w.done("j", "second"))
	w.checkCalls(map[string]int{"Load": 2, "Save": 2, "Close": 0})
	if got := r.heard("j"); got != bothHeard {
		t.Errorf("heard %q, want %q", got, bothHeard)
	}
	if n := len(r.runs); n != 3 {
		t.Errorf("%d runs, want one for each save that changed something: 3", n)
	}
	j := w.job("j")
	if len(j.Changes.Pending) > 0 || !j.CompleteBy.IsZero() {
		t.Errorf("pending are %v, the key is %v: want none", j.Changes.Pending, j.CompleteBy)
	}
}

// Each event comes to a process of its own, which knows nothing of what others have published.
func TestWhoDoesNotKnowWhatWasPublishedPublishesItAgain(t *testing.T) {
	w, r := publishing(t)
	w.submit(w.define(twoSteps), "j")
	for _, step := range []string{"first", "second"} {
		w.use(func(*scheduler.Config) {})
		w.handle(w.done("j", step))
	}
	if got := r.heard("j"); got != bothHeard {
		t.Errorf("heard %q, want %q", got, bothHeard)
	}
	for _, run := range r.runs {
		if first := run.Changes.Changes[0].Number; first != 1 {
			t.Errorf("a run begins with %d: the process does not know that those before were published", first)
		}
	}
}

// The process dies between the save and the publishing; the event comes again.
func TestAChangeIsNotLostWithTheProcessThatWasToPublishIt(t *testing.T) {
	w, r := publishing(t)
	w.submit(w.define(twoSteps), "j")
	dead := w.with(func(c *scheduler.Config) { c.Changes = nowhere{} })
	record := w.done("j", "first")
	w.handleWith(dead, record)
	if got := r.heard("j"); got != "Pending first:dispatched" {
		t.Fatalf("heard %q before its time", got)
	}
	w.use(func(*scheduler.Config) {})
	w.handle(record)
	w.handle(w.done("j", "second"))
	if got := r.heard("j"); got != bothHeard {
		t.Errorf("heard %q, want %q", got, bothHeard)
	}
}

// nowhere takes runs in, and is never heard of again.
type nowhere struct{}

func (nowhere) Publish(_ context.Context, runs []changes.Run) []error {
	errs := make([]error, len(runs))
	for i := range errs {
		errs[i] = changes.ErrLater
	}
	return errs
}

// While nobody can be told the job goes on. At its end it waits in the index until somebody was.
func TestWhoCannotBeToldHoldsNoJobUp(t *testing.T) {
	w, r := publishing(t)
	r.deaf = errBroken
	w.submit(w.define(twoSteps), "j")
	w.handle(w.done("j", "first"))
	w.handle(w.done("j", "second"))
	j := w.job("j")
	if j.ProcessState != makegood.JobProcessed || j.CompleteBy.IsZero() || len(j.Changes.Pending) != 7 {
		t.Fatalf("%s, key %v, pending %d: want Processed, a key, 7", j.ProcessState, j.CompleteBy, len(j.Changes.Pending))
	}
	r.deaf = nil
	w.now = j.CompleteBy
	w.handle(w.deadline("j"))
	if got := r.heard("j"); got != bothHeard {
		t.Errorf("heard %q, want %q", got, bothHeard)
	}
	if j = w.job("j"); !j.CompleteBy.IsZero() {
		t.Errorf("the key is %v, want none", j.CompleteBy)
	}
}

// Who takes runs in and says later what became of them is believed then.
func TestWhatWasHandedOverLaterIsKnownThen(t *testing.T) {
	w, r := publishing(t)
	r.deaf = changes.ErrLater
	w.submit(w.define(twoSteps), "j")
	w.handle(w.done("j", "first"))
	w.s.Handed(t.Context(), r.runs[len(r.runs)-1], nil)
	w.handle(w.done("j", "second"))
	last := r.runs[len(r.runs)-1]
	if first := last.Changes.Changes[0].Number; first != 6 || !last.Confirm {
		t.Errorf("the last run begins with %d, and is to be confirmed %v; want 6, true", first, last.Confirm)
	}
	w.s.Handed(t.Context(), last, errBroken)
	if j := w.job("j"); j.CompleteBy.IsZero() {
		t.Error("the job is out of the index, and its end was not published")
	}
	w.s.Handed(t.Context(), last, nil)
	if j := w.job("j"); !j.CompleteBy.IsZero() || len(j.Changes.Pending) > 0 {
		t.Errorf("the key is %v, pending %d: want none", j.CompleteBy, len(j.Changes.Pending))
	}
}

// wide is a workflow of so many steps, one after the other.
func wide(n int) string {
	var steps []string
	for i := range n {
		steps = append(steps, fmt.Sprintf("{name: s%d, agent: a}", i))
	}
	return "name: wide\nsteps: [" + strings.Join(steps, ", ") + "]"
}

// A job carries at most so many changes that a process does not know of: before more are saved, they are published first.
// It costs no save.
func TestAJobCarriesFewChangesAlthoughNobodyKnowsWhatWasPublished(t *testing.T) {
	w, r := publishing(t)
	w.submit(w.define(wide(40)), "j")
	most := 0
	w.forget()
	for i := range 40 {
		w.use(func(*scheduler.Config) {})
		w.handle(w.done("j", fmt.Sprint("s", i)))
		most = max(most, len(w.job("j").Changes.Pending))
	}
	if most > 20 {
		t.Errorf("the job has carried %d changes", most)
	}
	if n := len(r.taken["j"]); n != 3+2*40 {
		t.Errorf("heard of %d changes, want %d", n, 3+2*40)
	}
	w.checkCalls(map[string]int{"Save": 40 + 1})
}

// If who is told does not answer, a save waits half a second for them, and the next ones do not.
func TestASaveWaitsOnceForWhoHears(t *testing.T) {
	w, r := publishing(t)
	r.deaf = errBroken
	w.submit(w.define(wide(40)), "j")
	for i := range 20 {
		w.handle(w.done("j", fmt.Sprint("s", i)))
	}
	tries := 0
	for _, run := range r.runs {
		if !run.Confirm && run.Changes.Changes[0].Number == 1 {
			tries++
		}
	}
	// Each save is followed by a try; one was made before a save.
	if tries != 1+20+1 {
		t.Errorf("tried %d times, want once for each save and once before one", tries)
	}
	for i := 20; i < 40; i++ {
		w.handle(w.done("j", fmt.Sprint("s", i)))
	}
	r.deaf = nil
	j := w.job("j")
	w.now = j.CompleteBy
	w.handle(w.deadline("j"))
	got := r.runs[len(r.runs)-1].Changes.Changes
	if j.ProcessState != makegood.JobProcessed || len(got) != limits.MaxUnpublished || got[0].Lost != 83-63 || got[len(got)-1].Number != 83 {
		t.Errorf("%s, %d changes up to %d, the first of which stands for %d that are lost: want Processed, %d, 83, 20",
			j.ProcessState, len(got), got[len(got)-1].Number, got[0].Lost, limits.MaxUnpublished)
	}
}

// A save that lost its race is decided again, and numbers no change twice.
func TestALostRaceNumbersNoChangeTwice(t *testing.T) {
	w, r := publishing(t)
	hash := w.define("name: both\nsteps: [{name: first, agent: a, needs: []}, {name: second, agent: a, needs: []}]")
	w.submit(hash, "j")
	first, second := w.done("j", "first"), w.done("j", "second")
	w.beforeSave("j", func() {
		w.handleWith(w.with(func(c *scheduler.Config) {
			c.Jobs, c.Closings, c.Payloads, c.Definitions = w.file, w.file, w.file, w.file
		}), second)
	})
	w.handle(first)
	want := "Pending first:dispatched second:dispatched second:done Processing first:done Processed"
	if got := r.heard("j"); got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// The Supervisor, an operator and a schedule's fire go the same way as a reply.
func TestWhatPeopleAskForIsPublished(t *testing.T) {
	w, r := publishing(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, undo: {action: back}}]"), "j")
	w.handle(w.done("j", "first"))
	if _, _, err := w.s.Request(t.Context(), "j", job.Requested{Verb: makegood.VerbUndo, Request: "u"}); err != nil {
		t.Fatal(err)
	}
	want := "Pending first:dispatched first:done Processed Undoing first:dispatched"
	if got := r.heard("j"); got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// Nobody hears of changes: a job keeps nothing of them.
func TestWhereNobodyHearsNothingIsKept(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoSteps), "j")
	w.handle(w.done("j", "first"))
	w.handle(w.done("j", "second"))
	if j := w.job("j"); j.Changes.Seq != 0 || j.Changes.Rev != 0 || j.Changes.Pending != nil {
		t.Errorf("the job keeps %+v", j.Changes)
	}
}

// What a change says of a failure is why, and never what the step was given or gave.
func TestAChangeSaysWhyAndNoPayload(t *testing.T) {
	w, r := publishing(t)
	w.submit(w.define("name: one\nonFailure: stop\nsteps: [{name: first, agent: a, retry: {attempts: 1}}]"), "j")
	w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: strings.Repeat("é", 500), Kind: "declined"}))
	i := slices.IndexFunc(r.taken["j"], func(c makegood.Change) bool { return c.Step == "first" && c.To == "failed" })
	if i < 0 {
		t.Fatalf("heard %q", r.heard("j"))
	}
	c := r.taken["j"][i]
	if c.Outcome != makegood.EntryFailed || c.ErrorKind != "declined" || len(c.Reason) > limits.MaxChangeReasonBytes || !strings.HasSuffix(c.Reason, "é...") {
		t.Errorf("got %+v", c)
	}
	if c.From != "dispatched" || c.Attempt != 1 || c.Round != 1 || !c.At.Equal(w.now.Truncate(time.Millisecond)) {
		t.Errorf("got %+v", c)
	}
}
