package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

const (
	// scanItems is how many items one request of a list looks at, and listRequests how many requests a
	// page may take.
	scanItems    = 1000
	listRequests = 4
	// listEntries is how many entries of an index one page looks at: ten requests for their items, made at once.
	listEntries = 10 * maxBatchGet
)

// ListJobs lists jobs; see store.Lister. Those in Error and paused ones are found by the index Attention, the newest
// first. Jobs that are due or late, and unfinished ones otherwise, are found by the index on CompleteBy, in the order
// of their keys, shard by shard; before them, by Attention, those that an operator was told will be late. Any other
// list reads the table through, payloads included, and pays for all that it passes over: that is for people, now and
// then. A page may be short, or empty, before the end.
func (s *Store) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) (store.Page, error) {
	place, err := filter.Open(cursor)
	if err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	at, err := readPlace(place)
	if err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	list, scanned := s.wayTo(filter)
	l := &listing{filter: filter, limit: max(1, limit), sieve: store.NewSieve(filter, func(hash string) ([]byte, error) { return s.Definition(ctx, hash) })}
	next, err := list(ctx, l, at)
	if err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	return store.Page{Jobs: l.jobs, Cursor: filter.Seal(next.String()), Scanned: scanned}, nil
}

// listing is a page of a list as it is made.
type listing struct {
	filter store.Filter
	sieve  *store.Sieve
	limit  int
	jobs   []store.Listed
	// warnedBefore: jobs that are warned of came on pages before.
	warnedBefore bool
}

// left is how many jobs more the page may have.
func (l *listing) left() int { return l.limit - len(l.jobs) }

// take puts those of the jobs into the page that the filter shows.
func (l *listing) take(found []store.Listed) error {
	for _, job := range found {
		if l.warnedBefore && job.Job.Warned() {
			continue
		}
		shows, err := l.sieve.Shows(&job)
		if err != nil {
			return err
		}
		if shows {
			l.jobs = append(l.jobs, job)
		}
	}
	return nil
}

// wayTo returns how the jobs of a list are found, and whether others are read to find them.
func (s *Store) wayTo(filter store.Filter) (list func(context.Context, *listing, cursor) (cursor, error), scans bool) {
	switch {
	case filter.InError():
		return s.listInError, false
	case filter.Paused:
		return s.listPaused, false
	case filter.WantsWarned():
		return s.listLate, false
	case filter.Unfinished() || filter.State != "" && !filter.State.Finished():
		return s.listUnfinished, false
	}
	return s.listTable, true
}

// endOfTime is after every key.
const endOfTime = math.MaxInt64 / int64(time.Millisecond)

// listUnfinished goes through the index, shard by shard, as far as keys can lie of jobs that match.
func (s *Store) listUnfinished(ctx context.Context, l *listing, at cursor) (cursor, error) {
	by := l.filter.KeyBy()
	if by.IsZero() {
		by = time.UnixMilli(endOfTime)
	}
	for range listRequests {
		var from item
		if at.job != "" {
			from = s.indexKey(at.shard, store.Entry{CompleteBy: time.UnixMilli(at.key), Job: at.job, Schedule: at.sort, Holds: at.job == HoldsPK})
		}
		entries, next, err := s.queryIndex(ctx, at.shard, by, from, min(l.left(), listEntries))
		if err != nil {
			return cursor{}, err
		}
		if l.filter.Roots {
			entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return domain.IsChild(e.Job) })
		}
		found, err := s.look(ctx, entries)
		if err == nil {
			err = l.take(found)
		}
		if err != nil {
			return cursor{}, err
		}
		switch {
		case len(next) > 0:
			at = cursor{shard: at.shard, key: asInt(next[attrCompleteBy]), job: jobOf(next)}
			if isSchedule(next) {
				at.sort = asText(next[attrSK])
			}
			if isHolds(next) {
				at.job, at.sort = HoldsPK, sortHolds
			}
		case at.shard+1 < s.Shards():
			at = cursor{shard: at.shard + 1}
		default:
			return cursor{}, nil
		}
		if l.left() == 0 {
			break
		}
	}
	return at, nil
}

// look reads what a list shows of the jobs of entries, in their order; those that are gone, it leaves
// out. Requests of one page are made at once.
func (s *Store) look(ctx context.Context, entries []store.Entry) ([]store.Listed, error) {
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Schedule != "" })
	batches := slices.Collect(slices.Chunk(entries, maxBatchGet))
	jobs, errs := make([][]store.Listed, len(batches)), make([]error, len(batches))
	var all sync.WaitGroup
	for i, batch := range batches {
		all.Go(func() { jobs[i], errs[i] = s.lookAt(ctx, batch) })
	}
	all.Wait()
	return slices.Concat(jobs...), errors.Join(errs...)
}

// lookAt reads what a list shows of at most maxBatchGet jobs.
func (s *Store) lookAt(ctx context.Context, entries []store.Entry) ([]store.Listed, error) {
	found := map[string]store.Listed{}
	u := newUpdate()
	shown := u.shown()
	keys := make([]item, len(entries))
	for i, e := range entries {
		keys[i] = hotKey(e.Job)
	}
	items, err := s.batchGet(ctx, map[string]types.KeysAndAttributes{
		s.config.Table: {Keys: keys, ProjectionExpression: &shown, ExpressionAttributeNames: u.names},
	})
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if found[jobOf(it)], err = s.listed(ctx, it); err != nil {
			return nil, err
		}
	}
	var jobs []store.Listed
	for _, e := range entries {
		if l, ok := found[e.Job]; ok {
			jobs = append(jobs, l)
		}
	}
	return jobs, nil
}

