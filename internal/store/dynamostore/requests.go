package dynamostore

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/store"
)

// update collects an UpdateItem. Every name has an alias: Data and others are reserved words.
type update struct {
	sets, removes, conditions []string
	names                     map[string]string
	values                    item
}

func newUpdate() *update { return &update{names: map[string]string{}, values: item{}} }

// attr returns the alias of an attribute.
func (u *update) attr(name string) string {
	u.names["#"+name] = name
	return "#" + name
}

// value returns the alias of a value.
func (u *update) value(alias string, v types.AttributeValue) string {
	u.values[":"+alias] = v
	return ":" + alias
}

// set sets the value at path, which is an alias.
func (u *update) set(path, alias string, v types.AttributeValue) {
	u.sets = append(u.sets, path+" = "+u.value(alias, v))
}

// raise adds one to a number, which is 0 if it is not there.
func (u *update) raise(path string) {
	u.sets = append(u.sets, path+" = if_not_exists("+path+", "+u.value("zero", number(0))+") + "+u.value("one", number(1)))
}

func (u *update) remove(path string) { u.removes = append(u.removes, path) }

func (u *update) when(condition string) { u.conditions = append(u.conditions, condition) }

func (u *update) condition() string { return strings.Join(u.conditions, " AND ") }

func (u *update) expression() string {
	var clauses []string
	if len(u.sets) > 0 {
		clauses = append(clauses, "SET "+strings.Join(u.sets, ", "))
	}
	if len(u.removes) > 0 {
		clauses = append(clauses, "REMOVE "+strings.Join(u.removes, ", "))
	}
	return strings.Join(clauses, " ")
}

// update makes one conditional write on an item. With errCondition it returns the item as it was before.
func (s *Store) update(ctx context.Context, operation string, key item, u *update) (item, error) {
	it, err := s.updateGiving(ctx, operation, key, u, types.ReturnValueNone)
	if err == nil {
		hasWritten(ctx, sizeOf(key)+sizeOf(u.values)) // The item has little else.
	}
	return it, err
}

// updateGiving does what update does, and returns the attributes that giving asks for of the written item. Its caller
// must count the cost.
func (s *Store) updateGiving(ctx context.Context, operation string, key item, u *update, giving types.ReturnValue) (item, error) {
	values := u.values
	if len(values) == 0 {
		values = nil // An empty map is refused.
	}
	out, err := s.config.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.config.Table, Key: key,
		UpdateExpression: aws.String(u.expression()), ConditionExpression: aws.String(u.condition()),
		ExpressionAttributeNames: u.names, ExpressionAttributeValues: values,
		ReturnValues: giving, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity: s.returnConsumed(),
	}, s.options)
	if err != nil {
		old, err := s.whyNot(ctx, key, err)
		if errors.Is(err, errCondition) {
			hasWritten(ctx, sizeOf(old))
		}
		return old, err
	}
	s.consumed(operation, out.ConsumedCapacity)
	return out.Attributes, nil
}

// put writes a whole item if the condition holds, which may be over values; with errCondition it returns
// the item that is there.
func (s *Store) put(ctx context.Context, operation string, it item, condition string, values item) (item, error) {
	old, err := s.putUncounted(ctx, operation, it, condition, values)
	if err == nil {
		hasWritten(ctx, sizeOf(it))
	}
	return old, err
}

// putUncounted does what put does. Its caller must count the cost of the write.
func (s *Store) putUncounted(ctx context.Context, operation string, it item, condition string, values item) (item, error) {
	in := &dynamodb.PutItemInput{
		TableName: &s.config.Table, Item: it, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              s.returnConsumed(),
	}
	if condition != "" {
		in.ConditionExpression = aws.String(condition)
	}
	out, err := s.config.Client.PutItem(ctx, in, s.options)
	if err != nil {
		old, err := s.whyNot(ctx, keyItem(asText(it[attrPK]), asText(it[attrSK])), err)
		if errors.Is(err, errCondition) {
			hasWritten(ctx, max(sizeOf(old), sizeOf(it)))
		}
		return old, err
	}
	s.consumed(operation, out.ConsumedCapacity)
	return nil, nil
}

// remove deletes an item if the condition holds; with errCondition it returns the item that is there.
func (s *Store) remove(ctx context.Context, operation string, key item, condition string, values item) (old item, err error) {
	out, err := s.config.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &s.config.Table, Key: key, ConditionExpression: &condition, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity:              s.returnConsumed(),
	}, s.options)
	if err == nil {
		s.consumed(operation, out.ConsumedCapacity)
	} else {
		old, err = s.whyNot(ctx, key, err)
	}
	if err == nil || errors.Is(err, errCondition) {
		hasWritten(ctx, sizeOf(old)) // Empty after a deletion: the items that jobs delete are within a unit.
	}
	return old, err
}

// get reads an item, strongly consistent; store.ErrNotFound.
func (s *Store) get(ctx context.Context, operation string, key item) (item, error) {
	out, err := s.config.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.config.Table, Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.returnConsumed(),
	}, s.options)
	if err != nil {
		return nil, err
	}
	s.consumed(operation, out.ConsumedCapacity)
	hasRead(ctx, out.Item)
	if len(out.Item) == 0 {
		return nil, store.ErrNotFound
	}
	return out.Item, nil
}
