package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Auditor = (*Reader)(nil)

// What an audit sees stands before data in its row.
const selectAudited = `SELECT row, id, process_state, complete_by, finished_at FROM jobs WHERE row > ? ORDER BY row LIMIT ?+0`

// AuditPage returns jobs in the order of their births; see store.Auditor. The index holds every row that has a key, so
// nothing is in it that is no job.
func (r *Reader) AuditPage(ctx context.Context, cursor string, limit int) ([]store.Audited, string, error) {
	var after int64
	if cursor != "" {
		var err error
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil || after < 1 {
			return nil, "", fmt.Errorf("audit: there is no page %.40q: %w", cursor, store.ErrNotFound)
		}
	}
	limit = max(1, limit)
	var jobs []store.Audited
	err := r.read(ctx, func(c *conn) error {
		row := make([]driver.Value, 5)
		return c.query(selectAudited, []driver.Value{after, int64(limit)}, row, func() error {
			after = asInt(row[0])
			jobs = append(jobs, audited(row))
			return nil
		})
	})
	if err != nil {
		return nil, "", fmt.Errorf("audit: %w", err)
	}
	if len(jobs) < limit {
		return jobs, "", nil
	}
	return jobs, strconv.FormatInt(after, 10), nil
}

func audited(row []driver.Value) store.Audited {
	a := store.Audited{
		Job: asText(row[1]), ProcessState: makegood.ProcessState(asText(row[2])),
		CompleteBy: asTime(row[3]), Indexed: row[3] != nil,
	}
	a.Told = a.ProcessState.Finished() && row[4] != nil
	a.Untold = a.ProcessState.Finished() && row[4] == nil
	return a
}
