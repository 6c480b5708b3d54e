package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

const (
	insertJob = `INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, data)
		VALUES(?, 1, ?, ?, ?, ?, ?, ?, ?)`
	saveJob = `UPDATE jobs SET rev = ?, process_state = ?, failure_count = ?, locked_by = ?, parked = NULL, data = ?
		WHERE row = ?`
	// Naming complete_by costs two writes to indexes, moved or not.
	saveAndMoveJob = `UPDATE jobs SET rev = ?, process_state = ?, failure_count = ?, locked_by = ?, parked = NULL, data = ?, complete_by = ?, finished_at = ?
		WHERE row = ?`
	parkJob = `UPDATE jobs SET rev = rev + 1, process_state = ?, parked = ?, complete_by = ?, finished_at = NULL WHERE row = ?`
)

// packed is a job made ready outside the writer, whose time is the scarcest.
type packed struct {
	job  job.Job
	data []byte
}

// pack makes job ready to be stored as this revision, whole and apart from what the caller holds.
func pack(j job.Job, rev int64) packed {
	j = j.Clone()
	j.Rev = rev
	j.CompleteBy = makegood.Instant(j.CompleteBy)
	return packed{job: j, data: jobformat.Encode(j, jobformat.Apart{})}
}

// Create stores a new job; see store.Jobs.
func (s *Store) Create(ctx context.Context, j job.Job) error {
	p := pack(j, 1)
	err := s.submit(ctx, len(p.data), func(g *group) (answer, err error) { return g.create(p) })
	if err != nil {
		return fmt.Errorf("create job %s: %w", j.ID, err)
	}
	return nil
}

func (g *group) create(p packed) (answer, err error) {
	// A job that is damaged has its id, too.
	if it, err := g.item(p.job.ID); err != nil || it != nil {
		return store.ErrExists, err
	}
	j := p.job
	result, err := g.conn.exec(insertJob, j.ID, string(j.ProcessState), millis(j.CompleteBy), int64(j.FailureCount),
		j.LockedBy, j.Workflow, millis(j.CreatedAt), p.data)
	if err != nil {
		return nil, err
	}
	row, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	g.leave(&item{row: row, job: j})
	g.durable = true
	return nil, nil
}

// Load reads a job; see store.Jobs.
func (s *Store) Load(ctx context.Context, id string) (job.Job, error) {
	if it := s.cache.get(id); it != nil && ctx.Err() == nil && s.failure() == nil {
		return it.job.Clone(), nil
	}
	return s.Reader.Load(ctx, id)
}

// Save stores a changed job; see store.Jobs.
func (s *Store) Save(ctx context.Context, change store.Change) error {
	if err := jobformat.Newer(change.Job); err != nil {
		return fmt.Errorf("save job %s: %w", change.Job.ID, err)
	}
	p := pack(change.Job, change.Job.Rev+1)
	change.Seen = makegood.Instant(change.Seen)
	err := s.submit(ctx, len(p.data), func(g *group) (answer, err error) { return g.save(change, p) })
	if err != nil {
		return fmt.Errorf("save job %s: %w", change.Job.ID, err)
	}
	return nil
}

func (g *group) save(change store.Change, p packed) (answer, err error) {
	it, err := g.item(p.job.ID)
	switch {
	case err != nil:
		return nil, err
	case it == nil:
		return store.ErrConflict, nil
	}
	if answer := store.MaySave(it.job, change); answer != nil {
		return answer, nil
	}
	next := item{row: it.row, job: p.job}
	j := &next.job
	args := []driver.Value{j.Rev, string(j.ProcessState), int64(j.FailureCount), j.LockedBy, p.data}
	if j.CompleteBy.Equal(change.Seen) {
		j.CompleteBy = it.job.CompleteBy
		err = g.exec(saveJob, append(args, it.row)...)
	} else {
		err = g.exec(saveAndMoveJob, append(args, millis(j.CompleteBy), finishedAt(*j), it.row)...)
	}
	if err != nil {
		return nil, err
	}
	g.leave(&next)
	g.durable = true
	return nil, nil
}

// Park puts a job in front of a person; see store.Jobs.
func (s *Store) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	err := s.submit(ctx, len(reason), func(g *group) (answer, err error) { return g.park(id, seen, reason, completeBy) })
	if err != nil {
		return fmt.Errorf("park job %s: %w", id, err)
	}
	return nil
}

func (g *group) park(id string, seen time.Time, reason string, completeBy time.Time) (answer, err error) {
	row := make([]driver.Value, 3)
	found, err := g.conn.one(`SELECT row, complete_by, data FROM jobs WHERE id = ?`, row, id)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return store.ErrNotFound, nil
	case jobformat.Needs(asBytes(row[2])) > jobformat.Level:
		return store.ErrNewer, nil
	case !asTime(row[1]).Equal(makegood.Instant(seen)):
		return store.ErrConflict, nil
	}
	err = g.exec(parkJob, string(makegood.Error), reason, millis(completeBy), row[0])
	g.items[id] = nil
	g.durable = true
	return nil, err
}

// leave remembers how this group leaves a job.
func (g *group) leave(it *item) { g.items[it.job.ID] = it }
