// Package folder reads the jobs of a data folder, whether an engine runs on it or not. It never writes: to move
// jobs on, run an engine on the folder, or ask the one that runs.
package folder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/control"
	"github.com/makegood-dev/makegood/internal/embedded"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/putaway"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/view"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// Folder is an api.Reader. Its methods may be called by many goroutines at once.
type Folder struct {
	api.Reader
	reader *sqlitestore.Reader
	audit  func(ctx context.Context) iter.Seq2[api.AuditPage, error]
}

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
	f := &Folder{reader: reader}
	jobs := control.NewReader(control.Reading{Store: reader, Held: f.held, Near: true, Workflows: reader.CurrentDefinitions})
	f.Reader, f.audit = jobs, jobs.Audit
	return f, nil
}

// Close closes the file.
func (f *Folder) Close() error { return f.reader.Close() }

// held returns the claims on a job's attempts that are out; none for a job that runs a definition of a newer release.
func (f *Folder) held(ctx context.Context, j job.Job) (map[string]job.Claim, error) {
	stored := func(hash string) ([]byte, error) { return f.reader.Definition(ctx, hash) }
	compiled, err := workflowfile.LoadBy(j.Definition, stored, workflowfile.Load)
	if errors.Is(err, workflowfile.ErrNewer) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", j.Definition, err)
	}
	return scheduler.Held(ctx, f.reader, compiled.Workflow, j, time.Now())
}

// Audit audits all jobs, and returns its findings page by page, as far as its caller reads on. An error ends it.
func (f *Folder) Audit(ctx context.Context) iter.Seq2[api.AuditPage, error] { return f.audit(ctx) }

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

// Quarantine returns a page of the quarantine, as client.Client does.
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
