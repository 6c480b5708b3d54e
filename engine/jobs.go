package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/view"
)

const (
	// listPage is how many jobs are read at a time.
	listPage = 200
	// firstLook and longestLook are how far apart Wait and Watch look at a job of which they hear nothing, at first and at last:
	// they hear of every save, but for one whose own answer was lost.
	firstLook, longestLook = time.Second, 30 * time.Second
)

// Submit stores a job, and returns it as it is stored, without payloads. What api.Jobs says of it holds.
func (e *Engine) Submit(ctx context.Context, s makegood.Submission) (makegood.Job, error) {
	if s.ID == "" {
		s.ID = api.NewJobID(time.Now())
	}
	j, created, err := e.inner.SubmitCurrent(ctx, s.Workflow, scheduler.Submission{
		ID: s.ID, Input: s.Input, StartAt: s.StartAt, ReplyTo: s.ReplyTo, Tenant: s.Tenant, Labels: s.Labels,
		Traceparent: watch.Under(ctx, s.Traceparent),
	})
	if err != nil {
		return makegood.Job{}, fmt.Errorf("submit job %s: %w", s.ID, plain(s.ID, err))
	}
	v := view.Of(j, nil)
	v.Existed = !created
	return v, nil
}

// Get reads a job with its input and outputs.
func (e *Engine) Get(ctx context.Context, id string) (makegood.Job, error) {
	return e.read(ctx, id, e.withPayloads(ctx))
}

func (e *Engine) withPayloads(ctx context.Context) func(job.Job, map[string]job.Claim) (makegood.Job, error) {
	return func(j job.Job, held map[string]job.Claim) (makegood.Job, error) {
		return view.WithPayloads(ctx, j, held, e.inner)
	}
}

// Look reads a job without its input and outputs.
func (e *Engine) Look(ctx context.Context, id string) (makegood.Job, error) {
	return e.read(ctx, id, func(j job.Job, held map[string]job.Claim) (makegood.Job, error) {
		return view.Of(j, held), nil
	})
}

func (e *Engine) read(ctx context.Context, id string, show func(job.Job, map[string]job.Claim) (makegood.Job, error)) (v makegood.Job, err error) {
	j, err := e.inner.Job(ctx, id)
	if err != nil {
		return v, fmt.Errorf("get job %s: %w", id, plain(id, err))
	}
	return e.shown(ctx, j, show)
}

// shown shows a job that was read.
func (e *Engine) shown(ctx context.Context, j job.Job, show func(job.Job, map[string]job.Claim) (makegood.Job, error)) (v makegood.Job, err error) {
	held, err := e.inner.Held(ctx, j)
	if err != nil {
		return v, fmt.Errorf("get job %s: %w", j.ID, err)
	}
	if v, err = show(j, held); err != nil {
		return v, fmt.Errorf("get job %s: %w", j.ID, err)
	}
	return v, nil
}

// Page returns a page of a list: at most 200 jobs, the newest first.
func (e *Engine) Page(ctx context.Context, filter api.Filter, cursor string) (api.Page, error) {
	return view.List(ctx, e.inner, filter, cursor, listPage)
}

// Count counts the jobs of a list by facets. What api.Jobs says of it holds.
func (e *Engine) Count(ctx context.Context, filter api.Filter, by []api.Facet, cursor string) (api.Groups, error) {
	return view.Groups(ctx, e.inner, filter, by, cursor)
}

// List returns jobs, the newest first, and reads on as far as its caller does.
func (e *Engine) List(ctx context.Context, filter api.Filter) iter.Seq2[api.Listed, error] {
	return api.Pages(func(cursor string) (api.Page, error) { return e.Page(ctx, filter, cursor) })
}

// Request asks for any verb, under a name of its own. What api.Jobs says of it holds.
func (e *Engine) Request(ctx context.Context, id string, r api.Request) (v makegood.Job, err error) {
	if wrong := wrongRequest(r); wrong != "" {
		return v, fmt.Errorf("%s job %s: %w", r.Verb, id, &api.InvalidError{Message: wrong})
	}
	asked, err := requested(ctx, r)
	if err != nil {
		return v, fmt.Errorf("%s job %s: %w", r.Verb, id, plain(id, err))
	}
	j, verdict, err := e.inner.Request(ctx, id, asked)
	switch {
	case err != nil:
		return v, fmt.Errorf("%s job %s: %w", r.Verb, id, plain(id, err))
	case verdict.Kind == machine.Refused:
		return v, fmt.Errorf("%s job %s: %w", r.Verb, id, &api.RefusedError{Job: id, Reason: verdict.Reason})
	}
	v = view.Of(j, nil)
	v.Existed = verdict.Kind == machine.Duplicate
	return v, nil
}

