package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

var _ store.Lister = (*Reader)(nil)

// listSpan is how many jobs one page looks through where no index leads to those that match.
const listSpan = 20_000

// pausedSpan is how many unfinished jobs one page of paused ones looks at.
const pausedSpan = 1000

const (
	// What a list shows stands before data in its row, so no list reads a payload.
	listed = `SELECT row, id, workflow, process_state, failure_count, complete_by, created_at FROM jobs `

	listAll        = listed + `WHERE row < ? ORDER BY row DESC LIMIT ?`
	listOfWorkflow = listed + `WHERE row < ? AND workflow = ? ORDER BY row DESC LIMIT ?`
	// Error and paused jobs have keys that are a day ahead, so the index gives them before all others, the
	// last that came to a stop first.
	listUnfinished = listed + `INDEXED BY jobs_due WHERE complete_by IS NOT NULL AND (complete_by, id) < (?, ?)
		AND process_state = ? AND (workflow = ? OR ? = '') ORDER BY complete_by DESC, id DESC LIMIT ?`
	// The plus keeps SQLite on the rows: of a workflow's jobs most are in the state that was asked for.
	listSpanned = listed + `WHERE row < ? AND row >= ? AND process_state = ? AND (+workflow = ? OR ? = '') ORDER BY row DESC LIMIT ?`

	// That a job is paused stands in its data: of those that are not at their end each is looked at.
	listKeyed = `SELECT row, id, workflow, process_state, failure_count, complete_by, created_at, data FROM jobs INDEXED BY jobs_due
		WHERE complete_by IS NOT NULL AND (complete_by, id) < (?, ?) AND (process_state = ? OR ? = '') AND (workflow = ? OR ? = '')
		ORDER BY complete_by DESC, id DESC LIMIT ?`

	newestJob = `SELECT max(row) FROM jobs`
)

// ListJobs lists jobs, the newest first, and those in Error or Undoing the last key first; see
// store.Lister. A cursor that no page of such a list gave is refused with store.ErrNotFound. A page of
// jobs in one of the other states may be short or empty before the end: it looks through 20,000 jobs, and one of paused
// jobs through 1,000 unfinished ones.
func (r *Reader) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) (store.Page, error) {
	p := page{filter: filter, limit: max(1, limit)}
	if !p.begin(cursor) {
		return store.Page{}, fmt.Errorf("list jobs: there is no page %q: %w", cursor, store.ErrNotFound)
	}
	if err := r.read(ctx, p.read); err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	return store.Page{Jobs: p.jobs, Cursor: p.next(), Scanned: p.scanned()}, nil
}

// page is one page of a list.
type page struct {
	filter store.Filter
	limit  int
	// The page begins below the row before, or below the key and the id.
	before, key int64
	id          string
	// from is the lowest row that it looks at.
	from int64
	jobs []store.Listed
	last int64
	// looked is how many unfinished jobs a list of paused ones has looked at, and at which it came to last.
	looked int
	keyed  store.Entry
}

// byKey reports whether the list goes through the unfinished jobs only, of which there are few.
func (p *page) byKey() bool {
	return p.filter.Paused || p.filter.State == makegood.Error || p.filter.State == makegood.Undoing
}

// scanned reports whether the list passes jobs over.
func (p *page) scanned() bool { return p.filter.Paused || p.filter.State != "" && !p.byKey() }

// begin reads the cursor: the row of the last job seen, or its key and its id.
func (p *page) begin(cursor string) bool {
	p.before, p.key = math.MaxInt64, math.MaxInt64
	if cursor == "" {
		return true
	}
	text, id, keyed := strings.Cut(cursor, "/")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || keyed != p.byKey() || !keyed && n < 1 {
		return false
	}
	p.before, p.key, p.id = n, n, id
	return true
}

// next is where the next page begins; empty when nothing can be left. Rows are counted from 1.
func (p *page) next() string {
	full := len(p.jobs) == p.limit
	switch {
	case p.filter.Paused && p.looked < pausedSpan:
		return ""
	case p.filter.Paused:
		return keyCursor(p.keyed)
	case p.byKey() && !full:
		return ""
	case p.byKey():
		last := p.jobs[p.limit-1]
		return keyCursor(store.Entry{CompleteBy: last.CompleteBy, Job: last.ID})
	case full:
		p.from = p.last
	}
	if p.from <= 1 {
		return ""
	}
	return strconv.FormatInt(p.from, 10)
}

func keyCursor(e store.Entry) string {
	return strconv.FormatInt(e.CompleteBy.UnixMilli(), 10) + "/" + e.Job
}

// read takes the way to the matching jobs that reads the fewest others.
func (p *page) read(c *conn) error {
	state, workflow, limit := string(p.filter.State), p.filter.Workflow, int64(p.limit)
	switch {
	case p.filter.Paused:
		return p.queryPaused(c)
	case p.byKey():
		return p.query(c, listUnfinished, p.key, p.id, state, workflow, workflow, limit)
	case state == "" && workflow == "":
		return p.query(c, listAll, p.before, limit)
	case state == "":
		return p.query(c, listOfWorkflow, p.before, workflow, limit)
	}
	row := make([]driver.Value, 1)
	if _, err := c.one(newestJob, row); err != nil {
		return err
	}
	p.before = min(p.before, asInt(row[0])+1)
	p.from = max(0, p.before-listSpan)
	return p.query(c, listSpanned, p.before, p.from, state, workflow, workflow, limit)
}

func (p *page) query(c *conn, sql string, args ...driver.Value) error {
	row := make([]driver.Value, 7)
	return c.query(sql, args, row, func() error {
		p.last = asInt(row[0])
		p.jobs = append(p.jobs, asListed(row))
		return nil
	})
}

// queryPaused looks at the unfinished jobs, until the page is full or has looked at enough of them. A job that cannot be
// read, or that a later release wrote, is paused if that can be read.
func (p *page) queryPaused(c *conn) error {
	state, workflow := string(p.filter.State), p.filter.Workflow
	row := make([]driver.Value, 8)
	args := []driver.Value{p.key, p.id, state, state, workflow, workflow, int64(pausedSpan)}
	return c.query(listKeyed, args, row, func() error {
		if len(p.jobs) == p.limit {
			p.looked = pausedSpan // There is more behind it.
			return nil
		}
		p.looked++
		l := asListed(row)
		p.keyed = store.Entry{CompleteBy: l.CompleteBy, Job: l.ID}
		if job, err := jobformat.DecodeWhole(asBytes(row[7])); (err == nil || errors.Is(err, store.ErrNewer)) && job.Paused() {
			p.jobs = append(p.jobs, l)
		}
		return nil
	})
}

// asListed reads the columns of a list.
func asListed(row []driver.Value) store.Listed {
	return store.Listed{
		ID: asText(row[1]), Workflow: asText(row[2]), ProcessState: makegood.ProcessState(asText(row[3])),
		FailureCount: int(asInt(row[4])), CompleteBy: asTime(row[5]), CreatedAt: asTime(row[6]),
	}
}