// listTable reads the table through.
func (s *Store) listTable(ctx context.Context, l *listing, at cursor) (cursor, error) {
	for range listRequests {
		out, err := s.config.Client.Scan(ctx, s.scanning(l.filter, at), s.options)
		if err != nil {
			return cursor{}, err
		}
		s.consumed("ListJobs", out.ConsumedCapacity)
		for _, it := range out.Items {
			if l.left() == 0 {
				return cursor{job: jobPrefix + l.jobs[l.limit-1].ID, sort: sortJob}, nil
			}
			if err := s.takeItem(ctx, l, it); err != nil {
				return cursor{}, err
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return cursor{}, nil
		}
		at = cursor{job: asText(out.LastEvaluatedKey[attrPK]), sort: asText(out.LastEvaluatedKey[attrSK])}
	}
	return at, nil
}

// takeItem puts a job into the page, if the item is of one and the filter shows it.
func (s *Store) takeItem(ctx context.Context, l *listing, it item) error {
	ours, err := ofAJob(it)
	if err != nil || !ours {
		return err
	}
	found, err := s.listed(ctx, it)
	if err != nil {
		return err
	}
	return l.take([]store.Listed{found})
}

// scanning is one request of a list.
func (s *Store) scanning(filter store.Filter, at cursor) *dynamodb.ScanInput {
	u := newUpdate()
	u.when(u.attr(attrSK) + " = " + u.value("job", text(sortJob)))
	if filter.State != "" {
		u.when(u.attr(attrProcessState) + " = " + u.value("state", text(string(filter.State))))
	}
	if filter.Workflow != "" {
		u.when(u.attr(attrWorkflow) + " = " + u.value("workflow", text(filter.Workflow)))
	}
	if filter.IDPrefix != "" {
		u.when("begins_with(" + u.attr(attrPK) + ", " + u.value("prefix", text(jobPrefix+filter.IDPrefix)) + ")")
	}
	if filter.Roots {
		u.when("NOT contains(" + u.attr(attrPK) + ", " + u.value("child", text(domain.ChildMark)) + ")")
	}
	var from item
	if at.job != "" {
		from = keyItem(at.job, at.sort)
	}
	return &dynamodb.ScanInput{
		TableName: &s.config.Table, Limit: aws.Int32(scanItems), ExclusiveStartKey: from,
		FilterExpression: aws.String(u.condition()), ProjectionExpression: aws.String(u.shown()),
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values, ReturnConsumedCapacity: s.returnConsumed(),
	}
}

// shown names what a list shows.
func (u *update) shown() string {
	var all []string
	for _, name := range []string{attrPK, attrWorkflow, attrProcessState, attrFailureCount, attrCompleteBy, attrParked, attrData} {
		all = append(all, u.attr(name))
	}
	return strings.Join(all, ", ")
}

// listed returns the job of an item for a list. A job that cannot be decoded has the attributes beside its data.
func (s *Store) listed(ctx context.Context, it item) (store.Listed, error) {
	data := asBytes(it[attrData])
	stored, err := jobformat.Decode(data)
	if err == nil {
		err = s.nameSteps(ctx, &stored)
	}
	if err == nil && asText(it[attrProcessState]) == string(makegood.JobError) {
		// Why a step failed may be among its details.
		err = s.fillDetails(ctx, jobOf(it), &stored)
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		stored.Job = job.Job{CreatedAt: jobformat.CreatedAt(data)}
	case err != nil && !errors.Is(err, store.ErrNewer):
		return store.Listed{}, err
	}
	beside(&stored.Job, it)
	return store.ListedOf(stored.Job), nil
}

// cursor is how far a list has come: in the table, after the item with the partition key job and the sort key sort; in
// an index, after the entry of key and job in its shard, or at the shard's beginning. The zero cursor is the end, and
// the beginning.
type cursor struct {
	shard int
	key   int64
	job   string
	sort  string
}

// String writes the place. No key of ours holds a space, but an agent may give one to its claims.
func (c cursor) String() string {
	if c == (cursor{}) {
		return ""
	}
	return fmt.Sprintf("%d %d %s %s", c.shard, c.key, url.QueryEscape(c.job), url.QueryEscape(c.sort))
}

func readPlace(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	parts := strings.Split(text, " ")
	if len(parts) != 4 || slices.Contains(parts[:2], "") {
		return cursor{}, fmt.Errorf("there is no page %q: %w", text, store.ErrNotFound)
	}
	shard, err1 := strconv.Atoi(parts[0])
	key, err2 := strconv.ParseInt(parts[1], 10, 64)
	job, err3 := url.QueryUnescape(parts[2])
	sort, err4 := url.QueryUnescape(parts[3])
	if errors.Join(err1, err2, err3, err4) != nil || shard < 0 || shard >= maxShards+BeginShards(maxShards) || sort != "" && job == "" {
		return cursor{}, fmt.Errorf("there is no page %q: %w", text, store.ErrNotFound)
	}
	return cursor{shard: shard, key: key, job: job, sort: sort}, nil
}