// byWhom is who asks: what the program says (api.As), or byEngine.
func byWhom(ctx context.Context) string { return cmp.Or(makegood.Clip(api.Who(ctx)), byEngine) }

// requested is the event of a request.
func requested(ctx context.Context, r api.Request) (job.Requested, error) {
	asked := job.Requested{
		Verb: r.Verb, Reason: makegood.Clip(r.Reason), StartAt: r.StartAt, Definition: r.Definition, Timeout: r.Timeout, By: byWhom(ctx),
	}
	if r.Name != "" {
		// As at the API: the core knows requests by their names alone, and the same name under another verb is another one.
		asked.Request = string(r.Verb) + ":" + r.Name
	}
	input, err := scheduler.CheckInput(r.Input)
	asked.Input = input
	return asked, err
}

// Plan says what a resubmit would do. What api.Jobs says of it holds.
func (e *Engine) Plan(ctx context.Context, id string, r api.Request) (makegood.Plan, error) {
	if wrong := wrongRequest(r); wrong != "" || r.Verb != makegood.VerbResubmit {
		wrong = cmp.Or(wrong, fmt.Sprintf("there is no plan of %s, only of %s", r.Verb, makegood.VerbResubmit))
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, &api.InvalidError{Message: wrong})
	}
	asked, err := requested(ctx, r)
	if err != nil {
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, plain(id, err))
	}
	plan, verdict, err := e.inner.Plan(ctx, id, asked)
	switch {
	case err != nil:
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, plain(id, err))
	case verdict.Kind == machine.Refused:
		return makegood.Plan{}, fmt.Errorf("plan job %s: %w", id, &api.RefusedError{Job: id, Reason: verdict.Reason})
	}
	return plan, nil
}

// Offers says what may be asked of a job as it stands: of each verb what it would do, or why it would be refused. Nothing is
// changed. Errors: api.ErrNotFound.
func (e *Engine) Offers(ctx context.Context, id string) (makegood.Offers, error) {
	offers, err := e.inner.Offers(ctx, id)
	if err != nil {
		return makegood.Offers{}, fmt.Errorf("verbs of job %s: %w", id, plain(id, err))
	}
	return offers, nil
}

// SentInputs says what the steps of a job and their undos were asked, as client.Client.SentInputs does. Nothing is changed. Errors:
// api.ErrNotFound.
func (e *Engine) SentInputs(ctx context.Context, id, step string) (makegood.SentInputs, error) {
	all, err := view.SentInputs(ctx, e.inner, id, step)
	if err != nil {
		return makegood.SentInputs{}, fmt.Errorf("inputs of job %s: %w", id, plain(id, err))
	}
	return all, nil
}

// wrongRequest says what is wrong with a request; empty: nothing.
func wrongRequest(r api.Request) string {
	switch {
	case !slices.Contains(makegood.Verbs(), r.Verb):
		return fmt.Sprintf("there is no verb %.40q; there are %v", r.Verb, makegood.Verbs())
	case r.Verb == makegood.VerbReschedule && r.StartAt.IsZero():
		return "startAt is missing"
	case r.Verb == makegood.VerbEdit && r.Timeout == 0:
		return "timeout is missing"
	case r.Name != "" && makegood.CheckJobID(r.Name) != nil:
		return fmt.Sprintf("the name %.140q of a request is none: want what an id may be", r.Name)
	}
	return ""
}

// Workflows lists what jobs can be submitted to.
func (e *Engine) Workflows(ctx context.Context) ([]api.Workflow, error) {
	known, err := e.inner.Workflows(ctx)
	var all []api.Workflow
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, api.Workflow{Name: name, Definition: known[name]})
	}
	return all, err
}

// Definition reads a definition by its hash, which is that of a job or of a api.Workflow. Errors: api.ErrNoDefinition.
func (e *Engine) Definition(ctx context.Context, hash string) (api.Definition, error) {
	text, err := e.inner.Definition(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		err = api.ErrNoDefinition
	}
	if err != nil {
		return api.Definition{}, fmt.Errorf("read definition %.40q: %w", hash, err)
	}
	shown, err := view.Definition(text)
	if err != nil {
		return api.Definition{}, fmt.Errorf("read definition %s: %w", hash, err)
	}
	return shown, nil
}

