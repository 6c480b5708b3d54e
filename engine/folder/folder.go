// Package folder reads the jobs of a data folder, whether an engine runs on it or not. It changes nothing: who wants a
// job to go on runs an engine on the folder, or asks the one that runs.
package folder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/sealed"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// listPage is how many jobs are read at a time.
const listPage = 200

// Folder is an api.Reader. Its methods may be called by many goroutines at once.
type Folder struct {
	mark   //lint:ignore U1000 it closes api.Reader
	reader *sqlitestore.Reader
}

//lint:ignore U1000 embedded without its name
type mark = sealed.By

var _ api.Reader = (*Folder)(nil)

// Open opens a data folder for reading. The error is fs.ErrNotExist where no engine has kept anything in it, and else
// that its file cannot be read, or was written by a release that this one cannot follow. Close it.
func Open(ctx context.Context, dir string) (*Folder, error) {
	path := filepath.Join(dir, embedded.DataFile)
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	reader, err := sqlitestore.OpenReader(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Folder{reader: reader}, nil
}

// Close closes the file.
func (f *Folder) Close() error { return f.reader.Close() }

// Get reads a job with its input and outputs.
func (f *Folder) Get(ctx context.Context, id string) (makegood.Job, error) {
	return f.read(ctx, id, func(j job.Job, held map[string]job.Claim) (makegood.Job, error) {
		return view.WithPayloads(ctx, j, held, f.reader)
	})
}

// Look reads a job without its input and outputs.
func (f *Folder) Look(ctx context.Context, id string) (makegood.Job, error) {
	return f.read(ctx, id, func(j job.Job, held map[string]job.Claim) (makegood.Job, error) {
		return view.Of(j, held), nil
	})
}

// read reads a job; what a newer release wrote is shown as far as it is known.
func (f *Folder) read(ctx context.Context, id string, show func(job.Job, map[string]job.Claim) (makegood.Job, error)) (makegood.Job, error) {
	j, err := f.reader.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		err = api.ErrNotFound
	}
	if err != nil && !errors.Is(err, store.ErrNewer) {
		return makegood.Job{}, fmt.Errorf("get job %s: %w", id, err)
	}
	held, err := f.held(ctx, j)
	if err != nil {
		return makegood.Job{}, fmt.Errorf("get job %s: %w", id, err)
	}
	return show(j, held)
}

// held reads who holds the attempts of a job that are out; of one whose definition is a newer release's nobody is known.
func (f *Folder) held(ctx context.Context, j job.Job) (map[string]job.Claim, error) {
	body, err := f.reader.Definition(ctx, j.Definition)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", j.Definition, err)
	}
	compiled, err := workflowfile.Load(body)
	if errors.Is(err, workflowfile.ErrNewer) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return scheduler.Held(ctx, f.reader, compiled.Workflow, j, time.Now())
}

// Page returns a page of a list.
func (f *Folder) Page(ctx context.Context, filter api.Filter, cursor string) (api.Page, error) {
	return view.List(ctx, f.reader, filter, cursor, listPage)
}

// Count counts the jobs of a list by facets.
func (f *Folder) Count(ctx context.Context, filter api.Filter, by []api.Facet, cursor string) (api.Groups, error) {
	return view.Groups(ctx, f.reader, filter, by, cursor)
}

// List returns jobs, the newest first, and reads on as far as its caller does.
func (f *Folder) List(ctx context.Context, filter api.Filter) iter.Seq2[api.Listed, error] {
	return protocol.Pages(func(cursor string) (api.Page, error) { return f.Page(ctx, filter, cursor) })
}

// Wait waits until a job is finished or in Error: somebody must run an engine on the folder.
func (f *Folder) Wait(ctx context.Context, id string) (makegood.Job, error) {
	return protocol.WaitFor(ctx, f, id)
}

// Watch looks at a job again and again.
func (f *Folder) Watch(ctx context.Context, id string) iter.Seq2[makegood.Job, error] {
	return protocol.Polled(ctx, id, f.Look)
}

// Workflows lists the workflows that engines on the folder have had.
func (f *Folder) Workflows(ctx context.Context) ([]api.Workflow, error) {
	known, err := f.reader.CurrentDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	var all []api.Workflow
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, api.Workflow{Name: name, Definition: known[name]})
	}
	return all, nil
}

// auditPage is how many jobs an audit looks at in a page.
const auditPage = 1000

// Audit looks at all jobs, and returns what it found page by page, as far as its caller reads on. An error ends it.
func (f *Folder) Audit(ctx context.Context) iter.Seq2[api.AuditPage, error] {
	return func(yield func(api.AuditPage, error) bool) {
		for cursor := ""; ; {
			page, next, err := f.reader.AuditPage(ctx, cursor, auditPage)
			if err != nil {
				yield(api.AuditPage{}, err)
				return
			}
			if !yield(api.AuditPage{Audited: len(store.AuditedJobs(page)), Strays: view.Strays(page), Cursor: next}, nil) || next == "" {
				return
			}
			cursor = next
		}
	}
}

// Schedules reads the schedules of the folder, by their names.
func (f *Folder) Schedules(ctx context.Context) ([]api.Scheduled, error) {
	all, err := f.reader.ListSchedules(ctx)
	if err != nil {
		return nil, err
	}
	return view.Schedules(all), nil
}

// quarantinePage is how many messages are read at a time.
const quarantinePage = 200

// Quarantine reads a page of what is in quarantine, as client.Client does.
func (f *Folder) Quarantine(ctx context.Context, cursor string) (api.QuarantinePage, error) {
	return f.quarantine().Page(ctx, cursor, quarantinePage)
}

// QuarantinedMessage reads a message in quarantine, as client.Client does. api.ErrNoMessage.
func (f *Folder) QuarantinedMessage(ctx context.Context, id string) (api.Quarantined, error) {
	return f.quarantine().Get(ctx, id)
}

func (f *Folder) quarantine() putaway.Shelf {
	return putaway.Shelf{Kept: f.reader, Job: func(ctx context.Context, id string) (makegood.Job, error) {
		j, err := f.Look(ctx, id)
		if errors.Is(err, api.ErrNotFound) {
			err = putaway.ErrNoJob
		}
		return j, err
	}}
}
