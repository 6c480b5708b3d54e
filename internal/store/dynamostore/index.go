package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
)

// fewBeginShards is the least number of shards for keys at which work begins.
const fewBeginShards = 4

// BeginShards is how many shards are for keys at which work begins (a start, an attempt after a backoff, a fire),
// beside the others of the configuration: one more for each of these above DefaultShards. Their numbers in the table
// are negative, so that raising the others moves no key that is stored.
func BeginShards(shards int) int { return fewBeginShards + max(0, shards-DefaultShards) }

// Shards is how many shards the index has: those of the configuration, and behind them those of beginnings.
func (s *Store) Shards() int { return s.config.Shards + BeginShards(s.config.Shards) }

// OfBeginnings reports whether the keys of a shard are times at which work begins; see store.Beginnings.
func (s *Store) OfBeginnings(shard int) bool { return shard >= s.config.Shards }

// shardNumber is how a shard is called in the table.
func (s *Store) shardNumber(shard int) int64 {
	if s.OfBeginnings(shard) {
		return int64(s.config.Shards - shard - 1)
	}
	return int64(shard)
}

// isShard reports whether a sweep goes through the shard of this number.
func (s *Store) isShard(number int64) bool {
	return number >= -int64(BeginShards(s.config.Shards)) && number < int64(s.config.Shards)
}

// beginsIn returns the number of the shard for the beginnings of the job or schedule of this name.
func (s *Store) beginsIn(name string) int64 {
	return -1 - int64(spread(name)%uint32(BeginShards(s.config.Shards)))
}

// Due lists overdue entries; see store.Index. It lags behind the items, as every index of DynamoDB.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	if shard < 0 || shard >= s.Shards() {
		return nil, fmt.Errorf("list due jobs: there is no shard %d", shard)
	}
	var from item
	if !after.CompleteBy.IsZero() {
		from = s.indexKey(shard, after)
	}
	var entries []store.Entry
	for len(entries) < limit {
		page, next, err := s.queryIndex(ctx, shard, now, from, limit-len(entries))
		if err != nil {
			return nil, fmt.Errorf("list due jobs of shard %d: %w", shard, err)
		}
		entries = append(entries, page...)
		if len(next) == 0 {
			break
		}
		from = next
	}
	return entries, nil
}

// indexKey is where an entry stands in the index, or would stand.
func (s *Store) indexKey(shard int, e store.Entry) item {
	key := hotKey(e.Job)
	switch {
	case e.Holds:
		key = holdsKey()
	case e.Schedule != "":
		key = scheduleKey(e.Schedule)
	}
	key[attrShard], key[attrCompleteBy] = number(s.shardNumber(shard)), instant(e.CompleteBy)
	return key
}

// queryIndex reads one page of the index, and returns where the next begins; empty: at the end.
func (s *Store) queryIndex(ctx context.Context, shard int, now time.Time, from item, limit int) ([]store.Entry, item, error) {
	out, err := s.config.Client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.config.Table, IndexName: &s.config.Index, Limit: aws.Int32(int32(min(limit, 1000))),
		KeyConditionExpression:    aws.String("#s = :shard AND #c <= :now"),
		ExpressionAttributeNames:  map[string]string{"#s": attrShard, "#c": attrCompleteBy},
		ExpressionAttributeValues: item{":shard": number(s.shardNumber(shard)), ":now": instant(now)},
		ExclusiveStartKey:         from, ReturnConsumedCapacity: s.returnConsumed(),
	}, s.options)
	if err != nil {
		return nil, nil, err
	}
	s.consumed("Due", out.ConsumedCapacity)
	var entries []store.Entry
	for _, it := range out.Items {
		switch ours, err := ofAJob(it); {
		case err != nil:
			return nil, nil, err
		case isHolds(it):
			entries = append(entries, store.Entry{CompleteBy: asTime(it[attrCompleteBy]), Holds: true})
		case isSchedule(it):
			entries = append(entries, store.Entry{CompleteBy: asTime(it[attrCompleteBy]), Schedule: asText(it[attrSK])})
		case ours:
			entries = append(entries, store.Entry{CompleteBy: asTime(it[attrCompleteBy]), Job: jobOf(it)})
		}
	}
	return entries, out.LastEvaluatedKey, nil
}