// Wait waits until a job is finished or in Error, and returns it with its payloads, as it was saved then. It ends with ctx's
// error when ctx does.
func (e *Engine) Wait(ctx context.Context, id string) (makegood.Job, error) {
	w := &waiter{wake: make(chan struct{}, 1), end: true}
	defer e.waiting.register(id, w)()
	for pause := firstLook; ; {
		j, err := e.inner.Job(ctx, id)
		if err != nil {
			return makegood.Job{}, fmt.Errorf("get job %s: %w", id, plain(id, err))
		}
		if atEnd(j) {
			return e.shown(ctx, j, e.withPayloads(ctx))
		}
		if pause, err = nextLook(ctx, id, w.wake, pause); err != nil {
			return makegood.Job{}, err
		}
		// What is told late may be of an end before the look, from which the job has been resubmitted since.
		if ended := w.ended.Load(); ended != nil && ended.Rev > j.Rev {
			return e.shown(ctx, *ended, e.withPayloads(ctx))
		}
	}
}

// Watch returns a job without payloads each time it was saved, first as it is now, and ends after giving it finished or
// in Error. Saves that follow closely upon each other may be seen as one. An error ends it.
func (e *Engine) Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error] {
	return func(yield func(makegood.Job, error) bool) {
		w := &waiter{wake: make(chan struct{}, 1)}
		defer e.waiting.register(id, w)()
		for pause := firstLook; ; {
			job, err := e.Look(ctx, id)
			if err != nil {
				yield(job, err)
				return
			}
			if !yield(job, nil) || job.AtEnd() {
				return
			}
			if pause, err = nextLook(ctx, id, w.wake, pause); err != nil {
				yield(job, err)
				return
			}
		}
	}
}

// nextLook waits until a job is to be looked at again: something came, or nothing for the pause. It returns the pause after that
// look.
func nextLook(ctx context.Context, id string, came <-chan struct{}, pause time.Duration) (time.Duration, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-came:
		return firstLook, nil
	case <-timer.C:
		return min(2*pause, longestLook), nil
	case <-ctx.Done():
		return pause, fmt.Errorf("watch job %s: %w", id, context.Cause(ctx))
	}
}

// atEnd reports whether a job is finished or in Error, as makegood.Job.AtEnd does.
func atEnd(j job.Job) bool { return j.ProcessState.Finished() || j.ProcessState == makegood.JobError }

// plain returns an error of the engine in the words of package client.
func plain(id string, err error) error {
	var mismatch *scheduler.MismatchError
	var misfit *scheduler.MisfitError
	switch {
	case errors.As(err, &mismatch):
		return &api.MismatchError{Job: mismatch.Job, Have: mismatch.Have, Got: mismatch.Got}
	case errors.As(err, &misfit):
		return &api.InvalidError{Message: misfit.Error(), Misfits: misfit.Misfits}
	case errors.Is(err, scheduler.ErrInvalid):
		return &api.InvalidError{Message: strings.TrimPrefix(err.Error(), scheduler.ErrInvalid.Error()+": ")}
	case errors.Is(err, store.ErrNotFound):
		return api.ErrNotFound
	default:
		return err
	}
}

// waiter is one who waits for a job to be saved.
type waiter struct {
	// wake gets something after each save, or, with end, after the one that ends the job.
	wake chan struct{}
	end  bool
	// ended is the job as that one has saved it; nobody changes it.
	ended atomic.Pointer[job.Job]
}

// waiting are those who wait for jobs, by the jobs' ids.
type waiting struct {
	mu   *sync.Mutex
	jobs map[string][]*waiter
}

func newWaiting() waiting { return waiting{mu: new(sync.Mutex), jobs: map[string][]*waiter{}} }

// register has one who waits hear of the saves of a job from now on, and returns what ends that.
func (w *waiting) register(id string, one *waiter) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[id] = append(w.jobs[id], one)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		left := slices.DeleteFunc(w.jobs[id], func(other *waiter) bool { return other == one })
		if w.jobs[id] = left; len(left) == 0 {
			delete(w.jobs, id)
		}
	}
}

// saved wakes who waits for a job.
func (w *waiting) saved(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.jobs[j.ID] {
		one.saved(j)
	}
}

// parked wakes who waits for a job that was parked, which nobody can read perhaps: they look.
func (w *waiting) parked(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.jobs[id] {
		one.rouse()
	}
}

func (w *waiter) saved(j job.Job) {
	if w.end {
		if !atEnd(j) {
			return
		}
		ended := j
		w.ended.Store(&ended)
	}
	w.rouse()
}

func (w *waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // It was woken already, and has not looked yet.
	}
}
