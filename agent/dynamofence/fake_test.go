package dynamofence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
)

type item = map[string]types.AttributeValue

var errLost = errors.New("the answer was lost")

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// tables is a DynamoDB that knows the few expressions of these tests and of the fence; those of lab/e2e are asked of stand-ins.
type tables struct {
	mu     sync.Mutex
	items  map[string]item
	tokens map[string]bool
	// asked are the tokens of all transactions that came.
	asked []string
	// before and after say what befalls the n-th transaction: an error in place of it, or in place of its answer.
	before, after func(n int) error
	// reads is how many items were read, and unreadable what is answered in place of one.
	reads      int
	unreadable error
}

func newTables() *tables {
	return &tables{items: map[string]item{}, tokens: map[string]bool{}}
}

func at(table *string, key item) string {
	return aws.ToString(table) + " " + asText(key["PK"]) + " " + asText(key["SK"])
}

func asText(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// claim lays the claim of a task, and lose closes it.
func (d *tables) claim(task makegood.Task) {
	d.items[slot(task)] = item{"Attempt": &types.AttributeValueMemberN{Value: strconv.Itoa(task.Attempt)}, "LockedBy": text(task.Claim.LockedBy)}
}

func (d *tables) lose(task makegood.Task) { d.items[slot(task)]["Closed"] = text("silent") }

func slot(task makegood.Task) string {
	return task.Claim.Table + " claim#" + task.Agent + "#" + task.Job + " " + task.Birth + "#" + task.Step
}

func (d *tables) count(table string) (n int) {
	for key := range d.items {
		if len(key) > len(table) && key[:len(table)+1] == table+" " {
			n++
		}
	}
	return n
}

func (d *tables) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !aws.ToBool(in.ConsistentRead) {
		return nil, errors.New("the read is not consistent")
	}
	if d.reads++; d.unreadable != nil {
		return nil, d.unreadable
	}
	return &dynamodb.GetItemOutput{Item: d.items[at(in.TableName, in.Key)]}, nil
}

func (d *tables) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, aws.ToString(in.ClientRequestToken))
	n := len(d.asked)
	if d.before != nil {
		if err := d.before(n); err != nil {
			return nil, err
		}
	}
	err := d.write(in)
	if d.after != nil {
		if lost := d.after(n); lost != nil {
			return nil, lost
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, err
}

func (d *tables) write(in *dynamodb.TransactWriteItemsInput) error {
	if d.tokens[*in.ClientRequestToken] {
		return nil
	}
	var reasons []types.CancellationReason
	refused := false
	for _, it := range in.TransactItems {
		reason := d.refuses(it)
		refused = refused || reason.Code != nil
		reasons = append(reasons, reason)
	}
	if refused {
		return cancelled(reasons...)
	}
	for _, it := range in.TransactItems {
		switch {
		case it.Put != nil:
			d.items[at(it.Put.TableName, it.Put.Item)] = it.Put.Item
		case it.Update != nil:
			changed := maps.Clone(d.items[at(it.Update.TableName, it.Update.Key)])
			for set := range strings.SplitSeq(strings.TrimPrefix(*it.Update.UpdateExpression, "SET "), ", ") {
				name, value, _ := strings.Cut(set, " = ")
				changed[it.Update.ExpressionAttributeNames[name]] = it.Update.ExpressionAttributeValues[value]
			}
			d.items[at(it.Update.TableName, it.Update.Key)] = changed
		}
	}
	d.tokens[*in.ClientRequestToken] = true
	return nil
}

func (d *tables) refuses(it types.TransactWriteItem) types.CancellationReason {
	var there item
	var holds bool
	switch {
	case it.Put != nil:
		there = d.items[at(it.Put.TableName, it.Put.Item)]
		holds = it.Put.ConditionExpression == nil || there == nil
	case it.Update != nil:
		there = d.items[at(it.Update.TableName, it.Update.Key)]
		holds = it.Update.ConditionExpression == nil || asText(there["State"]) == asText(it.Update.ExpressionAttributeValues[":done"])
	case it.ConditionCheck != nil:
		there = d.items[at(it.ConditionCheck.TableName, it.ConditionCheck.Key)]
		values := it.ConditionCheck.ExpressionAttributeValues
		holds = asText(there["Attempt"]) == asText(values[":attempt"]) && asText(there["LockedBy"]) == asText(values[":me"]) && there["Closed"] == nil
	}
	if holds {
		return types.CancellationReason{}
	}
	return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: there}
}

// cancelled is what DynamoDB answers to a transaction that it has cancelled.
func cancelled(reasons ...types.CancellationReason) error {
	return &types.TransactionCanceledException{Message: aws.String(fmt.Sprint(len(reasons), " reasons")), CancellationReasons: reasons}
}

func because(codes ...string) error {
	var reasons []types.CancellationReason
	for _, code := range codes {
		reasons = append(reasons, types.CancellationReason{Code: aws.String(code)})
	}
	return cancelled(reasons...)
}
