package dynamofence_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/dynamofence"
)

type transfer struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

// adds is the item that adds cents to an account that is there.
func adds(account string, cents int64) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: account}},
		UpdateExpression: aws.String("ADD Cents :cents"), ConditionExpression: aws.String("attribute_exists(PK)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":cents": &types.AttributeValueMemberN{Value: strconv.FormatInt(cents, 10)}},
	}}
}

// An agent that adds to accounts, each task once, whatever dies on the way. In a function: onlambda.Agent(accounts(fence)).
func accounts(fence *dynamofence.Fence) *agent.Agent {
	book := func(ctx context.Context, in transfer) (transfer, error) {
		out, err := dynamofence.Do(ctx, fence, []types.TransactWriteItem{adds(in.Account, in.Cents)}, in)
		if refused := new(dynamofence.RefusedError); errors.As(err, &refused) && refused.Code == "ConditionalCheckFailed" {
			return out, agent.Kind("no_account", agent.Final(err))
		}
		return out, err
	}
	cancel := func(ctx context.Context, _ transfer, _ *transfer) error {
		return dynamofence.Undo(ctx, fence, func(done transfer) ([]types.TransactWriteItem, error) {
			return []types.TransactWriteItem{adds(done.Account, -done.Cents)}, nil
		})
	}
	return agent.New("accounts", agent.Do("book", book).Undo("cancel", cancel))
}

func Example() {
	fence, err := dynamofence.New(dynamofence.Config{Client: dynamodb.New(dynamodb.Options{Region: "eu-central-1"}), Effects: "accounts"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(accounts(fence).Actions())
	// Output: [book cancel]
}
