package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Totaler = (*Reader)(nil)

// The jobs at rest are counted in an index that has only their states; the others, which are few, one by one.
const (
	countResting = `SELECT process_state, count(*) FROM jobs INDEXED BY jobs_resting WHERE ` + resting + ` GROUP BY process_state`
	countOpen    = `SELECT process_state, count(*) FROM jobs INDEXED BY jobs_unfinished
		WHERE complete_by IS NOT NULL AND NOT ` + resting + ` GROUP BY process_state`
)

// Totals counts the jobs by state; see store.Totaler. It decodes none.
func (r *Reader) Totals(ctx context.Context) (totals map[makegood.ProcessState]int, err error) {
	totals = map[makegood.ProcessState]int{}
	err = r.read(ctx, func(c *conn) error {
		for _, counted := range []string{countResting, countOpen} {
			if err := c.query(counted, nil, func(row []driver.Value) error {
				totals[makegood.ProcessState(asText(row[0]))] = int(asInt(row[1]))
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count jobs by state: %w", err)
	}
	return totals, nil
}
