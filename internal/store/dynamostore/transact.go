package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
)

// CreateItems gives the writes that store a new job and its payloads, to be put into a transaction of
// the caller's own. The first is the job's, conditional on its id being free. What many jobs share is
// written at once: it does no harm if the transaction is never made.
func (s *Store) CreateItems(ctx context.Context, job makegood.Job, payloads map[string]json.RawMessage) ([]types.TransactWriteItem, error) {
	hot, p := s.birthItem(job, newNonce())
	if err := s.putParts(ctx, job.ID, p); err != nil {
		return nil, fmt.Errorf("items of job %s: %w", job.ID, err)
	}
	free, values := s.freeID()
	items := []types.TransactWriteItem{{Put: &types.Put{
		TableName: &s.config.Table, Item: hot, ConditionExpression: &free, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	for _, key := range slices.Sorted(maps.Keys(payloads)) {
		it := keyItem(job.ID, key)
		it[attrData] = blob(payloads[key])
		if !s.waitsLong(job) {
			it = s.expiring(it)
		}
		items = append(items, types.TransactWriteItem{Put: &types.Put{TableName: &s.config.Table, Item: it}})
	}
	return items, nil
}
