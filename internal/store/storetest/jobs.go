package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

func jobRules() []rule {
	return []rule{
		{"a created job is loaded as it was given, as revision 1", createdAsGiven},
		{"only one of two creates of an id wins", oneCreate},
		{"only one of many concurrent creates of an id wins", oneConcurrentCreate},
		{"what does not exist is not found", notFound},
		{"times keep their milliseconds", timesKeepMillis},
		{"a job of 200 steps with long reasons is loaded as it was", largeJob},
		{"a job of 200 steps is loaded as it was after each save, when steps are done again and saves are lost, too", longJob},
		{"a job of 200 steps that are tried again after long errors is kept as it is, and can be parked", triedOftenIsKept},
		{"the store shares nothing with its callers", nothingShared},
		{"what was answered is there after reopening", thereAfterReopening},
	}
}

func createdAsGiven(w *world) {
	j := w.job("a")
	want := j.Clone()
	want.Rev = 1
	// That is not for the caller of Create to say.
	j.Rev = 7
	w.same("loaded job", w.create(j), want)

	finished := w.job("b")
	finished.CompleteBy = time.Time{}
	want = finished.Clone()
	want.Rev = 1
	w.same("loaded job without a key", w.create(finished), want)
}

func oneCreate(w *world) {
	first := w.create(w.job("a"))
	other := w.job("a")
	other.Workflow, other.InputHash = "refund", "hash-of-other-input"
	w.want("second create, of another workflow", w.store.Create(w.ctx, other), store.ErrExists)
	w.same("job after the second create", w.load(first.ID), first)
	w.mustSave(first)
	w.want("create after a save", w.store.Create(w.ctx, w.job("a")), store.ErrExists)
}

func oneConcurrentCreate(w *world) {
	const many = 16
	w.made = append(w.made, w.id("a"))
	errs := atOnce(many, func(i int) error {
		j := w.job("a")
		j.InputHash = fmt.Sprint(i)
		return w.store.Create(w.ctx, j)
	})
	won := winners(w, errs, store.ErrExists)
	if got := w.load(w.id("a")).InputHash; got != fmt.Sprint(won) {
		w.Fatalf("the job stored is of create %s, but %d was told that it won", got, won)
	}
}

func notFound(w *world) {
	id := w.id("nowhere")
	_, err := w.store.Load(w.ctx, id)
	w.want("load", err, store.ErrNotFound)
	w.want("park", w.store.Park(w.ctx, id, w.base, "reason", w.at(time.Hour)), store.ErrNotFound)
	j := w.job("nowhere")
	for j.Rev = range int64(2) {
		w.want("save", w.save(j), store.ErrConflict)
	}
	_, err = w.store.Load(w.ctx, id)
	w.want("load after all of them", err, store.ErrNotFound)
}

