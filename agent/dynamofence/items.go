package dynamofence

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/fenced"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
)

// The attributes of an effect's item, beside its keys and when it expires.
const (
	attrState    = "State"
	attrOutput   = "Output"
	attrAttempt  = "Attempt"
	attrLockedBy = "LockedBy"
	attrAt       = "At"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// key is the key of an effect's item. A job's id may be used again after the job has expired, so its birth is part of
// the key.
func (f *Fence) key(key, birth string) item {
	it := item{f.config.Key: text("effect#" + key + "#" + birth)}
	if f.config.Sort != "" {
		it[f.config.Sort] = text(sortEffect)
	}
	return it
}

// check is the check of a task's claim; none, where it has no claim in a table.
func (f *Fence) check(task makegood.Task) []types.TransactWriteItem {
	if task.Claim.Table == "" {
		return nil
	}
	slot := store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
	return []types.TransactWriteItem{dynamostore.HoldsCheck(task.Claim.Table, slot, task.Attempt, task.Claim.LockedBy)}
}

// put is an effect's item, put if there is none.
func (f *Fence) put(task makegood.Task, key string, is fenced.State, output []byte) types.TransactWriteItem {
	it := f.key(key, task.Birth)
	it[attrState], it[attrOutput] = text(string(is)), text(string(output))
	for name, value := range f.by(task) {
		it[name] = value
	}
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &f.config.Effects, Item: it,
		ConditionExpression: aws.String("attribute_not_exists(#key)"), ExpressionAttributeNames: map[string]string{"#key": f.config.Key},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// by returns the attributes that record the writer of an item, and the time until which it is kept.
func (f *Fence) by(task makegood.Task) item {
	now := f.config.Now()
	it := item{
		attrAttempt: number(int64(task.Attempt)), attrLockedBy: text(task.Claim.LockedBy), attrAt: number(now.UnixMilli()),
	}
	if f.config.Keep > 0 {
		it[f.config.ExpiresAt] = number(now.Add(f.config.Keep).Unix() + 1)
	}
	return it
}

// undoItems are the fence's items of an undo, of the effect under a key that was found so.
func (f *Fence) undoItems(task makegood.Task, key string, found fenced.State) ([]types.TransactWriteItem, error) {
	if task.Claim.Table == "" && !f.config.Unclaimed {
		return nil, unclaimed(task)
	}
	if found == fenced.None {
		return append(f.check(task), f.put(task, key, fenced.Refused, []byte("null"))), nil
	}
	set, names, values := "SET #state = :undone", map[string]string{"#state": attrState}, item{
		":undone": text(string(fenced.Undone)), ":done": text(string(fenced.Done)),
	}
	for name, value := range f.by(task) {
		set += fmt.Sprintf(", #%s = :%s", name, name)
		names["#"+name], values[":"+name] = name, value
	}
	return append(f.check(task), types.TransactWriteItem{Update: &types.Update{
		TableName: &f.config.Effects, Key: f.key(key, task.Birth), UpdateExpression: &set,
		ConditionExpression: aws.String("#state = :done"), ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}), nil
}

// found is an effect as it lies in the table.
type found struct {
	Effect
	state fenced.State
}

// read reads an effect's item; an empty one means that there is none.
func read(it item) found {
	if len(it) == 0 {
		return found{}
	}
	return found{
		state: fenced.State(asText(it[attrState])),
		Effect: Effect{
			Output: json.RawMessage(asText(it[attrOutput])), Attempt: int(asInt(it[attrAttempt])), LockedBy: asText(it[attrLockedBy]),
			At: time.UnixMilli(asInt(it[attrAt])).UTC(),
		},
	}
}

// answers returns a stored effect as the answer to an attempt of its step. Before stays false if this attempt wrote
// it itself, and the answer was lost.
func (s found) answers(task makegood.Task) (Effect, error) {
	if s.state != fenced.Done {
		return Effect{}, agent.Final(agent.NotApplied(fmt.Errorf("%s: %w", task.Key, ErrUndone)))
	}
	s.Before = s.Attempt != task.Attempt || s.LockedBy != task.Claim.LockedBy
	return s.Effect, nil
}

// look reads an effect's item, strongly consistent.
func (f *Fence) look(ctx context.Context, key, birth string) (found, error) {
	out, err := f.config.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &f.config.Effects, Key: f.key(key, birth), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return found{}, err
	}
	return read(out.Item), nil
}

func asText(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func asInt(v types.AttributeValue) int64 {
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
