package dynamostore

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CreateItems returns the writes that store a new job and its payloads, to be put into a transaction of
// the caller's own. The first is the job's, conditional on its id being free. All lie in the job's partition, and
// nothing is asked of DynamoDB here, so who may only put items under job#* may make such a transaction: the names of
// the steps, which many jobs share, are in the item until the first save puts them where they are shared.
func (s *Store) CreateItems(j job.Job, payloads map[string]json.RawMessage) []types.TransactWriteItem {
	hot := s.birthItem(j, newNonce())
	hot[attrData] = blob(packData(j, nil, nil))
	free, values := s.freeID()
	items := []types.TransactWriteItem{{Put: &types.Put{
		TableName: &s.config.Table, Item: hot, ConditionExpression: &free, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	for _, key := range slices.Sorted(maps.Keys(payloads)) {
		it := partKey(j.ID, key)
		it[attrData] = blob(payloads[key])
		if !s.waitsLong(j) {
			it = s.expiring(it)
		}
		items = append(items, types.TransactWriteItem{Put: &types.Put{TableName: &s.config.Table, Item: it}})
	}
	return items
}
