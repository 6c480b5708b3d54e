package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

// A page of a history is a payload, and is born, kept and expires as one. No part of a job is ever deleted by hand, and
// no role may: a page that is dropped gets a time that has passed, and leaves the table by it.

// HistoryPages reads the pages of a job's history; see store.Histories.
func (s *Store) HistoryPages(ctx context.Context, id string) (map[string][]byte, error) {
	found := map[string][]byte{}
	query := partsQuery(id, "begins_with(SK, :from)", item{":from": text(job.HistoryPrefix)})
	for it, err := range s.itemsOf(ctx, "HistoryPages", query) {
		if err != nil {
			return nil, fmt.Errorf("pages of the history of job %s: %w", id, err)
		}
		found[asText(it[attrSK])] = asBytes(it[attrData])
	}
	return found, nil
}

// dropPage is how many pages of a history one read of DropPages asks for: mostly only one save's pages are new.
const dropPage = 8

// DropPages lets pages of a job's history expire; see store.Histories. DynamoDB deletes them within days only, so a job
// that fails for long has thousands of dropped pages: DropPages reads from the end of the middle back to the first
// dropped one. Pages are dropped in their order, so after a failure on the way the rest lies before that end, and the
// next call finds it.
func (s *Store) DropPages(ctx context.Context, id string, after, before int) error {
	drop, err := s.notDropped(ctx, id, after, before)
	slices.Reverse(drop)
	for _, key := range drop {
		if err == nil {
			err = s.setExpiry(ctx, key, s.config.Now())
		}
	}
	return store.About(err, "drop pages of the history of job %s", id)
}

// notDropped returns the keys of the pages between two entries after the last dropped page, the last first.
func (s *Store) notDropped(ctx context.Context, id string, after, before int) (keys []item, err error) {
	query := partsQuery(id, "SK BETWEEN :from AND :to", item{":from": text(job.HistoryFrom(after + 1)), ":to": text(job.HistoryFrom(before))})
	query.ScanIndexForward, query.Limit = aws.Bool(false), aws.Int32(dropPage)
	for it, err := range s.itemsOf(ctx, "HistoryPages", query) {
		switch {
		case err != nil:
			return nil, err
		case s.dropped(it):
			return keys, nil
		case job.Falls(asText(it[attrSK]), after, before):
			keys = append(keys, keyItem(asText(it[attrPK]), asText(it[attrSK])))
		}
	}
	return keys, nil
}

// partsQuery finds the parts of a job with keys that meet a condition.
func partsQuery(id, condition string, values item) *dynamodb.QueryInput {
	values[":job"] = text(jobPrefix + id)
	return &dynamodb.QueryInput{KeyConditionExpression: aws.String("PK = :job AND " + condition), ExpressionAttributeValues: values}
}

// dropped reports whether a part is a page that was dropped, and that DynamoDB has not deleted yet. Any other part of a
// job that is there has a time to come.
func (s *Store) dropped(part item) bool {
	expires := asInt(part[attrExpiresAt])
	return expires > 0 && expires <= s.config.Now().Unix() && strings.HasPrefix(asText(part[attrSK]), job.HistoryPrefix)
}
