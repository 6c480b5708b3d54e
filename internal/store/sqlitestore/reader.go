package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// pageRows is how many jobs Each keeps in memory at a time.
const pageRows = 64

// Reader reads a store, while an engine writes it or not. It sees the commits before a read began; on a store that
// another process writes, those may not be durable yet.
type Reader struct {
	pool chan *conn
	size int
	gone chan struct{}
	once sync.Once
	// settle waits until what a read has seen is durable, and fails if it never will be.
	settle func() error
}

// OpenReader opens a store for reading only. It refuses what Open refuses, and a file that is not there.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read store: %w", err)
	}
	r, err := openReader(path, 1)
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, err)
	}
	err = r.read(ctx, ourLayout().readable)
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", path, errors.Join(err, r.Close()))
	}
	return r, nil
}

func openReader(path string, connections int) (*Reader, error) {
	r := &Reader{pool: make(chan *conn, connections), gone: make(chan struct{}), settle: func() error { return nil }}
	for range connections {
		// A reader waits only for another process that repairs the log after a crash.
		c, err := dial(path, true, "busy_timeout(5000)")
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.pool <- c
		r.size++
	}
	return r, nil
}

// Close closes the connections, after the reads that run. Reads that come later fail with ErrClosed.
func (r *Reader) Close() error {
	var err error
	r.once.Do(func() {
		close(r.gone)
		for range r.size {
			err = errors.Join(err, (<-r.pool).close())
		}
	})
	return err
}

// read runs f with a connection of its own, and waits until the commits that f saw are durable.
func (r *Reader) read(ctx context.Context, f func(c *conn) error) error {
	select {
	case c := <-r.pool:
		err := f(c)
		r.pool <- c
		if err != nil {
			return err
		}
		return r.settle()
	case <-r.gone:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// The two of selectJob and selectJobs list the same columns, which scanJob reads.
	selectJob = `SELECT row, id, rev, complete_by, parked, data, process_state, workflow, failure_count, locked_by FROM jobs
		WHERE id = ?`
	selectJobs = `SELECT row, id, rev, complete_by, parked, data, process_state, workflow, failure_count, locked_by FROM jobs
		WHERE row > ? ORDER BY row LIMIT ?+0`
	jobColumns = 10
)

// scanJob reads a row. A damaged job has only the columns beside data, and one of a later release its readable part.
func scanJob(row []driver.Value) (job.Job, error) {
	j, err := jobformat.DecodeWhole(asBytes(row[5]))
	j.ID, j.Rev, j.CompleteBy = asText(row[1]), asInt(row[2]), asTime(row[3])
	j.ProcessState, j.Workflow = makegood.ProcessState(asText(row[6])), asText(row[7])
	j.FailureCount, j.LockedBy = int(asInt(row[8])), asText(row[9])
	if parked := row[4] != nil; parked {
		j.Reason = asText(row[4])
	}
	if err == nil {
		err = jobformat.Newer(j)
	}
	return j, err
}

// Load reads a job; see store.Jobs.
func (r *Reader) Load(ctx context.Context, id string) (j job.Job, err error) {
	row, err := r.one(ctx, selectJob, id)
	if err == nil {
		j, err = scanJob(row)
	}
	if err != nil && !errors.Is(err, store.ErrNewer) {
		j = job.Job{}
	}
	return j, store.About(err, "load job %s", id)
}

// Each calls f with every job, in the order in which they were created, and stops when f fails. It keeps few jobs in
// memory, and no reading is open while f runs, so f may take its time and use the store; jobs that change meanwhile are
// seen as they were or as they are. For a damaged job f gets the fields beside its data: id, workflow, ProcessState,
// CompleteBy, FailureCount, Rev, and the reason for which it was parked.
func (r *Reader) Each(ctx context.Context, f func(j job.Job) error) error {
	var last int64
	for {
		jobs, next, err := r.page(ctx, last)
		if err != nil {
			return fmt.Errorf("read all jobs: %w", err)
		}
		for _, j := range jobs {
			if err := f(j); err != nil {
				return err
			}
		}
		if len(jobs) < pageRows {
			return nil
		}
		last = next
	}
}

func (r *Reader) page(ctx context.Context, after int64) (jobs []job.Job, last int64, err error) {
	jobs, err = rowsOf(ctx, r, func(row []driver.Value) job.Job {
		last = asInt(row[0])
		j, _ := scanJob(row) // Load reports the damage of a job; here the job counts.
		return j
	}, selectJobs, after, int64(pageRows))
	return jobs, last, err
}

// Unfinished lists the jobs that have a CompleteBy, in its order, those after an entry (zero: from the start), at most
// limit. It reads no other jobs.
func (r *Reader) Unfinished(ctx context.Context, after store.Entry, limit int) ([]store.Entry, error) {
	entries, err := r.keyed(ctx, math.MaxInt64, after, limit)
	return entries, store.About(err, "list unfinished jobs")
}

// The shards: of the keys of jobs, of those of schedules, and of that of the holds.
const (
	jobShard = iota
	scheduleShard
	holdsShard
	shards
)

// Shards is 3: one of jobs, one of schedules, one of the holds.
func (r *Reader) Shards() int { return shards }

const selectDue = `SELECT complete_by, id FROM jobs INDEXED BY jobs_due
	WHERE complete_by <= ? AND (complete_by, id) > (?, ?) ORDER BY complete_by, id LIMIT ?+0`

// Due lists overdue entries; see store.Index. It does not lag.
func (r *Reader) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	switch shard {
	case jobShard:
	case scheduleShard:
		return r.dueSchedules(ctx, now, after, limit)
	case holdsShard:
		return r.dueHolds(ctx, now, after)
	default:
		return nil, fmt.Errorf("list due jobs: there is no shard %d", shard)
	}
	entries, err := r.keyed(ctx, now.UnixMilli(), after, limit)
	return entries, store.About(err, "list due jobs")
}

