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
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/internal/view"
)

const (
	// listPage is how many jobs are read at a time.
	listPage = 200
	// longestLook is how far apart Watch looks at a job of which it hears nothing.
	longestLook = time.Second
)

// Submit stores a job, and returns it as it is stored, without payloads. What api.Jobs says of it holds.
func (e *Engine) Submit(ctx context.Context, s makegood.Submission) (makegood.Job, error) {
	if s.ID == "" {
		s.ID = protocol.NewJobID(time.Now())
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
	return e.read(ctx, id, func(j job.Job, held map[string]job.Claim) (makegood.Job, error) {
		return view.WithPayloads(ctx, j, held, e.inner)
	})
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
	held, err := e.inner.Held(ctx, j)
	if err != nil {
		return v, fmt.Errorf("get job %s: %w", id, err)
	}
	if v, err = show(j, held); err != nil {
		return v, fmt.Errorf("get job %s: %w", id, err)
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
	return protocol.Pages(func(cursor string) (api.Page, error) { return e.Page(ctx, filter, cursor) })
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
func byWhom(ctx context.Context) string { return cmp.Or(limits.Clip(api.Who(ctx)), byEngine) }

// requested is the event of a request.
func requested(ctx context.Context, r api.Request) (job.Requested, error) {
	asked := job.Requested{
		Verb: r.Verb, Reason: limits.Clip(r.Reason), StartAt: r.StartAt, Definition: r.Definition, Timeout: r.Timeout, By: byWhom(ctx),
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
	case !slices.Contains(domain.Verbs(), r.Verb):
		return fmt.Sprintf("there is no verb %.40q; there are %v", r.Verb, domain.Verbs())
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

// Wait waits until a job is finished or in Error, and returns it with its payloads. It ends with ctx's error when ctx does.
func (e *Engine) Wait(ctx context.Context, id string) (makegood.Job, error) {
	return protocol.WaitFor(ctx, e, id)
}

// Watch returns a job without payloads each time it was saved, first as it is now, and ends after giving it finished or
// in Error. Saves that follow closely upon each other may be seen as one. An error ends it.
func (e *Engine) Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error] {
	return func(yield func(makegood.Job, error) bool) {
		saved, forget := e.waiting.register(id)
		defer forget()
		for {
			job, err := e.Look(ctx, id)
			if err != nil {
				yield(job, err)
				return
			}
			if !yield(job, nil) || job.AtEnd() {
				return
			}
			select {
			case <-saved:
			case <-time.After(longestLook):
				// A job that cannot be read is parked by a write that nobody hears of.
			case <-ctx.Done():
				yield(job, fmt.Errorf("watch job %s: %w", id, context.Cause(ctx)))
				return
			}
		}
	}
}

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

// waiting are those who wait for a job to be saved.
type waiting struct {
	mu   *sync.Mutex
	jobs map[string]map[chan struct{}]bool
}

func newWaiting() waiting {
	return waiting{mu: new(sync.Mutex), jobs: map[string]map[chan struct{}]bool{}}
}

// register returns a channel on which something comes after each save of a job from now on, and what ends that.
func (w *waiting) register(id string) (saved <-chan struct{}, forget func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[id] == nil {
		w.jobs[id] = map[chan struct{}]bool{}
	}
	w.jobs[id][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.jobs[id], c); len(w.jobs[id]) == 0 {
			delete(w.jobs, id)
		}
	}
}

// saved wakes who waits for a job.
func (w *waiting) saved(j job.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.jobs[j.ID] {
		select {
		case c <- struct{}{}:
		default: // It was woken already, and has not looked yet.
		}
	}
}
