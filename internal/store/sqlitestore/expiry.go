package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// expiryJobs and expiryPayloads bound what one transaction deletes: a job is deleted with all its
	// payloads or not at all, and none is begun after so many payloads.
	expiryJobs     = 64
	expiryPayloads = 64
	// shrinkPages is how many pages are given back to the disk in one transaction: 1 MB.
	shrinkPages = 256
	// sparePages and spareShare are the free pages kept for the jobs to come: 4 MB, and a quarter of the file. Giving a
	// page back costs as much as writing it.
	sparePages = 1024
	spareShare = 4
)

const (
	selectExpired = `SELECT row, id FROM jobs INDEXED BY jobs_finished WHERE finished_at <= ? ORDER BY finished_at LIMIT ?+0`
	deletePayload = `DELETE FROM payloads WHERE job = ?`
	deleteJob     = `DELETE FROM jobs WHERE row = ?`
)

// finishedAt is the column by which a job expires: set when it is at its end and told, as ExpiresAt is on
// DynamoDB.
func finishedAt(j job.Job) driver.Value {
	if !store.EndedAndTold(j) {
		return nil
	}
	return millis(j.FinishedAt)
}

// Expire deletes some of the jobs that were at their end and told at that time, the oldest first, with their payloads,
// returns their ids, and reports whether there are more. Their ids are free again. It is not flushed: jobs that come
// back with the loss of power are deleted again.
func (s *Store) Expire(ctx context.Context, finished time.Time) (deleted []string, more bool, err error) {
	err = s.submit(ctx, 0, func(g *group) (answer, err error) {
		deleted, more, err = g.expire(finished)
		return nil, err
	})
	if err != nil {
		return nil, false, fmt.Errorf("delete jobs that finished by %s: %w", finished.Format(time.RFC3339), err)
	}
	return deleted, more, nil
}

func (g *group) expire(finished time.Time) (deleted []string, more bool, err error) {
	type expired struct {
		row int64
		id  string
	}
	var jobs []expired
	err = g.conn.query(selectExpired, []driver.Value{finished.UnixMilli(), int64(expiryJobs)}, func(row []driver.Value) error {
		jobs = append(jobs, expired{asInt(row[0]), asText(row[1])})
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	var payloads int64
	for _, job := range jobs {
		if payloads >= expiryPayloads {
			return deleted, true, nil
		}
		result, err := g.conn.exec(deletePayload, job.id)
		if err != nil {
			return nil, false, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return nil, false, err
		}
		payloads += n
		if err := g.exec(deleteJob, job.row); err != nil {
			return nil, false, err
		}
		g.items[job.id] = nil
		deleted = append(deleted, job.id)
	}
	return deleted, len(jobs) == expiryJobs, nil
}

// Shrink returns some of the file's free pages to the disk, beyond those kept for the jobs to come, and reports whether
// there are more. The file is shorter after the next checkpoint.
func (s *Store) Shrink(ctx context.Context) (more bool, err error) {
	err = s.submit(ctx, 0, func(g *group) (answer, err error) {
		more, err = g.shrink()
		return nil, err
	})
	return more, store.About(err, "give free pages back")
}

func (g *group) shrink() (more bool, err error) {
	row, err := g.conn.one(`SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count`)
	if err != nil {
		return false, err
	}
	surplus := asInt(row[1]) - max(sparePages, asInt(row[0])/spareShare)
	if surplus < shrinkPages {
		return false, nil
	}
	// Each page that is given back is a row of the answer, without columns.
	_, err = g.conn.one(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, shrinkPages))
	return surplus >= 2*shrinkPages, err
}
