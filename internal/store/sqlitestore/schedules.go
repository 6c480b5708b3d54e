package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Schedules = (*Store)(nil)

// Schedules are rows of a table of their own; its keys are the second shard of the index.
const (
	selectSchedule  = `SELECT name, rev, complete_by, data FROM schedules WHERE name = ?`
	selectSchedules = `SELECT name, rev, complete_by, data FROM schedules ORDER BY name`
	putSchedule     = `INSERT INTO schedules(name, rev, complete_by, data) VALUES(?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET rev = excluded.rev, complete_by = excluded.complete_by, data = excluded.data`
	deleteSchedule     = `DELETE FROM schedules WHERE name = ?`
	selectDueSchedules = `SELECT complete_by, name FROM schedules INDEXED BY schedules_due
		WHERE complete_by <= ? AND (complete_by, name) > (?, ?) ORDER BY complete_by, name LIMIT ?+0`
)

// PutSchedule stores a schedule; see store.Schedules.
func (s *Store) PutSchedule(ctx context.Context, schedule store.Scheduled) error {
	data := store.EncodeSchedule(schedule)
	err := s.submit(ctx, len(data), func(g *group) (answer, err error) {
		rev, err := g.scheduleRev(schedule.Name)
		if err != nil {
			return nil, err
		}
		next, answer := schedule.PutOver(store.Scheduled{Rev: rev})
		if answer != nil {
			return answer, nil
		}
		g.durable = true
		return nil, g.exec(putSchedule, next.Name, next.Rev, millis(next.Key), data)
	})
	return store.About(err, "put schedule %s", schedule.Name)
}

// RemoveSchedule removes a schedule; see store.Schedules.
func (s *Store) RemoveSchedule(ctx context.Context, name string, rev int64) error {
	err := s.submit(ctx, 0, func(g *group) (answer, err error) {
		switch stored, err := g.scheduleRev(name); {
		case err != nil:
			return nil, err
		case stored == 0:
			return store.ErrNotFound, nil
		case stored != rev:
			return store.ErrConflict, nil
		}
		g.durable = true
		return nil, g.exec(deleteSchedule, name)
	})
	return store.About(err, "remove schedule %s", name)
}

// scheduleRev returns the Rev of a schedule; 0 if there is none.
func (g *group) scheduleRev(name string) (int64, error) {
	row, err := g.conn.one(selectSchedule, name)
	if err != nil || row == nil {
		return 0, err
	}
	return asInt(row[1]), nil
}

// Schedule reads a schedule; see store.Schedules.
func (r *Reader) Schedule(ctx context.Context, name string) (store.Scheduled, error) {
	row, err := r.one(ctx, selectSchedule, name)
	if err != nil {
		return store.Scheduled{}, fmt.Errorf("schedule %s: %w", name, err)
	}
	schedule, err := scanSchedule(row)
	return schedule, store.About(err, "schedule %s", name)
}

// ListSchedules returns all schedules; see store.Schedules.
func (r *Reader) ListSchedules(ctx context.Context) ([]store.Scheduled, error) {
	all, err := rowsOf(ctx, r, func(row []driver.Value) store.Scheduled {
		schedule, err := scanSchedule(row)
		if errors.Is(err, store.ErrDamaged) {
			schedule.Problem = err.Error()
		}
		return schedule
	}, selectSchedules)
	return all, store.About(err, "list schedules")
}

// scanSchedule reads a row. A damaged schedule has only the columns beside its data.
func scanSchedule(row []driver.Value) (store.Scheduled, error) {
	schedule, err := store.DecodeSchedule(asBytes(row[3]))
	schedule.Name, schedule.Rev, schedule.Key = asText(row[0]), asInt(row[1]), asTime(row[2])
	return schedule, err
}

// dueSchedules is Due of the shard of schedules.
func (r *Reader) dueSchedules(ctx context.Context, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	entries, err := rowsOf(ctx, r, func(row []driver.Value) store.Entry {
		return store.Entry{CompleteBy: asTime(row[0]), Schedule: asText(row[1])}
	}, selectDueSchedules, now.UnixMilli(), keyAfter(after), after.Schedule, int64(limit))
	return entries, store.About(err, "list due schedules")
}
