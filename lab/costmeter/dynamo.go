package costmeter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// question is a request as it is made, and what of its answer the caller did not ask for.
type question struct {
	input                 any
	hideImage, hideFailed bool
}

// ask makes of a request one that also asks for the images that the rules need. What the caller gave is not
// changed. Images cost nothing.
func (m *Meter) ask(input any) question {
	q := question{input: input}
	var values *types.ReturnValue
	var failed *types.ReturnValuesOnConditionCheckFailure
	var consumed *types.ReturnConsumedCapacity
	image := types.ReturnValueAllOld
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		c := *in
		q.input, values, failed, consumed = &c, &c.ReturnValues, &c.ReturnValuesOnConditionCheckFailure, &c.ReturnConsumedCapacity
	case *dynamodb.UpdateItemInput:
		c := *in
		// The old image is in the shadow; only the server knows what an expression makes of it.
		image = types.ReturnValueAllNew
		q.input, values, failed, consumed = &c, &c.ReturnValues, &c.ReturnValuesOnConditionCheckFailure, &c.ReturnConsumedCapacity
	case *dynamodb.DeleteItemInput:
		c := *in
		q.input, values, failed, consumed = &c, &c.ReturnValues, &c.ReturnValuesOnConditionCheckFailure, &c.ReturnConsumedCapacity
	case *dynamodb.GetItemInput:
		c := *in
		q.input, consumed = &c, &c.ReturnConsumedCapacity
	case *dynamodb.QueryInput:
		c := *in
		q.input, consumed = &c, &c.ReturnConsumedCapacity
	case *dynamodb.BatchGetItemInput:
		c := *in
		q.input, consumed = &c, &c.ReturnConsumedCapacity
	}
	if values != nil && (*values == "" || *values == types.ReturnValueNone) {
		*values, q.hideImage = image, true
	}
	if failed != nil && *failed != types.ReturnValuesOnConditionCheckFailureAllOld {
		*failed, q.hideFailed = types.ReturnValuesOnConditionCheckFailureAllOld, true
	}
	if consumed != nil && m.check {
		*consumed = types.ReturnConsumedCapacityIndexes
	}
	return q
}

// hide takes out of an answer what the caller did not ask for.
func (q question) hide(output any, err error) {
	var failed *types.ConditionalCheckFailedException
	if q.hideFailed && errors.As(err, &failed) {
		failed.Item = nil
	}
	if !q.hideImage {
		return
	}
	switch out := output.(type) {
	case *dynamodb.PutItemOutput:
		out.Attributes = nil
	case *dynamodb.UpdateItemOutput:
		out.Attributes = nil
	case *dynamodb.DeleteItemOutput:
		out.Attributes = nil
	}
}

// dynamo works out what a request to DynamoDB cost, and keeps the shadow.
func (m *Meter) dynamo(input, output any, err error) Entry {
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		w := write{table: in.TableName, key: in.Item, tried: in.Item, replaces: true}
		if out, ok := output.(*dynamodb.PutItemOutput); ok && err == nil {
			w.after, w.reported = in.Item, out.ConsumedCapacity
		}
		return m.write(w, err)
	case *dynamodb.UpdateItemInput:
		w := write{table: in.TableName, key: in.Key, tried: in.ExpressionAttributeValues}
		if out, ok := output.(*dynamodb.UpdateItemOutput); ok && err == nil {
			w.after, w.reported = out.Attributes, out.ConsumedCapacity
			w.partial = in.ReturnValues != types.ReturnValueAllNew
		}
		return m.write(w, err)
	case *dynamodb.DeleteItemInput:
		w := write{table: in.TableName, key: in.Key, replaces: true}
		if out, ok := output.(*dynamodb.DeleteItemOutput); ok && err == nil {
			w.reported = out.ConsumedCapacity
		}
		return m.write(w, err)
	case *dynamodb.TransactWriteItemsInput:
		return m.transact(in, err)
	}
	if err != nil {
		return unread(err)
	}
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		return m.get(in, output.(*dynamodb.GetItemOutput))
	case *dynamodb.QueryInput:
		return m.query(in, output.(*dynamodb.QueryOutput))
	case *dynamodb.BatchGetItemInput:
		return m.batchGet(in, output.(*dynamodb.BatchGetItemOutput))
	case *dynamodb.CreateTableInput, *dynamodb.DescribeTableInput, *dynamodb.DeleteTableInput, *dynamodb.UpdateTimeToLiveInput:
		return Entry{}
	default:
		return Entry{Doubt: fmt.Sprintf("the meter has no rule for a %T", input)}
	}
}

// unread is a read that gave nothing: refused ones are free.
func unread(err error) Entry {
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorFault() == smithy.FaultClient {
		return Entry{}
	}
	return Entry{Doubt: "no answer: " + err.Error()}
}

