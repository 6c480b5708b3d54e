package dynamostore

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// CreateItems returns the writes that store a new job and its payloads, to be put into a transaction of the caller's
// own. The first is the job's, conditional on its id being free. All lie in the job's partition, and no request is made
// to DynamoDB here, so a role that may only put items under job#* may make such a transaction: the names of the steps,
// which many jobs share, are in the item until the first save puts them where they are shared. If j counts its cost,
// the cost of these writes in a transaction is added.
func (s *Store) CreateItems(j job.Job, payloads map[string]json.RawMessage) []types.TransactWriteItem {
	parts := s.inputItems(j, payloads)
	hot := s.birthItem(j, newNonce())
	hot[attrData] = blob(packTransacted(j, sizeOf(hot)+len(attrData), parts))
	free, values := s.freeID()
	items := []types.TransactWriteItem{{Put: &types.Put{
		TableName: &s.config.Table, Item: hot, ConditionExpression: &free, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	for _, it := range parts {
		items = append(items, types.TransactWriteItem{Put: &types.Put{TableName: &s.config.Table, Item: it}})
	}
	return items
}

// inputItems are the payloads that a new job refers to, in the order of their keys.
func (s *Store) inputItems(j job.Job, payloads map[string]json.RawMessage) (all []item) {
	for _, key := range slices.Sorted(maps.Keys(payloads)) {
		it := partKey(j.ID, key)
		it[attrData] = blob(payloads[key])
		if !s.waitsLong(j) {
			it = s.expiring(it)
		}
		all = append(all, it)
	}
	return all
}

// HoldsCheck returns a check that makes a transaction of the caller's hold only while lockedBy holds an attempt that
// was not closed. It names no attribute but those, and asks for no item back: a role needs dynamodb:ConditionCheckItem
// of the agent's own claims for it.
func HoldsCheck(table string, slot store.Slot, attempt int, lockedBy string) types.TransactWriteItem {
	u := newUpdate()
	u.holding(job.Claim{Attempt: attempt, LockedBy: lockedBy})
	condition := u.condition()
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &table, Key: slotKey(slot), ConditionExpression: &condition,
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: u.values,
	}}
}
