package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
)

// watcher keeps what it hears of jobs, and gives each task the name of its attempt as its trace.
type watcher struct {
	mu       sync.Mutex
	happened []job.Happened
	contexts int
}

func (r *watcher) Happened(_ context.Context, all []job.Happened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.happened = append(r.happened, all...)
}

func (r *watcher) Traceparent(j job.Job, d job.Dispatch) string {
	return fmt.Sprintf("00-%032x-%016x-01", len(j.ID), d.Attempt)
}

func (r *watcher) Context(ctx context.Context, _ job.Job) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.contexts++
	return ctx
}

// What happens to a job is told with the event, the job before and after it, and when it was decided.
func TestAWatcherHearsEveryEventThatChangedAJob(t *testing.T) {
	w, r := newWorld(t), &watcher{}
	w.use(func(c *scheduler.Config) { c.Watch = r })
	w.submit(w.define(twoSteps), "j")
	if tasks := w.tasks("a"); len(tasks) != 1 || tasks[0].Traceparent != (&watcher{}).Traceparent(job.Job{ID: "j"}, job.Dispatch{Attempt: 1}) {
		t.Errorf("got the tasks %+v, want one with its trace", tasks)
	}
	born := w.now
	reply := w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Retryable: true, Applied: makegood.AppliedNo})
	w.now = w.now.Add(time.Second)
	w.handle(reply, reply) // The second changes nothing.
	if len(r.happened) != 2 || r.contexts == 0 {
		t.Fatalf("heard %+v, with %d contexts, want a birth and a failure", r.happened, r.contexts)
	}
	birth, failure := r.happened[0], r.happened[1]
	if _, is := birth.Event.(job.Submitted); !is || birth.Before.ID != "" || birth.After.ID != "j" || birth.Workflow.Name != "two" || !birth.At.Equal(born) {
		t.Errorf("the birth: got %+v", birth)
	}
	said, is := failure.Event.(job.StepFailed)
	if !is || said.Step != "first" || failure.Before.Steps[0].Forward.State != job.Dispatched || failure.After.Steps[0].Forward.State != job.Backoff {
		t.Errorf("the failure: got %+v", failure)
	}
	if failure.Workflow.Name != "two" || !failure.At.Equal(w.now) || len(failure.Entries) != 1 || failure.Entries[0].Step != "first" {
		t.Errorf("the failure: got %s at %v with %+v, want two, now, and its entry", failure.Workflow.Name, failure.At, failure.Entries)
	}
}

// pauses are the agents and workflows that are paused now.
type pauses struct {
	mu  sync.Mutex
	all job.Holds
	// asked counts the looks, sure those that must be right.
	asked, sure int
}

func (p *pauses) Now(context.Context) (job.Holds, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.all, nil
}

func (p *pauses) Surely(ctx context.Context) (job.Holds, error) {
	p.mu.Lock()
	p.sure++
	p.mu.Unlock()
	return p.Now(ctx)
}

// While people are told of a job its workflow is paused: what noting them changes of the job is published as well.
func TestWhatNotingATellingChangesIsPublished(t *testing.T) {
	w, r := publishing(t)
	p := &pauses{}
	w.use(func(c *scheduler.Config) { c.Held, c.Replies = p, []string{"shop"} })
	c := w.define("name: two\nexpect: 1m\nsteps: [{name: first, agent: a}, {name: second, agent: a}]")
	if _, _, err := w.s.Submit(t.Context(), scheduler.Submission{ID: "j", Definition: c.Hash, Input: []byte(`{}`), ReplyTo: "shop"}); err != nil {
		t.Fatal(err)
	}
	w.heard.before = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = job.Holds{{Kind: makegood.HoldWorkflow, Name: "two", Since: w.now, By: "me"}}
	}
	w.handle(w.done("j", "first"))
	j := w.job("j")
	got, want := len(r.taken["j"]), j.Changes.Seq
	t.Logf("heard %q; held by %q, paused %v", r.heard("j"), j.HeldBy, j.Paused())
	if j.HeldBy == "" || got != want {
		t.Errorf("heard of %d changes of %d, held by %q, want all, and that it is held", got, want, j.HeldBy)
	}
}

// How often changes could not be published is counted.
func TestChangesThatCouldNotBePublishedAreCounted(t *testing.T) {
	w, r := publishing(t)
	r.deaf = errBroken
	w.submit(w.define(twoSteps), "j")
	w.handle(w.done("j", "first"))
	if got := w.s.Stats().Unpublished; got != 2 {
		t.Errorf("got %d, want one for each save", got)
	}
}

