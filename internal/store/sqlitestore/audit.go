package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Auditor = (*Reader)(nil)

// What an audit sees stands before data in its row.
const (
	selectAudited      = `SELECT row, id, process_state, complete_by, finished_at FROM jobs WHERE row > ? ORDER BY row LIMIT ?+0`
	selectScheduleKeys = `SELECT name, complete_by FROM schedules WHERE name > ? AND complete_by IS NOT NULL ORDER BY name LIMIT ?+0`
)

// scheduleMark is before the name of a schedule in the cursor of an audit.
const scheduleMark = "/"

// AuditPage returns jobs in the order of their births, and then schedules by their names; see store.Auditor. The index
// is made of the rows that have a key, so it has no entry without a job or a schedule.
func (r *Reader) AuditPage(ctx context.Context, cursor string, limit int) (page []store.Audited, next string, err error) {
	var after int64
	name, ofSchedules := strings.CutPrefix(cursor, scheduleMark)
	if cursor != "" && !ofSchedules {
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil || after < 1 {
			return nil, "", fmt.Errorf("audit: there is no page %.40q: %w", cursor, store.ErrNotFound)
		}
	}
	limit = max(1, limit)
	if ofSchedules {
		page, err = rowsOf(ctx, r, func(row []driver.Value) store.Audited {
			return store.Audited{Schedule: asText(row[0]), CompleteBy: asTime(row[1]), Indexed: true}
		}, selectScheduleKeys, name, int64(limit))
	} else {
		page, err = rowsOf(ctx, r, func(row []driver.Value) store.Audited {
			after = asInt(row[0])
			return audited(row)
		}, selectAudited, after, int64(limit))
	}
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("audit: %w", err)
	case ofSchedules && len(page) < limit:
		return page, "", nil
	case ofSchedules:
		return page, scheduleMark + page[limit-1].Schedule, nil
	case len(page) < limit:
		return page, scheduleMark, nil
	default:
		return page, strconv.FormatInt(after, 10), nil
	}
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
