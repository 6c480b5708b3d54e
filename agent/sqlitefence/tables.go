package sqlitefence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/fenced"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
)

// swept is how many rows that have expired go with each effect that is stored: more than come.
const swept = 4

// tables are the fence's statements for a new database. A job's id may be used again after the job has expired, so the
// job's birth is beside it everywhere.
func (f *Fence) tables() []string {
	all := []string{
		`CREATE TABLE IF NOT EXISTS makegood_attempts(
			job TEXT NOT NULL, birth TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, at INTEGER NOT NULL,
			PRIMARY KEY(job, birth, step)) WITHOUT ROWID`,
		`CREATE TABLE IF NOT EXISTS makegood_effects(
			key TEXT NOT NULL, birth TEXT NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL, locked_by TEXT NOT NULL,
			at INTEGER NOT NULL, output TEXT NOT NULL, PRIMARY KEY(key, birth)) WITHOUT ROWID`,
	}
	if f.config.Keep > 0 {
		all = append(all,
			`CREATE INDEX IF NOT EXISTS makegood_attempts_at ON makegood_attempts(at)`,
			`CREATE INDEX IF NOT EXISTS makegood_effects_at ON makegood_effects(at)`)
	}
	return all
}

// Hold puts the fence into a transaction of the caller's: it holds only while the attempt that runs in ctx is the
// agent's. It must be the first statement of tx, which from then on is the only writer. ErrLost: roll back, and
// return it. Hold alone is for writes that may be repeated and must not come late, such as progress.
func (f *Fence) Hold(ctx context.Context, tx *sql.Tx) error {
	task := agent.TaskOf(ctx)
	if task.Key == "" {
		return agent.Final(agent.NotApplied(fmt.Errorf("%w: the context is not one in which an agent handles a task", ErrTask)))
	}
	// A write first, so that tx has the database for itself from here on.
	result, err := tx.ExecContext(ctx, `INSERT INTO makegood_attempts(job, birth, step, attempt, at) VALUES(?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET attempt = excluded.attempt, at = excluded.at WHERE makegood_attempts.attempt <= excluded.attempt`,
		task.Job, task.Birth, task.Step, task.Attempt, f.config.Now().UnixMilli())
	if err != nil {
		return fmt.Errorf("fence of %s: %w", task.Key, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return agent.NotApplied(fmt.Errorf("a later attempt than %d of %s has come: %w", task.Attempt, task.Key, errors.Join(ErrLost, err)))
	}
	if f.jobs && !task.Shared {
		return holdClaim(ctx, tx, task)
	}
	return nil
}

// holdClaim reads the claim, which cannot change before tx has ended.
func holdClaim(ctx context.Context, tx *sql.Tx, task makegood.Task) error {
	if task.Claim.LockedBy == "" {
		return agent.Final(agent.NotApplied(fmt.Errorf("%w: %s has no claim", ErrTask, task.Key)))
	}
	held, err := sqlitestore.HoldsIn(ctx, tx, slotOf(task), task.Attempt, task.Claim.LockedBy)
	if err != nil {
		return err
	}
	if !held {
		return agent.NotApplied(fmt.Errorf("the claim of attempt %d of %s is gone: %w", task.Attempt, task.Key, ErrLost))
	}
	return nil
}

// Done returns, in a transaction that holds the fence, the stored effect of the step of the attempt that runs in ctx;
// false: there is none yet. ErrUndone.
func (f *Fence) Done(ctx context.Context, tx *sql.Tx) (done Effect, ok bool, err error) {
	task := agent.TaskOf(ctx)
	done, is, err := f.read(ctx, tx, task.Key, task.Birth)
	if is == fenced.Undone || is == fenced.Refused {
		return Effect{}, false, agent.Final(agent.NotApplied(fmt.Errorf("%s: %w", task.Key, ErrUndone)))
	}
	return done, is == fenced.Done, err
}

// Store stores, in a transaction that holds the fence, the output of the step of the attempt that runs in ctx: JSON
// of at most makegood.MaxPayloadBytes. Done must have returned false before.
func (f *Fence) Store(ctx context.Context, tx *sql.Tx, output any) error {
	text, err := fenced.Write(output)
	if err != nil {
		return err
	}
	task := agent.TaskOf(ctx)
	return f.write(ctx, tx, task, task.Key, fenced.Done, text)
}

func (f *Fence) read(ctx context.Context, tx *sql.Tx, key, birth string) (done Effect, is fenced.State, err error) {
	var output string
	var at int64
	err = tx.QueryRowContext(ctx, `SELECT state, attempt, at, output FROM makegood_effects WHERE key = ? AND birth = ?`, key, birth).
		Scan(&is, &done.Attempt, &at, &output)
	if errors.Is(err, sql.ErrNoRows) {
		return Effect{}, fenced.None, nil
	}
	if err != nil {
		return Effect{}, fenced.None, fmt.Errorf("effect %s: %w", key, err)
	}
	done.Output, done.At = json.RawMessage(output), time.UnixMilli(at).UTC()
	return done, is, nil
}

func (f *Fence) write(ctx context.Context, tx *sql.Tx, task makegood.Task, key string, is fenced.State, output []byte) error {
	now := f.config.Now()
	_, err := tx.ExecContext(ctx, `INSERT INTO makegood_effects(key, birth, state, attempt, locked_by, at, output) VALUES(?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET state = excluded.state, attempt = excluded.attempt, locked_by = excluded.locked_by, at = excluded.at`,
		key, task.Birth, string(is), task.Attempt, task.Claim.LockedBy, now.UnixMilli(), string(output))
	if err != nil {
		return fmt.Errorf("store effect %s: %w", key, err)
	}
	if f.config.Keep == 0 {
		return nil
	}
	return sweep(ctx, tx, now.Add(-f.config.Keep))
}

// sweep deletes a few of the rows that were written before a moment.
func sweep(ctx context.Context, tx *sql.Tx, before time.Time) error {
	for _, statement := range []string{
		`DELETE FROM makegood_effects WHERE (key, birth) IN (SELECT key, birth FROM makegood_effects WHERE at < ? ORDER BY at LIMIT ?)`,
		`DELETE FROM makegood_attempts WHERE (job, birth, step) IN (SELECT job, birth, step FROM makegood_attempts WHERE at < ? ORDER BY at LIMIT ?)`,
	} {
		if _, err := tx.ExecContext(ctx, statement, before.UnixMilli(), swept); err != nil {
			return fmt.Errorf("delete expired rows: %w", err)
		}
	}
	return nil
}