// Up to where the changes of a job were published is known until five thousand others have come, and five thousand
// more.
func TestWhatWasPublishedIsForgottenAfterManyOthers(t *testing.T) {
	w, r := publishing(t)
	c := w.define(wide(4))
	w.submit(c, "j")
	others := 0
	come := func(n int) {
		for range n {
			others++
			run := changes.Run{Changes: makegood.Changes{Job: fmt.Sprint("other-", others), Changes: []makegood.Change{{Number: 1}}}}
			w.s.Handed(t.Context(), run, nil)
		}
	}
	// known reports whether what the next save changes is published without what was published before.
	known := func(step string) bool {
		before := r.runs[len(r.runs)-1].UpTo()
		w.handle(w.done("j", step))
		return r.runs[len(r.runs)-1].Changes.Changes[0].Number == before+1
	}
	const room = 5000
	come(room - 1)
	if !known("s0") {
		t.Error("after 4,999 others it is published again, want that it is known")
	}
	come(room - 1)
	if !known("s1") {
		t.Error("after 4,999 more it is published again, want that it is known")
	}
	come(2 * room)
	if known("s2") {
		t.Error("after 10,000 more it is known, want that it is forgotten")
	}
	if !known("s3") {
		t.Error("after it was published anew it is published again, want that it is known")
	}
}

// An input that a job is to get is as large as may be, and no larger; none is none.
func TestAnInputForAResubmitHasTheLimitOfEveryInput(t *testing.T) {
	of := func(bytes int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`) }
	if got, err := scheduler.CheckInput(nil); got != nil || err != nil {
		t.Errorf("none: got %v, %v", got, err)
	}
	got, err := scheduler.CheckInput(of(makegood.MaxPayloadBytes))
	if err != nil || got.Bytes != makegood.MaxPayloadBytes || len(got.Inline) != makegood.MaxPayloadBytes {
		t.Errorf("at the limit: got %v", err)
	}
	if got, err := scheduler.CheckInput(of(makegood.MaxPayloadBytes + 1)); got != nil || !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("above the limit: got %v", err)
	}
	if got, err := scheduler.CheckInput([]byte(`{`)); got != nil || !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("no JSON: got %v, %v", got, err)
	}
	if got, err := scheduler.CheckInput([]byte(`{ "b":1,"a":2 }`)); err != nil || string(got.Inline) != `{"a":2,"b":1}` {
		t.Errorf("got %v, %v, want it in its canonical form", got, err)
	}
}

// A submission is refused where it is above a limit, and not where it is at it.
func TestASubmissionAtItsLimitsIsTaken(t *testing.T) {
	of := func(bytes int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`) }
	for name, c := range map[string]struct {
		change func(*scheduler.Submission, time.Time)
		fits   bool
	}{
		"the latest start": {func(s *scheduler.Submission, now time.Time) { s.StartAt = now.Add(makegood.MaxStartDelay) }, true},
		"a later start": {func(s *scheduler.Submission, now time.Time) {
			s.StartAt = now.Add(makegood.MaxStartDelay + time.Second)
		}, false},
		"the largest input":       {func(s *scheduler.Submission, _ time.Time) { s.Input = of(makegood.MaxPayloadBytes) }, true},
		"a larger input":          {func(s *scheduler.Submission, _ time.Time) { s.Input = of(makegood.MaxPayloadBytes + 1) }, false},
		"no input":                {func(s *scheduler.Submission, _ time.Time) { s.Input = nil }, true},
		"an input that is no one": {func(s *scheduler.Submission, _ time.Time) { s.Input = []byte(`{`) }, false},
		"a tenant":                {func(s *scheduler.Submission, _ time.Time) { s.Tenant = "acme" }, true},
		"a tenant that is none":   {func(s *scheduler.Submission, _ time.Time) { s.Tenant = "a b" }, false},
		"a priority":              {func(s *scheduler.Submission, _ time.Time) { s.Priority = makegood.PriorityIdle }, true},
		"a priority that is none": {func(s *scheduler.Submission, _ time.Time) { s.Priority = "high" }, false},
		"a label that is none":    {func(s *scheduler.Submission, _ time.Time) { s.Labels = map[string]string{"a b": "c"} }, false},
		"an id that is none":      {func(s *scheduler.Submission, _ time.Time) { s.ID = "a b" }, false},
		"a definition that is not there": {func(s *scheduler.Submission, _ time.Time) {
			s.Definition = strings.Repeat("0", 64)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := scheduler.Submission{ID: "j", Definition: w.define(twoSteps).Hash, Input: []byte(`{}`)}
			c.change(&s, w.now)
			j, created, err := w.s.Submit(t.Context(), s)
			if created != c.fits || (err == nil) != c.fits {
				t.Fatalf("got it made: %v, %v", created, err)
			}
			if c.fits && (j.ID != "j" || j.Rev != 1 || j.Tenant != s.Tenant || j.Priority != s.Priority) {
				t.Errorf("got %+v", j)
			}
			if _, again, err := w.s.Submit(t.Context(), s); again || (err == nil) != c.fits {
				t.Errorf("again: got it made: %v, %v", again, err)
			}
		})
	}
}

