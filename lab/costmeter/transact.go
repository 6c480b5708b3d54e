package costmeter

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// preparedAndCommitted is how often a transaction pays for each of its items. The indexes follow behind it, as behind
// any write, and are paid for once; no stand-in says so, and no figure of AWS's either.
const preparedAndCommitted = 2

// transact works out what TransactWriteItems cost, for all of its items together. One that is cancelled costs the same,
// but for the indexes. A request that was carried out before, under the same token, it counts as one more.
func (m *Meter) transact(in *dynamodb.TransactWriteItemsInput, err error) Entry {
	var cancelled *types.TransactionCanceledException
	var refused smithy.APIError
	failed := errors.As(err, &cancelled)
	switch {
	case err == nil || failed:
	case errors.As(err, &refused) && refused.ErrorFault() == smithy.FaultClient:
		return Entry{}
	default:
		return Entry{Doubt: "no answer: " + err.Error()}
	}
	all := Entry{Indexes: map[string]float64{}, Failed: failed}
	for _, it := range in.TransactItems {
		e := m.inTransaction(it, !failed)
		all.Table += e.Table
		for name, units := range e.Indexes {
			all.Indexes[name] += units
		}
		if e.Doubt != "" {
			all.Doubt = e.Doubt
		}
	}
	return all
}

// inTransaction works out what an item of a transaction cost, and keeps what it made, if it was done. What an update
// made is shown to nobody: the shadow stays as it was, so that a second one of the same item may be counted too low.
func (m *Meter) inTransaction(it types.TransactWriteItem, done bool) Entry {
	var name *string
	var key, after item
	// hidden is how many bytes an update may have added, which nobody is told.
	hidden := 0
	switch {
	case it.Put != nil:
		name, key, after = it.Put.TableName, it.Put.Item, it.Put.Item
	case it.Delete != nil:
		name, key = it.Delete.TableName, it.Delete.Key
	case it.ConditionCheck != nil:
		name, key = it.ConditionCheck.TableName, it.ConditionCheck.Key
	case it.Update != nil:
		name, key, hidden = it.Update.TableName, it.Update.Key, sizeOf(it.Update.ExpressionAttributeValues)
	}
	t, known := m.tables[aws.ToString(name)]
	id, whole := t.id(key)
	if !known || !whole {
		return Entry{Doubt: "the meter does not know table " + aws.ToString(name)}
	}
	before := m.shadow[id]
	if it.ConditionCheck != nil {
		return Entry{Table: preparedAndCommitted * unitsOf(sizeOf(before), writeUnit)}
	}
	if it.Update != nil {
		e := Entry{Table: preparedAndCommitted * unitsOf(sizeOf(before), writeUnit)}
		if most := preparedAndCommitted * unitsOf(sizeOf(before)+sizeOf(key)+hidden, writeUnit); most != e.Table || len(t.indexes) > 0 {
			e.Doubt = "nobody is told what an update in a transaction makes of its item"
		}
		return e
	}
	e := Entry{}
	e.Table, e.Indexes = t.write(before, after)
	e.Table *= preparedAndCommitted
	if !done {
		return Entry{Table: e.Table}
	}
	m.keep(id, after)
	return e
}
