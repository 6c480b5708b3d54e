package dynamostore

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood/internal/job"
)

// A page of a history is a payload, and is born, kept and expires as one. Nothing of a job is ever deleted by hand, and no
// role may: a page that is dropped gets a time that has passed, and leaves the table by it.

// HistoryPages reads the pages of a job's history; see store.Histories.
func (s *Store) HistoryPages(ctx context.Context, id string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	err := s.pagesOf(ctx, id, "begins_with(SK, :from)", item{":from": text(job.HistoryPrefix)}, func(it item) {
		pages[asText(it[attrSK])] = asBytes(it[attrData])
	})
	if err != nil {
		return nil, fmt.Errorf("pages of the history of job %s: %w", id, err)
	}
	return pages, nil
}

// DropPages lets pages of a job's history expire; see store.Histories.
func (s *Store) DropPages(ctx context.Context, id string, after, before int) error {
	var drop []item
	between := item{":from": text(job.HistoryFrom(after + 1)), ":to": text(job.HistoryFrom(before))}
	err := s.pagesOf(ctx, id, "SK BETWEEN :from AND :to", between, func(it item) {
		if job.Falls(asText(it[attrSK]), after, before) && !s.dropped(it) {
			drop = append(drop, keyItem(asText(it[attrPK]), asText(it[attrSK])))
		}
	})
	for _, key := range drop {
		if err == nil {
			err = s.setExpiry(ctx, key, s.config.Now())
		}
	}
	if err != nil {
		return fmt.Errorf("drop pages of the history of job %s: %w", id, err)
	}
	return nil
}

// pagesOf reads those pages of a job's history of which a condition on their keys holds.
func (s *Store) pagesOf(ctx context.Context, id, condition string, values item, each func(item)) error {
	values[":job"] = text(jobPrefix + id)
	pages := dynamodb.NewQueryPaginator(s.config.Client, &dynamodb.QueryInput{
		TableName: &s.config.Table, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.returnConsumed(),
		KeyConditionExpression: aws.String("PK = :job AND " + condition), ExpressionAttributeValues: values,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, s.options)
		if err != nil {
			return err
		}
		s.consumed("HistoryPages", page.ConsumedCapacity)
		for _, it := range page.Items {
			each(it)
		}
	}
	return nil
}

// dropped reports whether a part is a page that was dropped, and that DynamoDB has not deleted yet. Any other part of a job
// that is there has a time to come.
func (s *Store) dropped(part item) bool {
	expires := asInt(part[attrExpiresAt])
	return expires > 0 && expires <= s.config.Now().Unix() && strings.HasPrefix(asText(part[attrSK]), job.HistoryPrefix)
}
