package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

const (
	insertJob = `INSERT INTO jobs(id, rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, data, tenant)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertLabel = `INSERT INTO labels(row, name, value) VALUES(?, ?, ?)`
	saveJob     = `UPDATE jobs SET rev = ?, failure_count = ?, locked_by = ?, parked = NULL, data = ? WHERE row = ?`
	// Naming process_state costs a look at its index, changed or not: a seventh of a save.
	saveStateOfJob = `UPDATE jobs SET rev = ?, failure_count = ?, locked_by = ?, parked = NULL, data = ?, process_state = ?
		WHERE row = ?`
	// Naming complete_by costs two writes to indexes, moved or not.
	saveAndMoveJob = `UPDATE jobs SET rev = ?, failure_count = ?, locked_by = ?, parked = NULL, data = ?, process_state = ?, complete_by = ?, finished_at = ?
		WHERE row = ?`
	selectParked = `SELECT row, rev, complete_by, data FROM jobs WHERE id = ?`
	markWarned   = `UPDATE jobs SET warned = ? WHERE row = ?`
	parkJob      = `UPDATE jobs SET rev = ?, process_state = ?, parked = ?, complete_by = ?, finished_at = NULL, held_by = NULL, warned = NULL WHERE row = ?`
)

// pack makes a job ready to be stored, outside the writer, which has the least time to spare.
func pack(j job.Job) (packed job.Job, data []byte) {
	packed = j
	packed.CompleteBy = domain.Instant(packed.CompleteBy)
	return packed, jobformat.Encode(packed, jobformat.Apart{})
}

// Create stores a new job; see store.Jobs.
func (s *Store) Create(ctx context.Context, j job.Job) error { return s.createKept(ctx, j.Clone()) }

// createKept keeps the job that it is given: it must not change any more.
func (s *Store) createKept(ctx context.Context, j job.Job) error {
	packed, data := pack(j)
	fresh := &item{job: packed}
	err := s.submit(ctx, len(data), func(g *group) (answer, err error) { return g.create(fresh, data) })
	if err != nil {
		return fmt.Errorf("create job %s: %w", j.ID, err)
	}
	return nil
}

// create stores the job of a fresh item, and completes the item.
func (g *group) create(fresh *item, data []byte) (answer, err error) {
	fresh.job, answer = store.Created(job.Job{}, fresh.job)
	if answer != nil {
		return answer, nil
	}
	j := &fresh.job
	// The statement says whether the id is free, as nearly every id is: a look before it would cost as much again.
	result, err := g.conn.exec(insertJob+" ON CONFLICT DO NOTHING", j.ID, j.Rev, string(j.ProcessState), millis(j.CompleteBy),
		int64(j.FailureCount), j.LockedBy, j.Workflow, millis(j.CreatedAt), data, orNull(j.Tenant))
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return g.taken(*j, err)
	}
	row, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(g.markHeld(row, "", *j), g.markWarned(row, false, *j)); err != nil {
		return nil, err
	}
	for name, value := range j.Labels {
		if err := g.exec(insertLabel, row, name, value); err != nil {
			return nil, err
		}
	}
	fresh.row, fresh.held, fresh.warned = row, store.HeldName(*j), j.Warned()
	g.leave(fresh)
	g.durable = true
	return nil, nil
}

// taken is the answer to creating a job under an id that is not free. A job that is damaged has its id, too.
func (g *group) taken(jb job.Job, err error) (answer, _ error) {
	if err != nil {
		return nil, err
	}
	it, err := g.item(jb.ID)
	if err != nil {
		return nil, err
	}
	if _, answer = store.Created(it.stored(), jb); answer == nil {
		return nil, fmt.Errorf("job %s was not stored, and there is none", jb.ID)
	}
	return answer, nil
}

// orNull writes a text as a column; the empty one is null.
func orNull(text string) driver.Value {
	if text == "" {
		return nil
	}
	return text
}

// Load reads a job; see store.Jobs.
func (s *Store) Load(ctx context.Context, id string) (job.Job, error) {
	if j, ok := s.cached(ctx, id); ok {
		return j.Clone(), nil
	}
	return s.Reader.Load(ctx, id)
}

// cached returns a job from memory, which is never changed.
func (s *Store) cached(ctx context.Context, id string) (j job.Job, ok bool) {
	if it := s.cache.get(id); it != nil && ctx.Err() == nil && s.failure() == nil {
		return it.job, true
	}
	return j, false
}

// Save stores a changed job; see store.Jobs.
func (s *Store) Save(ctx context.Context, change store.Change) error {
	change.Job = change.Job.Clone()
	return s.saveKept(ctx, change)
}

// saveKept keeps the job that it is given: it must not change any more.
func (s *Store) saveKept(ctx context.Context, change store.Change) error {
	if err := jobformat.Newer(change.Job); err != nil {
		return fmt.Errorf("save job %s: %w", change.Job.ID, err)
	}
	packed, data := pack(change.Job)
	fresh, seen := &item{job: packed}, domain.Instant(change.Seen)
	err := s.submit(ctx, len(data), func(g *group) (answer, err error) { return g.save(fresh, seen, data) })
	if err != nil {
		return fmt.Errorf("save job %s: %w", packed.ID, err)
	}
	return nil
}

// save stores the job of a fresh item, which was seen under a key, and completes the item.
func (g *group) save(fresh *item, seen time.Time, data []byte) (answer, err error) {
	it, err := g.item(fresh.job.ID)
	if err != nil {
		return nil, err
	}
	change := store.Change{Job: fresh.job, Seen: seen}
	fresh.job, answer = store.Saved(it.stored(), change)
	if answer != nil {
		return answer, nil
	}
	j := &fresh.job
	failures, state := int64(j.FailureCount), string(j.ProcessState)
	switch { // Arguments that are listed in the call do not escape.
	case change.MovesKey():
		err = g.exec(saveAndMoveJob, j.Rev, failures, j.LockedBy, data, state, millis(j.CompleteBy), finishedAt(*j), it.row)
	case it.stored().ProcessState != j.ProcessState:
		err = g.exec(saveStateOfJob, j.Rev, failures, j.LockedBy, data, state, it.row)
	default:
		err = g.exec(saveJob, j.Rev, failures, j.LockedBy, data, it.row)
	}
	if err == nil {
		err = errors.Join(g.markHeld(it.row, it.held, *j), g.markWarned(it.row, it.warned, *j))
	}
	if err != nil {
		return nil, err
	}
	fresh.row, fresh.held, fresh.warned = it.row, store.HeldName(*j), j.Warned()
	g.leave(fresh)
	g.durable = true
	return nil, nil
}

// markWarned notes whether a job is warned of, if that is another than before.
func (g *group) markWarned(row int64, before bool, j job.Job) error {
	switch {
	case j.Warned() == before:
		return nil
	case before:
		return g.exec(markWarned, nil, row)
	default:
		return g.exec(markWarned, int64(1), row)
	}
}

// Park puts a job in front of a person; see store.Jobs.
func (s *Store) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	err := s.submit(ctx, len(reason), func(g *group) (answer, err error) { return g.park(id, seen, reason, completeBy) })
	return store.About(err, "park job %s", id)
}

func (g *group) park(id string, seen time.Time, reason string, completeBy time.Time) (answer, err error) {
	row, err := g.conn.one(selectParked, id)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return store.ErrNotFound, nil
	case jobformat.Needs(asBytes(row[3])) > jobformat.Level:
		return store.ErrNewer, nil
	}
	stored := job.Job{ID: id, Rev: asInt(row[1]), CompleteBy: asTime(row[2])}
	parked, answer := store.Parked(stored, domain.Instant(seen), reason, completeBy)
	if answer != nil {
		return answer, nil
	}
	err = g.exec(parkJob, parked.Rev, string(parked.ProcessState), parked.Reason, millis(parked.CompleteBy), row[0])
	g.items[id] = nil
	g.durable = true
	return nil, err
}

// leave remembers how this group leaves a job.
func (g *group) leave(it *item) { g.items[it.job.ID] = it }
