package control

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/sealed"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

const (
	// listPage is the number of jobs in a page of a list.
	listPage = 200
	// auditPage is the number of jobs in a page of an audit.
	auditPage = 1000
	// maxNear limits the attempts of a job, out at once, that a list reads claims for: each is a read of the store.
	maxNear = 20
)

// Store reads jobs.
type Store interface {
	store.Lister
	store.Auditor
	view.Source
	// Load reads a job; one that a newer release wrote comes with store.ErrNewer.
	Load(ctx context.Context, id string) (job.Job, error)
	// Definition reads a definition by its hash.
	Definition(ctx context.Context, hash string) ([]byte, error)
}

// Reading has the parts of a Reader.
type Reading struct {
	Store Store
	// Held returns the claims on a job's outstanding attempts, by step. Near: the claims are stored beside the jobs, so a
	// list reads them too; on a stack each would be a request of its own, at every read of the list.
	Held func(ctx context.Context, j job.Job) (map[string]job.Claim, error)
	Near bool
	// Stands marks the jobs of an audit's page that stand still. Nil: they are not marked.
	Stands func(ctx context.Context, page []store.Audited)
	// Workflows returns the hashes of the current definitions, by the names of their workflows.
	Workflows func(ctx context.Context) (map[string]string, error)
	// Totals counts the jobs by their states without reading them. Nil: it is not available here.
	Totals store.Totaler
	// Waiting is told of every save, for Wait and Watch. Nil: they poll.
	Waiting *Waiting
}

// Reader is an api.Reader of a store.
type Reader struct {
	mark    //lint:ignore U1000 it closes api.Reader
	reading Reading
}

//lint:ignore U1000 embedded without its name
type mark = sealed.By

var _ api.Reader = (*Reader)(nil)

// NewReader returns a Reader, which writes to no store.
func NewReader(r Reading) *Reader { return &Reader{reading: r} }

// Get implements api.Reader. A job that a newer release wrote is shown as far as it is known.
func (r *Reader) Get(ctx context.Context, id string) (makegood.Job, error) {
	return r.read(ctx, id, r.counting(view.WithPayloads))
}

// Look implements api.Reader.
func (r *Reader) Look(ctx context.Context, id string) (makegood.Job, error) {
	return r.read(ctx, id, func(_ context.Context, j job.Job, held map[string]job.Claim, _ view.Source) (makegood.Job, error) {
		return view.Of(j, held), nil
	})
}

// Outline reads a job with its history, and with the payloads that are small (view.Outlined).
func (r *Reader) Outline(ctx context.Context, id string) (makegood.Job, error) {
	return r.read(ctx, id, r.counting(view.Outlined))
}

// shows shows a job with the claims on its attempts, as view.WithPayloads does.
type shows = func(ctx context.Context, j job.Job, held map[string]job.Claim, from view.Source) (makegood.Job, error)

func (r *Reader) read(ctx context.Context, id string, show shows) (makegood.Job, error) {
	j, err := r.load(ctx, id)
	if err != nil {
		return makegood.Job{}, fmt.Errorf("get job %s: %w", id, err)
	}
	return r.shown(ctx, j, show)
}

// shown shows a job that was read.
func (r *Reader) shown(ctx context.Context, j job.Job, show shows) (makegood.Job, error) {
	held, err := r.reading.Held(ctx, j)
	if err != nil {
		return makegood.Job{}, fmt.Errorf("get job %s: %w", j.ID, inWords(err))
	}
	v, err := show(ctx, j, held, r.reading.Store)
	return v, store.About(inWords(err), "get job %s", j.ID)
}

// load reads a job, also one that a newer release wrote. It answers for an invalid id without a read of the store.
func (r *Reader) load(ctx context.Context, id string) (job.Job, error) {
	if domain.CheckJobID(id) != nil {
		return job.Job{}, api.ErrNotFound
	}
	j, err := r.loadAny(ctx, id)
	return j, inWords(err)
}

// Page implements api.Reader: at most 200 jobs.
func (r *Reader) Page(ctx context.Context, filter api.Filter, cursor string) (api.Page, error) {
	return r.PageOf(ctx, filter, cursor, listPage)
}

// PageOf returns a page of a list of at most limit jobs.
func (r *Reader) PageOf(ctx context.Context, filter api.Filter, cursor string, limit int) (api.Page, error) {
	page, err := view.List(ctx, r.reading.Store, filter, cursor, limit)
	return page, inWords(err)
}

// Details returns a page of a list of at most limit jobs, each with the job itself (api.Listed.Job).
func (r *Reader) Details(ctx context.Context, filter api.Filter, cursor string, limit int) (api.Page, error) {
	page, err := view.Details(ctx, r.reading.Store, filter, cursor, limit, r.nearClaims(ctx))
	return page, inWords(err)
}

// nearClaims returns the function that reads the claims on a job's attempts; nil: they are not near.
func (r *Reader) nearClaims(ctx context.Context) view.Claims {
	if !r.reading.Near {
		return nil
	}
	return func(j job.Job) (map[string]job.Claim, error) {
		if out := attemptsOut(j); out == 0 || out > maxNear {
			return nil, nil
		}
		return r.reading.Held(ctx, j)
	}
}

func attemptsOut(j job.Job) (out int) {
	for _, s := range j.Steps {
		for _, a := range []job.Activity{s.Forward, s.Undo} {
			if a.State == job.Dispatched {
				out++
			}
		}
	}
	return out
}