func timesKeepMillis(w *world) {
	j := w.job("a")
	odd := time.Date(2031, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	j.CompleteBy, j.Deadline, j.CreatedAt = odd, odd.Add(time.Millisecond), odd.Add(2*time.Millisecond)
	got := w.create(j)
	w.same("CompleteBy", got.CompleteBy, j.CompleteBy)
	w.same("Deadline", got.Deadline, j.Deadline)
	w.same("CreatedAt", got.CreatedAt, j.CreatedAt)
	claim := job.Claim{Attempt: 1, LockedBy: "x", StartedAt: odd.Add(3 * time.Millisecond), CompleteBy: odd.Add(4 * time.Millisecond)}
	slot := w.scene("a").slot
	w.want("claim", w.store.Claim(w.ctx, slot, claim, odd.Add(time.Hour)), nil)
	held, err := w.store.Look(w.ctx, slot, 1, odd.Add(time.Hour), odd)
	w.want("look", err, nil)
	w.same("claim", held.Claim, claim)

	before := w.job("b")
	before.CompleteBy = time.Date(1969, 12, 31, 23, 59, 59, 1_000_000, time.UTC)
	w.same("CompleteBy before 1970", w.create(before).CompleteBy, before.CompleteBy)
}

func largeJob(w *world) {
	j := w.job("large")
	j.Steps = nil
	reason := limits.Clip(strings.Repeat("Zażółć gęślą jaźń \u2028 \"quoted\" \\ 変換 🦊 \x01\n", 40))
	for i := range limits.MaxSteps {
		step := job.StepState{Name: fmt.Sprintf("step_%d", i), Attempt: 3}
		step.Forward = job.Activity{
			State: job.Failed, Attempt: 3, Tries: 3, FailureCount: 2, At: w.base, Unknown: true,
			Output:    job.Payload{Ref: fmt.Sprintf("output#step_%d#3", i), Bytes: 70_000},
			Error:     &job.StepError{Message: reason, Retryable: true, Kind: "card_declined", Applied: makegood.AppliedUnknown, RetryAfter: makegood.Minute},
			Silent:    new(w.claim(2, "agent-7/nonce", time.Minute)),
			StartedAt: w.base, FinishedAt: w.at(time.Second),
		}
		step.Undo = job.Activity{State: job.Dispatched, Attempt: 4, Output: wire.Inline([]byte(`{"ż":"🦊"}`))}
		j.Steps = append(j.Steps, step)
	}
	j.Reason = reason
	j.Untold = []job.Announcement{{Seq: 1, ProcessState: makegood.JobError, Reason: reason, At: w.base}}
	want := j.Clone()
	want.Rev = 1
	loaded := w.create(j)
	w.same("created", loaded, want)

	want.Rev = 2
	w.same("saved", w.mustSave(loaded), want)
}

// longJob saves a job each time that two of its steps have ended. Some steps are done again later, and some saves meet
// another one that says of those steps something else; so does a process that has just begun.
func longJob(w *world) {
	j := w.job("long")
	j.Steps = nil
	for i := range limits.MaxSteps {
		j.Steps = append(j.Steps, job.StepState{Name: fmt.Sprintf("step_%d", i)})
	}
	j = w.create(j)
	for n := 0; n < limits.MaxSteps; n += 2 {
		next, lost := j.Clone(), j.Clone()
		for _, i := range []int{n, n + 1, n / 3} {
			w.endStep(&next, i, "kept")
			w.endStep(&lost, i, "lost")
		}
		want := next.Clone()
		want.Rev++
		w.want("save", w.save(next), nil)
		if n%10 == 0 {
			w.want("save of a revision that is over", w.save(lost), store.ErrConflict)
		}
		if n%60 == 0 && w.harness.Reopen != nil {
			w.store = w.harness.Reopen()
		}
		j = w.load(j.ID)
		want.Needs = max(want.Needs, j.Needs) // that of the form in which it is kept
		w.same(fmt.Sprintf("after step %d", n), j, want)
	}
}

// endStep ends a step, once more if it has ended before.
func (w *world) endStep(j *job.Job, i int, what string) {
	s := &j.Steps[i]
	s.Attempt++
	output := fmt.Sprintf(`{"what":%q,"step":%d,"attempt":%d,"and":"%0100d"}`, what, i, s.Attempt, i)
	s.Forward = job.Activity{
		State: job.Done, Attempt: s.Attempt, Tries: s.Attempt, At: w.at(time.Duration(i) * time.Second), Cause: "submit",
		StartedAt: w.at(time.Duration(i) * time.Second), FinishedAt: w.at(time.Duration(i+1) * time.Second), Output: wire.Inline([]byte(output)),
	}
}

// manyTries is a job of 200 steps that have each failed with an error of so many bytes and are tried again.
func (w *world) manyTries(name string, bytes int) job.Job {
	j := w.job(name)
	j.Steps = nil
	for i := range limits.MaxSteps {
		step := job.StepState{Name: fmt.Sprintf("step_%d", i), Attempt: 9}
		step.Forward = job.Activity{
			State: job.Backoff, Attempt: 9, Tries: 9, FailureCount: 9, At: w.at(time.Minute), Unknown: true,
			Error: &job.StepError{Message: fmt.Sprintf("%-*d", bytes, i), Retryable: true, Kind: "declined"},
		}
		j.Steps = append(j.Steps, step)
	}
	return j
}

// triedOftenIsKept: every step and its undo is tried again, each with all fields of its last error and of the claim
// that ended in silence. The next save changes one such step.
func triedOftenIsKept(w *world) {
	j := w.manyTries("often", limits.MaxReasonBytes)
	for i := range j.Steps {
		a := &j.Steps[i].Forward
		a.Silent = new(w.claim(8, fmt.Sprintf("%-*d", limits.MaxLockedByBytes, i), time.Minute))
		j.Steps[i].Undo = *a
	}
	want := j.Clone()
	want.Rev = 1
	j = w.create(j)
	w.same("created", j, want)
	for n := range 3 {
		failed := *j.Steps[n].Forward.Error
		failed.Message = "now it is another one"
		j.Steps[n].Forward.Error = &failed
		want = j.Clone()
		want.Rev++
		j = w.mustSave(j)
		w.same("saved", j, want)
	}
	w.want("park", w.store.Park(w.ctx, j.ID, j.CompleteBy, "why", w.at(time.Hour)), nil)
	want.ProcessState, want.Reason, want.CompleteBy, want.Rev = makegood.JobError, "why", w.at(time.Hour), want.Rev+1
	w.same("parked", w.load(j.ID), want)
}

// nothingShared: an adapter that keeps jobs in memory must not hand out its own.
func nothingShared(w *world) {
	given := w.job("a")
	given.Untold, given.Requests = []job.Announcement{{Seq: 1, Reason: "why"}}, []string{"cancel/1"}
	want := w.create(given).Clone()
	scribble := func(j job.Job) {
		j.Steps[0].Name = "scribbled"
		j.Untold[0].Reason = "scribbled"
		j.Requests[0] = "scribbled"
	}
	scribble(given)
	scribble(w.load(want.ID))
	w.same("job after its creator and a reader scribbled on theirs", w.load(want.ID), want)

	saved := w.load(want.ID)
	w.want("save", w.save(saved), nil)
	want = w.load(saved.ID).Clone()
	scribble(saved)
	w.same("job after its saver scribbled on theirs", w.load(want.ID), want)
}

func thereAfterReopening(w *world) {
	if w.harness.Reopen == nil {
		w.Skip("this store keeps nothing")
	}
	j := w.create(w.job("a"))
	w.want("payload", w.store.PutPayload(w.ctx, j.ID, "input", []byte(`"large"`)), nil)
	w.want("definition", w.store.PutDefinition(w.ctx, "wf-"+w.prefix, "hash-"+w.prefix, []byte(`{}`)), nil)
	j.ProcessState = makegood.JobProcessing
	j = w.mustSave(j)
	held, closed := w.scene("a"), w.scene("b")
	held.claims(1, "x", 2*time.Minute, nil)
	held.closes(held.unwanted(1, 0, time.Hour), held.found(job.FoundHeld, 1, "x", 2*time.Minute))
	closed.closes(closed.closing(1, 0), nobody(1))
	parked := w.create(w.job("b"))
	w.want("park", w.store.Park(w.ctx, parked.ID, parked.CompleteBy, "why", w.at(time.Hour)), nil)
	parked = w.load(parked.ID)

	w.store = w.harness.Reopen()
	w.same("job after reopening", w.load(j.ID), j)
	w.same("parked job after reopening", w.load(parked.ID), parked)
	w.sees("keys after reopening", w.at(time.Hour), map[string]time.Time{j.ID: j.CompleteBy, parked.ID: parked.CompleteBy})
	held.heartbeats(1, "x", 2*time.Hour, time.Hour, store.ErrWithdrawn)
	closed.claims(1, "x", time.Minute, store.ErrWithdrawn)
	value, err := w.store.Payload(w.ctx, j.ID, "input")
	w.want("payload", err, nil)
	w.same("payload after reopening", string(value), `"large"`)
	hash, err := w.store.CurrentDefinition(w.ctx, "wf-"+w.prefix)
	w.want("current definition", err, nil)
	w.same("current definition after reopening", hash, "hash-"+w.prefix)
}

// atOnce calls f from n goroutines that start together, and returns what each got.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// winners returns the one call that succeeded; all others must have failed with lost.
func winners(w *world, errs []error, lost error) int {
	w.Helper()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			w.Fatalf("calls %d and %d both won", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, lost):
			w.Fatalf("call %d: got %v, want %v", i, err, lost)
		}
	}
	if won < 0 {
		w.Fatalf("none of %d calls won", len(errs))
	}
	return won
}
