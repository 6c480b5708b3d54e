package dynamostore

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/store"
)

const (
	// scanItems is how many items one request of a list looks at, and scanRequests how many requests a
	// page may take: no index leads to jobs of a state or workflow, so a list reads the table.
	scanItems    = 1000
	scanRequests = 4
)

// ListJobs lists jobs in no order; see store.Lister. It reads the table through, payloads included,
// and pays for all that it passes over: it is for people, now and then. The cursor is the key of the
// last item seen. A page may be short, or empty, before the end.
func (s *Store) ListJobs(ctx context.Context, filter store.Filter, cursor string, limit int) ([]store.Listed, string, error) {
	from, err := cursorKey(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("list jobs: %w", err)
	}
	limit = max(1, limit)
	var jobs []store.Listed
	for range scanRequests {
		out, err := s.config.Client.Scan(ctx, s.listing(filter, from), s.options)
		if err != nil {
			return nil, "", fmt.Errorf("list jobs: %w", err)
		}
		s.consumed("ListJobs", out.ConsumedCapacity)
		for _, it := range out.Items {
			if len(jobs) == limit {
				return jobs, keyCursor(hotKey(jobs[limit-1].ID)), nil
			}
			jobs = append(jobs, listed(it))
		}
		if from = out.LastEvaluatedKey; len(from) == 0 {
			return jobs, "", nil
		}
	}
	return jobs, keyCursor(from), nil
}

// listing is one request of a list.
func (s *Store) listing(filter store.Filter, from item) *dynamodb.ScanInput {
	u := newUpdate()
	u.when(u.attr(attrSK) + " = " + u.value("job", text(sortJob)))
	if filter.State != "" {
		u.when(u.attr(attrProcessState) + " = " + u.value("state", text(string(filter.State))))
	}
	if filter.Workflow != "" {
		u.when(u.attr(attrWorkflow) + " = " + u.value("workflow", text(filter.Workflow)))
	}
	var shown []string
	for _, name := range []string{attrPK, attrWorkflow, attrProcessState, attrFailureCount, attrCompleteBy, attrData} {
		shown = append(shown, u.attr(name))
	}
	return &dynamodb.ScanInput{
		TableName: &s.config.Table, Limit: aws.Int32(scanItems), ExclusiveStartKey: from,
		FilterExpression: aws.String(u.condition()), ProjectionExpression: aws.String(strings.Join(shown, ", ")),
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values, ReturnConsumedCapacity: s.returnConsumed(),
	}
}

func listed(it item) store.Listed {
	return store.Listed{
		ID: asText(it[attrPK]), Workflow: asText(it[attrWorkflow]), ProcessState: makegood.ProcessState(asText(it[attrProcessState])),
		FailureCount: int(asInt(it[attrFailureCount])), CompleteBy: asTime(it[attrCompleteBy]), CreatedAt: unpackCreated(asBytes(it[attrData])),
	}
}

// keyCursor writes the key of an item as a cursor. No id and no sort key of ours holds a space.
func keyCursor(key item) string {
	return base64.RawURLEncoding.EncodeToString([]byte(asText(key[attrPK]) + " " + asText(key[attrSK])))
}

// cursorKey reads a cursor; one that no page gave is store.ErrNotFound.
func cursorKey(cursor string) (item, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	pk, sk, found := strings.Cut(string(raw), " ")
	if err != nil || !found || pk == "" || sk == "" {
		return nil, fmt.Errorf("there is no page %q: %w", cursor, store.ErrNotFound)
	}
	return keyItem(pk, sk), nil
}
