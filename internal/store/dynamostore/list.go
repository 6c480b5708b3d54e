package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

const (
	// scanItems is how many items one request of a list looks at, and listRequests how many requests a
	// page may take.
	scanItems    = 1000
	listRequests = 4
)

// ListJobs lists jobs; see store.Lister. Those in Error and paused ones are found by the index Attention, the newest
// first; unfinished jobs of another state by the index on CompleteBy, which all of them are in, in no
// order. For anything else it reads the table through, payloads
// included, and pays for all that it passes over: that is for people, now and then. A page may be
// short, or empty, before the end. A cursor that no page gave is store.ErrNotFound.
func (s *Store) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) (store.Page, error) {
	list, scanned := s.listTable, false
	switch {
	case filter.Paused:
		list = s.listPaused
	case filter.State == makegood.Error:
		list = s.listInError
	case filter.State != "" && !filter.State.Finished():
		list = s.listUnfinished
	default:
		scanned = true
	}
	at, err := readCursor(cursor)
	if err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	jobs, next, err := list(ctx, filter, at, max(1, limit))
	if err != nil {
		return store.Page{}, fmt.Errorf("list jobs: %w", err)
	}
	return store.Page{Jobs: jobs, Cursor: next.String(), Scanned: scanned}, nil
}

// listUnfinished goes through the index, shard by shard.
func (s *Store) listUnfinished(ctx context.Context, filter store.Filter, at cursor, limit int) ([]store.Listed, cursor, error) {
	const endOfTime = math.MaxInt64 / int64(time.Millisecond)
	var jobs []store.Listed
	for range listRequests {
		var from item
		if at.job != "" {
			from = s.indexKey(at.shard, store.Entry{CompleteBy: time.UnixMilli(at.key), Job: at.job, Schedule: at.sort, Holds: at.job == HoldsPK})
		}
		entries, next, err := s.queryIndex(ctx, at.shard, time.UnixMilli(endOfTime), from, min(limit-len(jobs), maxBatchGet))
		if err != nil {
			return nil, cursor{}, err
		}
		found, err := s.look(ctx, entries)
		if err != nil {
			return nil, cursor{}, err
		}
		for _, l := range found {
			if filter.Shows(l) {
				jobs = append(jobs, l)
			}
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
			return jobs, cursor{}, nil
		}
		if len(jobs) >= limit {
			break
		}
	}
	return jobs, at, nil
}

// look reads what a list shows of the jobs of entries, in their order; those that are gone, it leaves
// out.
func (s *Store) look(ctx context.Context, entries []store.Entry) ([]store.Listed, error) {
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Schedule != "" || e.Holds })
	if len(entries) == 0 {
		return nil, nil
	}
	found := map[string]store.Listed{}
	u := newUpdate()
	shown := u.shown()
	ask := map[string]types.KeysAndAttributes{s.config.Table: {ProjectionExpression: &shown, ExpressionAttributeNames: u.names}}
	for _, e := range entries {
		all := ask[s.config.Table]
		all.Keys = append(all.Keys, hotKey(e.Job))
		ask[s.config.Table] = all
	}
	items, err := s.batchGet(ctx, ask)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		found[jobOf(it)] = listed(it)
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
func (s *Store) listTable(ctx context.Context, filter store.Filter, at cursor, limit int) ([]store.Listed, cursor, error) {
	var jobs []store.Listed
	for range listRequests {
		out, err := s.config.Client.Scan(ctx, s.scanning(filter, at), s.options)
		if err != nil {
			return nil, cursor{}, err
		}
		s.consumed("ListJobs", out.ConsumedCapacity)
		for _, it := range out.Items {
			if len(jobs) == limit {
				return jobs, cursor{job: jobPrefix + jobs[limit-1].ID, sort: sortJob}, nil
			}
			switch ours, err := ofAJob(it); {
			case err != nil:
				return nil, cursor{}, err
			case ours:
				jobs = append(jobs, listed(it))
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return jobs, cursor{}, nil
		}
		at = cursor{job: asText(out.LastEvaluatedKey[attrPK]), sort: asText(out.LastEvaluatedKey[attrSK])}
	}
	return jobs, at, nil
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
	for _, name := range []string{attrPK, attrWorkflow, attrProcessState, attrFailureCount, attrCompleteBy, attrData} {
		all = append(all, u.attr(name))
	}
	return strings.Join(all, ", ")
}

func listed(it item) store.Listed {
	return store.Listed{
		ID: jobOf(it), Workflow: asText(it[attrWorkflow]), ProcessState: makegood.ProcessState(asText(it[attrProcessState])),
		FailureCount: int(asInt(it[attrFailureCount])), CompleteBy: asTime(it[attrCompleteBy]), CreatedAt: jobformat.CreatedAt(asBytes(it[attrData])),
	}
}

// cursor is how far a list has come: in the table, after the item whose partition key is job and whose sort key is sort;
// in an index, after the entry of key and job in its shard, or at the shard's beginning. The zero cursor is the end, and
// the beginning.
type cursor struct {
	shard int
	key   int64
	job   string
	sort  string
}

// String writes the cursor for the caller. No key of ours holds a space, but an agent may give one to its claims.
func (c cursor) String() string {
	if c == (cursor{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s %s", c.shard, c.key, url.QueryEscape(c.job), url.QueryEscape(c.sort)))
}

func readCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	parts := strings.Split(string(raw), " ")
	if err != nil || len(parts) != 4 || slices.Contains(parts[:2], "") {
		return cursor{}, fmt.Errorf("there is no page %q: %w", text, store.ErrNotFound)
	}
	shard, err1 := strconv.Atoi(parts[0])
	key, err2 := strconv.ParseInt(parts[1], 10, 64)
	job, err3 := url.QueryUnescape(parts[2])
	sort, err4 := url.QueryUnescape(parts[3])
	if errors.Join(err1, err2, err3, err4) != nil || shard < 0 || shard >= maxShards+BeginShards || sort != "" && job == "" {
		return cursor{}, fmt.Errorf("there is no page %q: %w", text, store.ErrNotFound)
	}
	return cursor{shard: shard, key: key, job: job, sort: sort}, nil
}
