package sqlitestore

import (
	"database/sql/driver"
	"time"

	"github.com/makegood-dev/makegood/internal/store"
)

// Claims are deleted once they have expired, and not when their job has finished: a task that is still in a queue then
// must find its attempt closed, however long it waits, and a job that has finished may be taken up again. A row is
// about 120 bytes, so a step costs them for 16 days.
//
// An index on expires_at would double every claim. So each sweepEvery-th claim looks at the next sweepRows rows in the
// order of the table instead, and begins again at its end. While twice as many rows are looked at as are written, the
// table never holds more than twice what has not expired.
const (
	sweepEvery = 64
	sweepRows  = 2 * sweepEvery

	selectSweep = `SELECT job, birth, step, agent, expires_at FROM claims
		WHERE (job, birth, step, agent) > (?, ?, ?, ?) ORDER BY job, birth, step, agent LIMIT ?+0`
	deleteSlot = `DELETE FROM claims` + whereSlot
)

// sweep goes through the claims, round after round. Only the writer uses it; what a group that failed has looked at,
// the next round sees.
type sweep struct {
	claims int
	at     store.Slot
}

// claimed counts a claim that was written, and deletes what it is time to delete.
func (s *sweep) claimed(c *conn, now time.Time) error {
	if s.claims++; s.claims < sweepEvery {
		return nil
	}
	s.claims = 0
	seen := 0
	var expired []store.Slot
	row := make([]driver.Value, 5)
	args := []driver.Value{s.at.Job, s.at.Birth, s.at.Step, s.at.Agent, int64(sweepRows)}
	err := c.query(selectSweep, args, row, func() error {
		seen++
		s.at = store.Slot{Job: asText(row[0]), Birth: asText(row[1]), Step: asText(row[2]), Agent: asText(row[3])}
		if asTime(row[4]).Before(now) {
			expired = append(expired, s.at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if seen < sweepRows {
		s.at = store.Slot{}
	}
	for _, slot := range expired {
		if _, err := c.exec(deleteSlot, slot.Job, slot.Birth, slot.Step, slot.Agent); err != nil {
			return err
		}
	}
	return nil
}
