package sqlitestore

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Lister = (*Reader)(nil)

const (
	// listSpan is how many rows one page passes where no index leads to the jobs that match, and listLooks how many jobs it
	// decodes at most: a page is there in a fraction of a second, however large the file is.
	listSpan  = 2000
	listLooks = 1000
)

// resting are the states in which a job stays for long; lists by them go by an index of their own. The text is that of
// the index, by which SQLite recognises it.
const resting = `process_state IN ('Error', 'Processed', 'Undone', 'Cancelled')`

// way is how the jobs of a list are found: by which index, in an order that changes only when a key is moved.
type way struct {
	// from is the source of the rows, where the condition on all rows; both have their arguments in args.
	from, where string
	args        []driver.Value
	order       order
	// before is the id before which a way by ids begins; empty: after the last that there can be.
	before string
	// scans: it leads to all jobs, and the list wants some.
	scans bool
	// unwarned: it passes over the jobs that are warned of, which another way leads to.
	unwarned bool
}

// order is in which order a way goes, and what the place in a list is made of.
type order int

const (
	byRow order = iota
	byID
	byKey
	byBirth
	byLabel
)

// listColumns are those of scanJob, and the birth of a job that is damaged.
const listColumns = `SELECT jobs.row, id, rev, complete_by, parked, data, process_state, workflow, failure_count, locked_by, created_at FROM `

// The ends of pages: the rows after the place, and their order.
var ends = map[order]string{
	byRow:   ` AND jobs.row < ? ORDER BY jobs.row DESC LIMIT ?+0`,
	byID:    ` AND id < ? ORDER BY id DESC LIMIT ?+0`,
	byKey:   ` AND (complete_by, id) > (?, ?) ORDER BY complete_by, id LIMIT ?+0`,
	byLabel: ` AND labels.row < ? ORDER BY labels.row DESC LIMIT ?+0`,
	byBirth: ` AND (created_at, row) < (?, ?) ORDER BY created_at DESC, row DESC LIMIT ?+0`,
}

// sql returns the statement of a page of the way.
func (w way) sql() string { return listColumns + w.from + ` WHERE ` + w.where + ends[w.order] }

// wayTo returns the way that passes the fewest others, as far as can be known: the ways to waiting or late jobs are
// short, those of a tenant or a label shorter than those of a state, a workflow or a time.
func wayTo(f store.Filter) way {
	switch {
	case f.InError():
		return way{from: `jobs INDEXED BY jobs_resting`, where: resting + ` AND process_state = ?`, args: []driver.Value{string(makegood.JobError)}}
	case !f.KeyBy().IsZero():
		return way{from: `jobs INDEXED BY jobs_due`, where: `complete_by IS NOT NULL AND complete_by <= ?`, args: []driver.Value{f.KeyBy().UnixMilli()}, order: byKey}
	case f.IDPrefix != "":
		// 0x7f comes after each character of an id; a ~ is in that of a child.
		return way{from: `jobs`, where: `id >= ?`, args: []driver.Value{f.IDPrefix}, order: byID, before: f.IDPrefix + "\x7f"}
	case f.Tenant != "":
		return way{from: `jobs INDEXED BY jobs_tenant`, where: `tenant IS NOT NULL AND tenant = ?`, args: []driver.Value{f.Tenant}}
	case len(f.Labels) > 0:
		name := slices.Min(slices.Collect(maps.Keys(f.Labels)))
		return way{
			from:  `labels INDEXED BY labels_value CROSS JOIN jobs ON jobs.row = labels.row`,
			where: `name = ? AND value = ?`, args: []driver.Value{name, f.Labels[name]}, order: byLabel,
		}
	case f.State.Finished():
		return way{from: `jobs INDEXED BY jobs_resting`, where: resting + ` AND process_state = ?`, args: []driver.Value{string(f.State)}}
	case f.State != "" || f.Unfinished():
		return way{from: `jobs INDEXED BY jobs_unfinished`, where: `complete_by IS NOT NULL`, order: byID}
	case !f.Since.IsZero() || !f.Until.IsZero():
		return way{from: `jobs INDEXED BY jobs_created`, where: `created_at >= ? AND created_at < ?`, args: bounds(f), order: byBirth}
	case f.Workflow != "":
		return way{from: `jobs INDEXED BY jobs_workflow`, where: `workflow = ?`, args: []driver.Value{f.Workflow}}
	}
	return way{from: `jobs`, where: `TRUE`, scans: f.Definition != "" || f.ReasonPrefix != "" || f.Words != ""}
}

// waysTo returns the ways that a list goes, one after the other.
func waysTo(f store.Filter) []way {
	w := wayTo(f)
	if !f.WantsWarned() {
		return []way{w}
	}
	w.unwarned = true
	return []way{{from: `jobs INDEXED BY jobs_warned`, where: `warned IS NOT NULL AND warned = 1`}, w}
}

// bounds are the first millisecond in which a job of the list can have been created, and the first in which none can.
func bounds(f store.Filter) []driver.Value {
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !f.Since.IsZero() {
		since = f.Since.UnixMilli()
	}
	if !f.Until.IsZero() {
		// A bound within a millisecond takes that millisecond in; the filter looks again.
		until = f.Until.UnixMilli() + 1
	}
	return []driver.Value{since, until}
}

