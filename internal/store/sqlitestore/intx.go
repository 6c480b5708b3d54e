package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// CreateIn stores a job and its payloads in a transaction of the caller's on the same file, so that they are there if
// and only if the caller's own rows are. It fails with store.ErrExists, without a change, when the id is taken. The
// engine finds the job by its CompleteBy once tx is committed.
func CreateIn(ctx context.Context, tx *sql.Tx, jb job.Job, payloads map[string]json.RawMessage) error {
	packed, data := pack(jb)
	// Whether the id is free says the statement.
	j, err := store.Created(job.Job{}, packed)
	if err != nil {
		return fmt.Errorf("create job %s: %w", jb.ID, err)
	}
	result, err := tx.ExecContext(ctx, insertJob+" ON CONFLICT DO NOTHING", j.ID, j.Rev, string(j.ProcessState), millis(j.CompleteBy),
		j.FailureCount, j.LockedBy, j.Workflow, millis(j.CreatedAt), data, orNull(j.Tenant))
	if err != nil {
		return fmt.Errorf("create job %s: %w", jb.ID, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return fmt.Errorf("create job %s: %w", jb.ID, errors.Join(store.ErrExists, err))
	}
	row, err := result.LastInsertId()
	if err != nil {
		return fmt.Errorf("create job %s: %w", jb.ID, err)
	}
	for name, value := range j.Labels {
		if _, err := tx.ExecContext(ctx, insertLabel, row, name, value); err != nil {
			return fmt.Errorf("label job %s: %w", jb.ID, err)
		}
	}
	for key, value := range payloads {
		if _, err := tx.ExecContext(ctx, `INSERT INTO payloads(job, key, value) VALUES(?, ?, ?) ON CONFLICT DO NOTHING`, jb.ID, key, []byte(value)); err != nil {
			return fmt.Errorf("put payload %s of job %s: %w", key, jb.ID, err)
		}
	}
	return nil
}

// DefinitionIn reads, in a transaction of the caller's, the definition that is current for a name.
// store.ErrNotFound.
func DefinitionIn(ctx context.Context, tx *sql.Tx, name string) ([]byte, error) {
	var body []byte
	err := tx.QueryRowContext(ctx, `SELECT body FROM current JOIN definitions USING(hash) WHERE name = ?`, name).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("workflow %s: %w", name, store.ErrNotFound)
	}
	return body, store.About(err, "current definition of workflow %s", name)
}

// LoadIn reads a job in a transaction of the caller's. store.ErrNotFound, store.ErrDamaged; store.ErrNewer, together
// with the job as far as it is known.
func LoadIn(ctx context.Context, tx *sql.Tx, id string) (job.Job, error) {
	columns, into := make([]any, jobColumns), make([]any, jobColumns)
	for i := range columns {
		into[i] = &columns[i]
	}
	err := tx.QueryRowContext(ctx, selectJob, id).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return job.Job{}, fmt.Errorf("job %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("load job %s: %w", id, err)
	}
	row := make([]driver.Value, jobColumns)
	for i, v := range columns {
		row[i] = v
	}
	j, err := scanJob(row)
	return j, store.About(err, "job %s", id)
}

// HoldsIn reports, in a transaction of the caller's, whether lockedBy holds an attempt that was not closed. While tx
// may still write, and until it is committed, the attempt cannot be closed.
func HoldsIn(ctx context.Context, tx *sql.Tx, slot store.Slot, attempt int, lockedBy string) (bool, error) {
	var n int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM claims`+whereSlot+` AND attempt = ? AND locked_by = ? AND closed = ''`,
		slot.Job, slot.Birth, slot.Step, slot.Agent, attempt, lockedBy).Scan(&n)
	return n > 0, store.About(err, "claim of %s of job %s", slot.Step, slot.Job)
}

// Here reports whether a database is a store of jobs.
func Here(ctx context.Context, db *sql.DB) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('meta', 'jobs', 'claims')`).Scan(&n)
	return n == 3, store.About(err, "look for jobs")
}
