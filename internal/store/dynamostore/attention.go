package dynamostore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// AttentionIndex is the name of the sparse index that holds the jobs at which a person may want to look: those in
// Error, those that are paused, and those that an operator was told will be late. Its partitions are the shards of the
// index on CompleteBy, so that a thousand jobs that stop at once do not meet in one; its sort key is Attention.
const AttentionIndex = "Attention"

// The prefixes of Attention. No job is under two: to be in Error takes a pause back, and neither is expected.
const (
	waitsInError = "Error"
	waitsPaused  = "Paused"
	runsLate     = "Late"
)

// attention returns the value of Attention: the kind of the wait, the job's birth, and its id, so that no two are the
// same and the order is that of birth; and the hold, if it is held. The value is constant while the job waits, so no
// save of a waiting job moves it in the index. Empty: the job waits for no person.
func attention(j job.Job) string {
	switch {
	case j.ProcessState == makegood.JobError:
		return attentionOf(waitsInError, j.CreatedAt.UnixMilli(), j.ID)
	case j.Paused() && !j.ProcessState.Finished():
		waits := attentionOf(waitsPaused, j.CreatedAt.UnixMilli(), j.ID)
		if hold := store.HeldName(j); hold != "" {
			waits += "#" + hold
		}
		return waits
	case j.Warned():
		return attentionOf(runsLate, j.CreatedAt.UnixMilli(), j.ID)
	default:
		return ""
	}
}

// parkedBirth stands for the birth of a parked job, which may not be readable: such jobs are listed first.
const parkedBirth = 9_999_999_999_999

func attentionOf(waits string, birth int64, job string) string {
	return fmt.Sprintf("%s#%013d#%s", waits, birth, job)
}

// listInError lists the jobs in Error.
func (s *Store) listInError(ctx context.Context, l *listing, at cursor) (cursor, error) {
	return s.listWaiting(ctx, waitsInError, l, at)
}

// listPaused lists the paused jobs. The state under the pause is shown as it is.
func (s *Store) listPaused(ctx context.Context, l *listing, at cursor) (cursor, error) {
	return s.listWaiting(ctx, waitsPaused, l, at)
}

// listLate lists the jobs that an operator was told about, and then those that are late by their keys. A place among
// the first has the sort key of a job, which none in the index has.
func (s *Store) listLate(ctx context.Context, l *listing, at cursor) (cursor, error) {
	if at == (cursor{}) || at.sort == sortJob {
		next, err := s.listWaiting(ctx, runsLate, l, at)
		if err != nil || next != (cursor{}) {
			return next, err
		}
		at = cursor{}
	}
	l.warnedBefore = true
	return s.listUnfinished(ctx, l, at)
}

// listWaiting lists the jobs that wait for a person, those born last first: one query a shard, and one
// read of the items for each page. The cursor holds the Attention of the last entry.
func (s *Store) listWaiting(ctx context.Context, waits string, l *listing, at cursor) (cursor, error) {
	below := waits + "$" // the character after #
	if at.job != "" {
		below = attentionOf(waits, at.key, at.job)
	}
	ask := min(l.limit, listEntries)
	entries, err := s.waiting(ctx, waits, below, ask)
	if err != nil {
		return cursor{}, err
	}
	var jobs []store.Entry
	for _, e := range entries {
		if e.sort == sortJob {
			jobs = append(jobs, store.Entry{Job: e.job})
		}
	}
	found, err := s.look(ctx, jobs)
	if err == nil {
		// The index may lag behind the items, which have the current state.
		err = l.take(slices.DeleteFunc(found, func(l store.Listed) bool { return !waitsAs(waits, l) }))
	}
	if err != nil || len(entries) < ask {
		return cursor{}, err
	}
	return entries[len(entries)-1], nil
}

// waitsAs reports whether a job waits for a person in this way.
func waitsAs(waits string, l store.Listed) bool {
	switch waits {
	case waitsInError:
		return l.ProcessState == makegood.JobError
	case runsLate:
		return l.Job.Warned()
	default:
		return l.Paused
	}
}

// waiting returns the first entries below a value of Attention, over all shards.
func (s *Store) waiting(ctx context.Context, waits, below string, limit int) ([]cursor, error) {
	var all []cursor
	for shard := range s.config.Shards {
		out, err := s.config.Client.Query(ctx, &dynamodb.QueryInput{
			TableName: &s.config.Table, IndexName: aws.String(AttentionIndex),
			// One more than is wanted: BETWEEN takes its upper end, which was the last of the page before.
			Limit: aws.Int32(int32(limit + 1)), ScanIndexForward: aws.Bool(false),
			KeyConditionExpression:    aws.String("#s = :shard AND #a BETWEEN :first AND :below"),
			ExpressionAttributeNames:  map[string]string{"#s": attrShard, "#a": attrAttention},
			ExpressionAttributeValues: item{":shard": number(int64(shard)), ":first": text(waits + "#"), ":below": text(below)},
			ReturnConsumedCapacity:    s.returnConsumed(),
		}, s.options)
		if err != nil {
			return nil, fmt.Errorf("shard %d of the index %s: %w", shard, AttentionIndex, err)
		}
		s.consumed("Waiting", out.ConsumedCapacity)
		for _, it := range out.Items {
			e, err := entryOf(it)
			if err != nil {
				return nil, err
			}
			if asText(it[attrAttention]) != below {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b cursor) int {
		return cmp.Or(cmp.Compare(b.key, a.key), strings.Compare(b.job, a.job))
	})
	return all[:min(limit, len(all))], nil
}

// entryOf reads an entry of the index. One that is not of the job that it names has no sort: it counts for how far a
// list has come, and is not shown.
func entryOf(it item) (cursor, error) {
	ours, err := ofAJob(it)
	if err != nil {
		return cursor{}, err
	}
	parts := strings.SplitN(asText(it[attrAttention]), "#", 4)
	if len(parts) < 3 {
		return cursor{}, nil
	}
	var birth int64
	_, _ = fmt.Sscanf(parts[1], "%d", &birth) // of a value that is not ours, the birth is 0
	e := cursor{key: birth, job: parts[2]}    // behind them is what holds it
	if ours && e.job == jobOf(it) {
		e.sort = sortJob
	}
	return e, nil
}
