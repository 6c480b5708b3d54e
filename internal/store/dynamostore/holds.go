package dynamostore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Holds = (*Store)(nil)

// HoldsPK is the partition key of the one item of all holds, which the role of an agent may read, and not write. It has
// the # that tells the items of this layout from those of before.
const (
	HoldsPK   = "holds#"
	sortHolds = "holds"
)

// isHolds reports whether an item is that of the holds.
func isHolds(it item) bool { return asText(it[attrPK]) == HoldsPK }

func holdsKey() item { return keyItem(HoldsPK, sortHolds) }

// Holds reads the holds; see store.Holds.
func (s *Store) Holds(ctx context.Context, sure bool) (store.Held, error) {
	out, err := s.config.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.config.Table, Key: holdsKey(), ConsistentRead: &sure, ReturnConsumedCapacity: s.returnConsumed(),
	}, s.options)
	if err != nil {
		return store.Held{}, fmt.Errorf("read holds: %w", err)
	}
	s.consumed("Holds", out.ConsumedCapacity)
	if len(out.Item) == 0 {
		return store.Held{}, nil
	}
	held := store.Held{Rev: asInt(out.Item[attrRev])}
	held.Holds, err = store.DecodeHolds(asBytes(out.Item[attrData]))
	return held, err
}

// PutHolds stores the holds; see store.Holds. A write that the SDK tries again finds its own nonce, and succeeds.
func (s *Store) PutHolds(ctx context.Context, h store.Held) error {
	it := holdsKey()
	it[attrRev], it[attrData] = number(h.Rev+1), blob(store.EncodeHolds(h))
	if key := h.Key(); !key.IsZero() {
		it[attrCompleteBy], it[attrShard] = instant(key), number(s.beginsIn(sortHolds))
	}
	return store.About(s.putRevised(ctx, "PutHolds", it, h.Rev), "put holds")
}

// HeldJobs returns jobs that a hold keeps still, oldest first; see store.Holds. It reads the keys of the paused jobs in
// the index Attention, which end with the hold of each, and no item.
func (s *Store) HeldJobs(ctx context.Context, hold string, limit int) ([]string, error) {
	var all []cursor
	for shard := range s.config.Shards {
		found := 0
		err := s.eachHeld(ctx, shard, hold, func(e cursor) bool {
			all = append(all, e)
			found++
			return found < limit
		})
		if err != nil {
			return nil, fmt.Errorf("jobs held by %s: %w", hold, err)
		}
	}
	slices.SortFunc(all, func(a, b cursor) int { return cmp.Or(cmp.Compare(a.key, b.key), strings.Compare(a.job, b.job)) })
	var ids []string
	for _, e := range all[:min(limit, len(all))] {
		ids = append(ids, e.job)
	}
	return ids, nil
}

// CountHeld counts them; see store.Holds.
func (s *Store) CountHeld(ctx context.Context, hold string, most int) (int, error) {
	n := 0
	for shard := range s.config.Shards {
		if n >= most {
			break
		}
		err := s.eachHeld(ctx, shard, hold, func(cursor) bool { n++; return n < most })
		if err != nil {
			return 0, fmt.Errorf("count the jobs held by %s: %w", hold, err)
		}
	}
	return n, nil
}

// eachHeld calls yield with the jobs of a shard that a hold keeps still, oldest first, until it returns false.
func (s *Store) eachHeld(ctx context.Context, shard int, hold string, yield func(cursor) bool) error {
	pages := dynamodb.NewQueryPaginator(s.config.Client, &dynamodb.QueryInput{
		TableName: &s.config.Table, IndexName: aws.String(AttentionIndex),
		KeyConditionExpression:    aws.String("#s = :shard AND begins_with(#a, :paused)"),
		ExpressionAttributeNames:  map[string]string{"#s": attrShard, "#a": attrAttention},
		ExpressionAttributeValues: item{":shard": number(int64(shard)), ":paused": text(waitsPaused + "#")},
		ReturnConsumedCapacity:    s.returnConsumed(),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, s.options)
		if err != nil {
			return err
		}
		s.consumed("HeldJobs", page.ConsumedCapacity)
		for _, it := range page.Items {
			e, err := entryOf(it)
			if err != nil {
				return err
			}
			if e.sort == sortJob && strings.HasSuffix(asText(it[attrAttention]), "#"+hold) && !yield(e) {
				return nil
			}
		}
	}
	return nil
}
