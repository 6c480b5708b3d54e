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
// table never holds more than twice the rows that have not expired.
const (
	sweepEvery = 64
	sweepRows  = 2 * sweepEvery

	// These rows stay in SQLite: returning each cost as much as a claim.
	afterSlot    = ` WHERE (job, birth, step, agent) > (?, ?, ?, ?)`
	selectSweep  = `SELECT job, birth, step, agent FROM claims` + afterSlot + ` ORDER BY job, birth, step, agent LIMIT 1 OFFSET ?+0`
	deleteRest   = `DELETE FROM claims` + afterSlot + ` AND expires_at < ?`
	deleteWithin = `DELETE FROM claims` + afterSlot + ` AND (job, birth, step, agent) <= (?, ?, ?, ?) AND expires_at < ?`
)

// sweep goes through the claims, round after round. Only the writer uses it; what a group that failed has looked at,
// the next round sees.
type sweep struct {
	claims int
	at     store.Slot
}

// claimed counts a claim that was written, and deletes expired claims when it is time.
func (s *sweep) claimed(c *conn, now time.Time) error {
	if s.claims++; s.claims < sweepEvery {
		return nil
	}
	s.claims = 0
	from := []driver.Value{s.at.Job, s.at.Birth, s.at.Step, s.at.Agent}
	row, err := c.one(selectSweep, append(from, int64(sweepRows-1))...)
	if err != nil {
		return err
	}
	if row == nil {
		s.at = store.Slot{}
		_, err = c.exec(deleteRest, append(from, now.UnixMilli())...)
		return err
	}
	s.at = store.Slot{Job: asText(row[0]), Birth: asText(row[1]), Step: asText(row[2]), Agent: asText(row[3])}
	_, err = c.exec(deleteWithin, append(append(from, row...), now.UnixMilli())...)
	return err
}