// ListJobs lists jobs; see store.Lister. The newest come first, with two exceptions: unfinished ones come by their ids,
// the last first, and due or late ones by their keys, after those that an operator was told about. A page decodes 1,000
// jobs at most, so one may be short or empty before the end.
func (r *Reader) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) (store.Page, error) {
	place, err := filter.Open(cursor)
	if err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	p := page{ways: waysTo(filter), filter: filter, limit: max(1, limit), looks: listLooks}
	if !p.begin(place) {
		return store.Page{}, fmt.Errorf("list jobs: there is no page %.40q: %w", cursor, store.ErrNotFound)
	}
	if err := r.read(ctx, p.read); err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	return store.Page{Jobs: p.jobs, Cursor: filter.Seal(p.next), Scanned: p.ways[0].scans}, nil
}

// page is one page of a list.
type page struct {
	// ways are those that are left; the page is on the first.
	ways   []way
	filter store.Filter
	// limit is how many jobs it may have, looks how many it may decode.
	limit, looks int
	// number and id are the place after which it begins.
	number int64
	id     string
	jobs   []store.Listed
	// next is where the next page begins; empty at the end.
	next string
}

// begin reads the place: how many ways are left, unless it is one, and a row, an id, or one way's key or birth.
func (p *page) begin(place string) bool {
	if first, rest, more := strings.Cut(place, "+"); more {
		left, err := strconv.Atoi(first)
		if err != nil || left < 2 || left > len(p.ways) {
			return false
		}
		p.ways, place = p.ways[len(p.ways)-left:], rest
	} else if place != "" {
		p.ways = p.ways[len(p.ways)-1:]
	}
	p.number, p.id = p.ways[0].first()
	if place == "" {
		return true
	}
	text, id, _ := strings.Cut(place, "/")
	n, err := strconv.ParseInt(text, 10, 64)
	p.number, p.id = n, id
	return err == nil
}

// first is the place before the first job of the way.
func (w way) first() (number int64, id string) {
	if w.order == byKey {
		return math.MinInt64, ""
	}
	return math.MaxInt64, cmp.Or(w.before, "\U0010FFFF")
}

// place is one on the first way, in the list.
func (p *page) place(onWay string) string {
	if left := len(p.ways); left > 1 {
		return fmt.Sprintf("%d+%s", left, onWay)
	}
	return onWay
}

// placeOf is the place of a row in its way.
func (w way) placeOf(row []driver.Value) string {
	switch w.order {
	case byID:
		return "0/" + asText(row[1])
	case byKey:
		return fmt.Sprintf("%d/%s", asInt(row[3]), asText(row[1]))
	case byBirth:
		return fmt.Sprintf("%d/%d", asInt(row[10]), asInt(row[0]))
	default:
		return strconv.FormatInt(asInt(row[0]), 10)
	}
}

// from are the arguments that say where the page begins.
func (p *page) from() []driver.Value {
	switch p.ways[0].order {
	case byID:
		return []driver.Value{p.id}
	case byBirth:
		row, err := strconv.ParseInt(p.id, 10, 64)
		if err != nil {
			row = math.MaxInt64
		}
		return []driver.Value{p.number, row}
	case byKey:
		return []driver.Value{p.number, p.id}
	default:
		return []driver.Value{p.number}
	}
}

func (p *page) read(c *conn) error {
	sieve := store.NewSieve(p.filter, func(hash string) ([]byte, error) { return definitionBy(c, hash) })
	for {
		err := p.readWay(c, sieve)
		if errors.Is(err, errPageEnds) {
			return nil
		}
		if err != nil || len(p.ways) == 1 {
			return err
		}
		p.ways = p.ways[1:]
		p.number, p.id = p.ways[0].first()
	}
}

// readWay goes along the first way; errPageEnds: the page ends on it.
func (p *page) readWay(c *conn, sieve *store.Sieve) error {
	// The page before may have ended with the way before.
	passed, last := 0, p.place(fmt.Sprintf("%d/%s", p.number, p.id))
	args := append(append(slices.Clone(p.ways[0].args), p.from()...), int64(listSpan))
	err := c.query(p.ways[0].sql(), args, func(row []driver.Value) error {
		passed++
		if len(p.jobs) == p.limit || p.looks == 0 {
			return errPageEnds
		}
		last = p.place(p.ways[0].placeOf(row))
		return p.look(row, sieve)
	})
	if err == nil && passed == listSpan {
		err = errPageEnds
	}
	if errors.Is(err, errPageEnds) {
		p.next = last
	}
	return err
}

// errPageEnds: more rows are not needed.
var errPageEnds = errors.New("the page is full")

// look takes a job into the page if it matches the filter. The columns beside its data are looked at first.
func (p *page) look(row []driver.Value, sieve *store.Sieve) error {
	beside := store.Filter{State: p.filter.State, Workflow: p.filter.Workflow, Roots: p.filter.Roots}
	if !beside.Shows(store.Listed{ID: asText(row[1]), ProcessState: makegood.ProcessState(asText(row[6])), Workflow: asText(row[7])}) {
		return nil
	}
	p.looks--
	// Load reports the damage of a job.
	j, _ := scanJob(row)
	if p.ways[0].unwarned && j.Warned() {
		return nil
	}
	l := store.ListedOf(j)
	l.CreatedAt = asTime(row[10])
	shows, err := sieve.Shows(&l)
	if shows {
		p.jobs = append(p.jobs, l)
	}
	return err
}

// definitionBy reads a definition by its hash.
func definitionBy(c *conn, hash string) ([]byte, error) {
	row, err := c.one(selectDefinition, hash)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, store.ErrNotFound
	}
	return asBytes(row[0]), nil
}

const selectDefinition = `SELECT body FROM definitions WHERE hash = ?`
