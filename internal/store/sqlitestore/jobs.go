package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	insertJob = `INSERT INTO jobs(id, rev, claims_rev, process_state, complete_by, failure_count, locked_by, workflow, created_at, open, data)
		VALUES(?, 1, 0, ?, ?, ?, ?, ?, ?, ?, ?)`
	saveJob = `UPDATE jobs SET rev = ?, process_state = ?, failure_count = ?, locked_by = ?, parked = NULL, open = ?, claims = ?, data = ?
		WHERE row = ?`
	// Naming complete_by costs two writes to indexes, moved or not.
	saveAndMoveJob = `UPDATE jobs SET rev = ?, process_state = ?, failure_count = ?, locked_by = ?, parked = NULL, open = ?, claims = ?, data = ?, complete_by = ?, finished_at = ?
		WHERE row = ?`
	parkJob = `UPDATE jobs SET process_state = ?, parked = ?, complete_by = ?, finished_at = NULL WHERE row = ?`
)

// packed is a job made ready outside the writer, whose time is the scarcest.
type packed struct {
	job        makegood.Job
	open, data []byte
}

// pack makes job ready to be stored as this revision, whole and apart from what the caller holds.
func pack(job makegood.Job, rev int64) (packed, error) {
	job = job.Clone()
	job.Rev = rev
	job.CompleteBy = makegood.Instant(job.CompleteBy)
	if len(job.Open) == 0 {
		job.Open = nil
	}
	data, err := wire.EncodeJob(job)
	if err != nil {
		return packed{}, err
	}
	open, err := encodeMap(job.Open)
	return packed{job: job, open: open, data: data}, err
}

// Create stores a new job; see store.Jobs.
func (s *Store) Create(ctx context.Context, job makegood.Job) error {
	p, err := pack(job, 1)
	if err != nil {
		return fmt.Errorf("create job %s: %w", job.ID, err)
	}
	p.job.Claims = makegood.Claims{}
	err = s.submit(ctx, len(p.data), func(g *group) (answer, err error) { return g.create(p) })
	if err != nil {
		return fmt.Errorf("create job %s: %w", job.ID, err)
	}
	return nil
}

func (g *group) create(p packed) (answer, err error) {
	// A job that is damaged has its id, too.
	switch it, err := g.item(p.job.ID); {
	case it != nil || errors.Is(err, store.ErrDamaged):
		return store.ErrExists, nil
	case err != nil:
		return nil, err
	}
	j := p.job
	result, err := g.conn.exec(insertJob, j.ID, string(j.ProcessState), millis(j.CompleteBy), int64(j.FailureCount),
		j.LockedBy, j.Workflow, millis(j.CreatedAt), p.open, p.data)
	if err != nil {
		return nil, err
	}
	row, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	g.leave(&item{row: row, job: j, whole: true})
	g.durable = true
	return nil, nil
}

// Load reads a job; see store.Jobs.
func (s *Store) Load(ctx context.Context, id string) (makegood.Job, error) {
	if it := s.cache.get(id); it != nil && ctx.Err() == nil && s.failure() == nil {
		return it.job.Clone(), nil
	}
	return s.Reader.Load(ctx, id)
}

// Save stores a changed job; see store.Jobs.
func (s *Store) Save(ctx context.Context, change store.Change) error {
	p, err := pack(change.Job, change.Job.Rev+1)
	if err != nil {
		return fmt.Errorf("save job %s: %w", change.Job.ID, err)
	}
	change.Job, change.Seen = p.job, makegood.Instant(change.Seen)
	err = s.submit(ctx, len(p.data), func(g *group) (answer, err error) { return g.save(change, p) })
	if err != nil {
		return fmt.Errorf("save job %s: %w", change.Job.ID, err)
	}
	return nil
}

func (g *group) save(change store.Change, p packed) (answer, err error) {
	it, err := g.item(p.job.ID)
	if err != nil {
		return sift(err)
	}
	moves := !p.job.CompleteBy.Equal(change.Seen)
	if !holds(change, it, moves) {
		return store.ErrConflict, nil
	}
	next := item{row: it.row, job: p.job, whole: true}
	next.job.Claims = without(it.job.Claims, change.Ended)
	slots, err := encodeMap(next.job.Claims.Slots)
	if err != nil {
		return nil, err
	}
	j := &next.job
	args := []driver.Value{j.Rev, string(j.ProcessState), int64(j.FailureCount), j.LockedBy, p.open, slots, p.data}
	if moves {
		err = g.exec(saveAndMoveJob, append(args, millis(j.CompleteBy), finishedAt(*j), it.row)...)
	} else {
		j.CompleteBy = it.job.CompleteBy
		err = g.exec(saveJob, append(args, it.row)...)
	}
	if err != nil {
		return nil, err
	}
	g.leave(&next)
	g.durable = true
	return nil, nil
}

// holds says whether the conditions of a save hold. p.job.Rev is the one to be written already.
func holds(change store.Change, it *item, moves bool) bool {
	switch {
	case it == nil:
		return false
	case it.job.Rev != change.Job.Rev-1:
		return false
	case change.OnClaims && it.job.Claims.Rev != change.Job.Claims.Rev:
		return false
	default:
		return !moves || it.job.CompleteBy.Equal(change.Seen)
	}
}

// without gives the claims but for the slots of these steps. It changes nothing of claims itself.
func without(claims makegood.Claims, ended []string) makegood.Claims {
	slots := maps.Clone(claims.Slots)
	for _, step := range ended {
		delete(slots, step)
	}
	if len(slots) == 0 {
		slots = nil
	}
	return makegood.Claims{Rev: claims.Rev, Slots: slots}
}

// Park puts a job in front of a person; see store.Jobs. Rev stays as it is.
func (s *Store) Park(ctx context.Context, id string, seen time.Time, reason string, completeBy time.Time) error {
	err := s.submit(ctx, len(reason), func(g *group) (answer, err error) { return g.park(id, seen, reason, completeBy) })
	if err != nil {
		return fmt.Errorf("park job %s: %w", id, err)
	}
	return nil
}

func (g *group) park(id string, seen time.Time, reason string, completeBy time.Time) (answer, err error) {
	row := make([]driver.Value, 2)
	found, err := g.conn.one(`SELECT row, complete_by FROM jobs WHERE id = ?`, row, id)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return store.ErrNotFound, nil
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

// sift tells an answer from an error that ends the group.
func sift(err error) (answer, fatal error) {
	if errors.Is(err, store.ErrDamaged) {
		return err, nil
	}
	return nil, err
}