// What an undo was asked is told beside what its step was asked, with its own attempt.
func TestTheInputsOfAnUndoAreThoseOfTheUndo(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: one\nsteps: [{name: first, agent: a, with: {a: 1}, undo: {action: back, with: {b: 2}}}]"), "j")
	born := w.now
	w.handle(w.failed("j", "first", w.claim("j", "first"), job.StepError{Message: "no", Retryable: true, Applied: makegood.AppliedNo}))
	w.handle(w.deadline("j"))
	w.handle(w.done("j", "first"))
	w.now = w.now.Add(time.Minute)
	w.request("j", job.Requested{Verb: makegood.VerbUndo, Request: "u"})
	all, err := w.s.SentInputs(t.Context(), "j", "", nil)
	if err != nil || len(all.Inputs) != 2 {
		t.Fatalf("got %+v, %v, want that of the step and that of its undo", all, err)
	}
	step, undo := all.Inputs[0], all.Inputs[1]
	state := w.job("j").Steps[0]
	if step.Step != "first" || undo.Step != "first" {
		t.Errorf("got the steps %q and %q, want first", step.Step, undo.Step)
	}
	if step.Undo || step.Attempt != state.Forward.Attempt || string(step.Value) != `{"a":1}` || !step.OpenedAt.After(born) {
		t.Errorf("the step: got %+v, want attempt %d", step, state.Forward.Attempt)
	}
	if !undo.Undo || undo.Attempt != state.Undo.Attempt || string(undo.Value) != `{"b":2}` || !undo.OpenedAt.Equal(w.now) || !undo.AsSent {
		t.Errorf("the undo: got %+v, want attempt %d at %v", undo, state.Undo.Attempt, w.now)
	}
	if one, err := w.s.SentInputs(t.Context(), "j", "other", nil); err != nil || len(one.Inputs) != 0 {
		t.Errorf("of a step that is not there: got %+v, %v", one, err)
	}
}

// A question about a job that is a newer release's, or that is not there, is answered so, each in its way.
func TestWhatIsAskedOfAJobThatCannotBeLoadedSaysWhy(t *testing.T) {
	for name, want := range map[string]error{"newer": store.ErrNewer, "not there": store.ErrNotFound} {
		w := newWorld(t)
		w.submit(w.define(twoSteps), "j")
		id := "j"
		if want == store.ErrNewer {
			w.use(func(c *scheduler.Config) { c.Jobs = newerJobs{c.Jobs, func() bool { return true }} })
		} else {
			id = "k"
		}
		for what, ask := range map[string]func() error{
			"task": func() error {
				_, ok, err := w.s.TaskOut(t.Context(), id, job.Reply{Step: "first", Attempt: 1})
				return no(ok, err)
			},
			"inputs": func() error { _, err := w.s.SentInputs(t.Context(), id, "", nil); return err },
			"offers": func() error { _, err := w.s.Offers(t.Context(), id); return err },
			"plan": func() error {
				_, _, err := w.s.Plan(t.Context(), id, job.Requested{Verb: makegood.VerbResubmit})
				return err
			},
		} {
			err := ask()
			newer := new(scheduler.NewerError)
			if !errors.Is(err, want) || errors.As(err, &newer) != (want == store.ErrNewer) {
				t.Errorf("%s of a job that is %s: got %v, want %v", what, name, err, want)
			}
			if want == store.ErrNewer && !strings.HasPrefix(err.Error(), "this job was written by a newer release") {
				t.Errorf("%s: got %q, want it as it is said to people", what, err)
			}
		}
	}
}

// no is err, unless something was found that should not be.
func no(ok bool, err error) error {
	if ok {
		return errors.New("it was found")
	}
	return err
}

// The task that a reply speaks of is found by its attempt and its token, and is that of the workflow.
func TestTheTaskOfAReplyIsFoundByItsToken(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define(twoSteps), "j")
	r := w.by("j", "first", w.claim("j", "first"))
	task, ok, err := w.s.TaskOut(t.Context(), "j", r)
	if err != nil || !ok || task.Job != "j" || task.Step != "first" || task.Attempt != 1 || task.Workflow != "two" {
		t.Errorf("got %+v, %v, %v", task, ok, err)
	}
	later := r
	later.Token = "2." + r.Token
	if _, ok, err := w.s.TaskOut(t.Context(), "j", later); ok || !errors.Is(err, store.ErrNewer) {
		t.Errorf("with a token of a later scheme: got %v, %v, want %v", ok, err, store.ErrNewer)
	}
	r.Token = "another"
	if _, ok, err := w.s.TaskOut(t.Context(), "j", r); ok || err != nil {
		t.Errorf("with another token: got %v, %v", ok, err)
	}
}

// Attempts that are closed because they are not wanted any more are counted, and so are claims that cannot be true.
func TestClosingsAreCounted(t *testing.T) {
	w := newWorld(t)
	w.submit(w.define("name: both\nsteps: [{name: first, agent: a, needs: [], undo: none}, {name: second, agent: a, needs: [], undo: none}]"), "j")
	w.request("j", job.Requested{Verb: makegood.VerbCancel, Request: "c"})
	if got := w.s.Stats(); got.Closed != 2 || got.Lies != 0 {
		t.Errorf("got %d closed and %d lies, want 2 and none", got.Closed, got.Lies)
	}
	if j := w.job("j"); j.ProcessState != makegood.JobCancelled {
		t.Errorf("got %s, want it cancelled", j.ProcessState)
	}
}