// Count implements api.Reader.
func (r *Reader) Count(ctx context.Context, filter api.Filter, by []api.Facet, cursor string) (api.Groups, error) {
	groups, err := view.Groups(ctx, r.reading.Store, filter, by, cursor)
	return groups, inWords(err)
}

// Errors counts the jobs in Error by their workflow, the step at which they stopped, and the kind of its error.
func (r *Reader) Errors(ctx context.Context, cursor string) (api.Groups, error) {
	return r.Count(ctx, api.Filter{State: makegood.JobError}, view.ErrorFacets(), cursor)
}

// Totals returns the number of jobs in each state, without reading the jobs.
func (r *Reader) Totals(ctx context.Context) (map[makegood.ProcessState]int, error) {
	if r.reading.Totals == nil {
		return nil, notHere("how many jobs there are is not known here; a count reads and counts them")
	}
	all, err := r.reading.Totals.Totals(ctx)
	return all, store.About(inWords(err), "totals of jobs")
}

// List implements api.Reader.
func (r *Reader) List(ctx context.Context, filter api.Filter) iter.Seq2[api.Listed, error] {
	return protocol.Pages(func(cursor string) (api.Page, error) { return r.Page(ctx, filter, cursor) })
}

// Workflows implements api.Reader, sorted by name.
func (r *Reader) Workflows(ctx context.Context) ([]api.Workflow, error) {
	known, err := r.reading.Workflows(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", inWords(err))
	}
	all := make([]api.Workflow, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, api.Workflow{Name: name, Definition: known[name]})
	}
	return all, nil
}

// HashPattern is the form of the hash of a definition, and of the name of the definition of a part of a map.
var HashPattern = regexp.MustCompile(`^[0-9a-f]{32}(~` + limits.StepName.Pattern() + `~[0-9]{1,6})?$`)

// Definition reads a definition by its hash, current or not. The definition of a part of a map is read by the name that
// its job has. Errors: api.ErrNoDefinition, api.ErrNewer.
func (r *Reader) Definition(ctx context.Context, hash string) (api.Definition, error) {
	if !HashPattern.MatchString(hash) {
		return api.Definition{}, fmt.Errorf("read definition %.40q: %w", hash, api.ErrNoDefinition)
	}
	compiled, err := r.definition(ctx, hash)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, workflowfile.ErrNoMap) {
		err = api.ErrNoDefinition
	}
	if err != nil {
		return api.Definition{}, fmt.Errorf("read definition %s: %w", hash, inWords(err))
	}
	shown, err := view.Definition(compiled)
	return shown, store.About(inWords(err), "read definition %s", hash)
}

// definition compiles a definition, or that of a part of a map.
func (r *Reader) definition(ctx context.Context, hash string) (*workflowfile.Compiled, error) {
	stored := func(hash string) ([]byte, error) { return r.reading.Store.Definition(ctx, hash) }
	return workflowfile.LoadBy(hash, stored, workflowfile.Load)
}

// Audit checks all jobs, and returns its findings page by page, as its caller reads them. An error ends it.
func (r *Reader) Audit(ctx context.Context) iter.Seq2[api.AuditPage, error] {
	return func(yield func(api.AuditPage, error) bool) {
		for cursor := ""; ; {
			page, err := r.AuditPage(ctx, cursor)
			if !yield(page, err) || err != nil || page.Cursor == "" {
				return
			}
			cursor = page.Cursor
		}
	}
}

// AuditPage checks a page of all jobs, after the page that returned cursor; empty: the first.
func (r *Reader) AuditPage(ctx context.Context, cursor string) (api.AuditPage, error) {
	page, next, err := r.reading.Store.AuditPage(ctx, cursor, auditPage)
	if errors.Is(err, store.ErrNotFound) {
		err = &api.InvalidError{Message: fmt.Sprintf("the cursor %.40q is of no page of an audit", cursor)}
	}
	if err != nil {
		return api.AuditPage{}, fmt.Errorf("audit: %w", inWords(err))
	}
	if r.reading.Stands != nil {
		r.reading.Stands(ctx, page)
	}
	return api.AuditPage{Audited: len(store.AuditedJobs(page)), Strays: view.Strays(page), Cursor: next}, nil
}

// Wait implements api.Reader. It returns the job as it was saved at its end.
func (r *Reader) Wait(ctx context.Context, id string) (makegood.Job, error) {
	if r.reading.Waiting == nil {
		return protocol.WaitFor(ctx, r, id)
	}
	w := &waiter{wake: make(chan struct{}, 1), end: true}
	defer r.reading.Waiting.register(id, w)()
	for pause := firstLook; ; {
		j, err := r.load(ctx, id)
		if err != nil {
			return makegood.Job{}, fmt.Errorf("get job %s: %w", id, err)
		}
		if atEnd(j) {
			return r.shown(ctx, j, r.counting(view.WithPayloads))
		}
		if pause, err = nextLook(ctx, id, w.wake, pause); err != nil {
			return makegood.Job{}, err
		}
		// A save that is told late may be of an end before the look, from which the job has been resubmitted since.
		if ended := w.ended.Load(); ended != nil && ended.Rev > j.Rev {
			return r.shown(ctx, *ended, r.counting(view.WithPayloads))
		}
	}
}

// Watch implements api.Reader. Saves in close succession may appear as one.
func (r *Reader) Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error] {
	if r.reading.Waiting == nil {
		return protocol.Polled(ctx, id, r.Look)
	}
	return func(yield func(makegood.Job, error) bool) {
		w := &waiter{wake: make(chan struct{}, 1)}
		defer r.reading.Waiting.register(id, w)()
		for pause := firstLook; ; {
			job, err := r.Look(ctx, id)
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