// write is a request that changes an item.
type write struct {
	table *string
	key   item
	// tried are the values that the request carries; replaces says that they are the whole item.
	tried    item
	replaces bool
	// after is the item as it is now; partial: the answer shows less than that.
	after    item
	partial  bool
	reported *types.ConsumedCapacity
}

func (m *Meter) write(w write, err error) Entry {
	t, known := m.tables[aws.ToString(w.table)]
	id, whole := t.id(w.key)
	if !known || !whole {
		return Entry{Doubt: fmt.Sprintf("the meter does not know table %s", aws.ToString(w.table))}
	}
	before := m.shadow[id]
	var failed *types.ConditionalCheckFailedException
	var refused smithy.APIError
	switch {
	case errors.As(err, &failed):
		return m.failed(w, id, failed)
	case err != nil && errors.As(err, &refused) && refused.ErrorFault() == smithy.FaultClient:
		return Entry{} // Neither done nor paid for.
	case err != nil:
		delete(m.shadow, id)
		return Entry{Doubt: "no answer: " + err.Error()}
	case w.partial:
		delete(m.shadow, id)
		return Entry{Doubt: "the caller asked for other values, which hide what the item has become"}
	}
	e := Entry{Reported: w.reported}
	e.Table, e.Indexes = t.write(before, w.after)
	m.keep(id, w.after)
	return e
}

// failed is a condition that was not met, which costs the table as the item that is there, or that was to be
// there, whichever is larger. Of an update nobody but DynamoDB knows what it would have made; as if all of its
// values came on top is at most too much.
func (m *Meter) failed(w write, id string, failed *types.ConditionalCheckFailedException) Entry {
	have := failed.Item
	m.keep(id, have)
	tried := sizeOf(w.tried)
	if !w.replaces {
		tried += sizeOf(have)
	}
	return Entry{Table: unitsOf(max(sizeOf(have), tried), writeUnit), Failed: true}
}

func (m *Meter) keep(id string, it item) {
	if len(it) == 0 {
		delete(m.shadow, id)
		return
	}
	m.shadow[id] = it
}

func (m *Meter) get(in *dynamodb.GetItemInput, out *dynamodb.GetItemOutput) Entry {
	e := Entry{Reported: out.ConsumedCapacity}
	size, ok := m.sizeRead(in.TableName, out.Item, in.ProjectionExpression != nil)
	if !ok {
		e.Doubt = "a projection hides the size of an item that the meter has not seen"
	}
	e.Read = readUnits(size, in.ConsistentRead)
	return e
}

// query costs as the sum of what it went through.
func (m *Meter) query(in *dynamodb.QueryInput, out *dynamodb.QueryOutput) Entry {
	e := Entry{Reported: out.ConsumedCapacity}
	if in.FilterExpression != nil || in.Select == types.SelectCount {
		e.Doubt = "the answer hides what the query went through"
	}
	sum := 0
	for _, it := range out.Items {
		size, ok := m.sizeInQuery(in, it)
		if !ok {
			e.Doubt = "a projection hides the size of an item that the meter has not seen"
		}
		sum += size
	}
	e.Read = readUnits(sum, in.ConsistentRead)
	return e
}

func (m *Meter) sizeInQuery(in *dynamodb.QueryInput, it item) (int, bool) {
	if in.IndexName == nil {
		return m.sizeRead(in.TableName, it, in.ProjectionExpression != nil)
	}
	t := m.tables[aws.ToString(in.TableName)]
	i, known := t.index(aws.ToString(in.IndexName))
	if !known || in.ProjectionExpression == nil {
		return sizeOf(it), known
	}
	id, whole := t.id(it)
	have, seen := m.shadow[id]
	return sizeOf(i.entry(have)), whole && seen
}

// sizeRead is the size of an item of which a read shows it, or a part; then what the meter has seen of it counts.
func (m *Meter) sizeRead(table *string, it item, part bool) (int, bool) {
	if !part || len(it) == 0 {
		return sizeOf(it), true
	}
	id, whole := m.tables[aws.ToString(table)].id(it)
	have, seen := m.shadow[id]
	return sizeOf(have), whole && seen
}

// batchGet costs as each of its reads would.
func (m *Meter) batchGet(in *dynamodb.BatchGetItemInput, out *dynamodb.BatchGetItemOutput) Entry {
	var e Entry
	if len(out.ConsumedCapacity) == 1 {
		e.Reported = &out.ConsumedCapacity[0]
	}
	for name, ask := range in.RequestItems {
		found := out.Responses[name]
		missing := len(ask.Keys) - len(found) - len(out.UnprocessedKeys[name].Keys)
		for _, it := range slices.Concat(found, make([]item, max(0, missing))) {
			size, ok := m.sizeRead(&name, it, ask.ProjectionExpression != nil)
			if !ok {
				e.Doubt = "a projection hides the size of an item that the meter has not seen"
			}
			e.Read += readUnits(size, ask.ConsistentRead)
		}
	}
	return e
}
