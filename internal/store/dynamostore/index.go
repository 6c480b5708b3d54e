package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
)

// Shards is how many shards the index has.
func (s *Store) Shards() int { return s.config.Shards }

// Due lists what is overdue; see store.Index. It lags behind the items, as every index of DynamoDB.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, after store.Entry, limit int) ([]store.Entry, error) {
	if shard < 0 || shard >= s.config.Shards {
		return nil, fmt.Errorf("list due jobs: there is no shard %d", shard)
	}
	var from item
	if !after.CompleteBy.IsZero() {
		from = indexKey(shard, after)
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
func indexKey(shard int, e store.Entry) item {
	key := hotKey(e.Job)
	key[attrShard], key[attrCompleteBy] = number(int64(shard)), instant(e.CompleteBy)
	return key
}

// queryIndex reads one page of the index, and returns where the next begins; empty: at the end.
func (s *Store) queryIndex(ctx context.Context, shard int, now time.Time, from item, limit int) ([]store.Entry, item, error) {
	out, err := s.config.Client.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.config.Table, IndexName: &s.config.Index, Limit: aws.Int32(int32(min(limit, 1000))),
		KeyConditionExpression:    aws.String("#s = :shard AND #c <= :now"),
		ExpressionAttributeNames:  map[string]string{"#s": attrShard, "#c": attrCompleteBy},
		ExpressionAttributeValues: item{":shard": number(int64(shard)), ":now": instant(now)},
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
		case ours:
			entries = append(entries, store.Entry{CompleteBy: asTime(it[attrCompleteBy]), Job: jobOf(it)})
		}
	}
	return entries, out.LastEvaluatedKey, nil
}
