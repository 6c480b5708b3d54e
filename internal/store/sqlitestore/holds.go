package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Holds = (*Store)(nil)

// The holds are one row; its key is a shard of the index by itself. The jobs that stand still for a hold have it in a
// column.
const (
	selectHolds = `SELECT rev, complete_by, data FROM holds WHERE one = 1`
	putHolds    = `INSERT INTO holds(one, rev, complete_by, data) VALUES(1, ?, ?, ?)
		ON CONFLICT DO UPDATE SET rev = excluded.rev, complete_by = excluded.complete_by, data = excluded.data`

	// A job is older than another with a later row.
	selectHeld = `SELECT id FROM jobs INDEXED BY jobs_held WHERE held_by = ? ORDER BY row LIMIT ?+0`
	countHeld  = `SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_held WHERE held_by = ? LIMIT ?+0)`
	markHeld   = `UPDATE jobs SET held_by = ? WHERE row = ?`
)

// PutHolds stores the holds; see store.Holds.
func (s *Store) PutHolds(ctx context.Context, h store.Held) error {
	data := store.EncodeHolds(h)
	err := s.submit(ctx, len(data), func(g *group) (answer, err error) {
		row, err := g.conn.one(selectHolds)
		if err != nil {
			return nil, err
		}
		var stored store.Held
		if row != nil {
			stored.Rev = asInt(row[0])
		}
		next, answer := h.PutOver(stored)
		if answer != nil {
			return answer, nil
		}
		g.durable = true
		return nil, g.exec(putHolds, next.Rev, millis(next.Key()), data)
	})
	return store.About(err, "put holds")
}

// Holds reads the holds; see store.Holds. It is always sure.
func (r *Reader) Holds(ctx context.Context, _ bool) (store.Held, error) {
	row, err := r.one(ctx, selectHolds)
	if errors.Is(err, store.ErrNotFound) {
		return store.Held{}, nil
	}
	if err != nil {
		return store.Held{}, err
	}
	held := store.Held{Rev: asInt(row[0])}
	held.Holds, err = store.DecodeHolds(asBytes(row[2]))
	return held, err
}

// HeldJobs returns jobs that a hold keeps still, oldest first; see store.Holds. It does not lag.
func (r *Reader) HeldJobs(ctx context.Context, hold string, limit int) ([]string, error) {
	ids, err := rowsOf(ctx, r, firstText, selectHeld, hold, int64(limit))
	return ids, store.About(err, "jobs held by %s", hold)
}

// CountHeld counts them; see store.Holds.
func (r *Reader) CountHeld(ctx context.Context, hold string, most int) (int, error) {
	n, err := valueOf(ctx, r, firstNumber, countHeld, hold, int64(most))
	return n, store.About(err, "count the jobs held by %s", hold)
}

// dueHolds is Due of the shard of the holds.
func (r *Reader) dueHolds(ctx context.Context, now time.Time, after store.Entry) ([]store.Entry, error) {
	row, err := r.one(ctx, selectHolds)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("due holds: %w", err)
	}
	key := asTime(row[1])
	if key.IsZero() || key.After(now) || !key.After(after.CompleteBy) {
		return nil, nil
	}
	return []store.Entry{{CompleteBy: key, Holds: true}}, nil
}

// markHeld notes what a job stands still for, if that is another than before.
func (g *group) markHeld(row int64, before string, j job.Job) error {
	if name := store.HeldName(j); name != before {
		return g.exec(markHeld, orNull(name), row)
	}
	return nil
}
