package sqlitestore

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Lister = (*Reader)(nil)

// listSpan is how many jobs one page looks through where no index leads to those that match.
const listSpan = 20_000

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

	newestJob = `SELECT max(row) FROM jobs`
)

// ListJobs lists jobs, the newest first, and those in Error or Undoing the last key first; see
// store.Lister. A cursor that no page of such a list gave is refused with store.ErrNotFound. A page of
// jobs in one of the other states may be short or empty before the end: it looks through 20,000 jobs.
func (r *Reader) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) ([]store.Listed, string, error) {
	p := page{filter: filter, limit: max(1, limit)}
	if !p.begin(cursor) {
		return nil, "", fmt.Errorf("list jobs: there is no page %q: %w", cursor, store.ErrNotFound)
	}
	if err := r.read(ctx, p.read); err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	return p.jobs, p.next(), nil
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
}

// byKey reports whether the list goes through the unfinished jobs only, of which there are few.
func (p *page) byKey() bool {
	return p.filter.State == makegood.Error || p.filter.State == makegood.Undoing
}

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
	case p.byKey() && !full:
		return ""
	case p.byKey():
		last := p.jobs[p.limit-1]
		return strconv.FormatInt(last.CompleteBy.UnixMilli(), 10) + "/" + last.ID
	case full:
		p.from = p.last
	}
	if p.from <= 1 {
		return ""
	}
	return strconv.FormatInt(p.from, 10)
}

// read takes the way to the matching jobs that reads the fewest others.
func (p *page) read(c *conn) error {
	state, workflow, limit := string(p.filter.State), p.filter.Workflow, int64(p.limit)
	switch {
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
		p.jobs = append(p.jobs, store.Listed{
			ID: asText(row[1]), Workflow: asText(row[2]), ProcessState: makegood.ProcessState(asText(row[3])),
			FailureCount: int(asInt(row[4])), CompleteBy: asTime(row[5]), CreatedAt: asTime(row[6]),
		})
		return nil
	})
}