// keyed lists the keys of jobs that are after an entry and not after until, in milliseconds.
func (r *Reader) keyed(ctx context.Context, until int64, after store.Entry, limit int) ([]store.Entry, error) {
	return rowsOf(ctx, r, func(row []driver.Value) store.Entry {
		return store.Entry{CompleteBy: asTime(row[0]), Job: asText(row[1])}
	}, selectDue, until, keyAfter(after), after.Job, int64(limit))
}

// keyAfter returns the key of an entry, in milliseconds; without an entry, one before all keys.
func keyAfter(after store.Entry) int64 {
	if after.CompleteBy.IsZero() {
		return math.MinInt64
	}
	return after.CompleteBy.UnixMilli()
}

const (
	selectNextDue         = `SELECT min(complete_by) FROM jobs INDEXED BY jobs_due WHERE complete_by > ?`
	selectNextDueSchedule = `SELECT min(complete_by) FROM schedules INDEXED BY schedules_due WHERE complete_by > ?`
)

// NextDue returns the earliest key of all jobs and schedules after a time; zero when none has one.
func (r *Reader) NextDue(ctx context.Context, after time.Time) (time.Time, error) {
	from := after.UnixMilli()
	var job, schedule []driver.Value
	err := r.read(ctx, func(c *conn) (err error) {
		if job, err = c.one(selectNextDue, from); err == nil {
			schedule, err = c.one(selectNextDueSchedule, from)
		}
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("next due job: %w", err)
	}
	next, fire := asTime(job[0]), asTime(schedule[0])
	if next.IsZero() || !fire.IsZero() && fire.Before(next) {
		return fire, nil
	}
	return next, nil
}

// Payload reads a value; see store.Payloads.
func (r *Reader) Payload(ctx context.Context, job, key string) ([]byte, error) {
	value, err := valueOf(ctx, r, firstBytes, `SELECT value FROM payloads WHERE job = ? AND key = ?`, job, key)
	return value, store.About(err, "payload %s of job %s", key, job)
}

// HistoryPages reads the pages of a job's history; see store.Histories.
func (r *Reader) HistoryPages(ctx context.Context, id string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	all := []driver.Value{id, job.HistoryPrefix, job.HistoryPrefix + "~"}
	err := r.read(ctx, func(c *conn) error {
		return c.query(`SELECT key, value FROM payloads WHERE job = ? AND key >= ? AND key < ?`, all, func(row []driver.Value) error {
			pages[asText(row[0])] = asBytes(row[1])
			return nil
		})
	})
	return pages, store.About(err, "pages of the history of job %s", id)
}

// Definition reads a definition; see store.Definitions.
func (r *Reader) Definition(ctx context.Context, hash string) ([]byte, error) {
	body, err := valueOf(ctx, r, firstBytes, selectDefinition, hash)
	return body, store.About(err, "definition %s", hash)
}

// CurrentDefinition returns the hash that is current for a name; see store.Definitions.
func (r *Reader) CurrentDefinition(ctx context.Context, name string) (string, error) {
	hash, err := valueOf(ctx, r, firstText, `SELECT hash FROM current WHERE name = ?`, name)
	return hash, store.About(err, "current definition of workflow %s", name)
}

// CurrentDefinitions returns the hashes that are current, by the names of the workflows.
func (r *Reader) CurrentDefinitions(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	err := r.read(ctx, func(c *conn) error {
		return c.query(`SELECT name, hash FROM current`, nil, func(row []driver.Value) error {
			all[asText(row[0])] = asText(row[1])
			return nil
		})
	})
	return all, store.About(err, "current definitions")
}
