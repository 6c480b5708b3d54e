package dynamotx_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client/dynamotx"
)

// An order and its job are there together, or neither is. It is compiled and not run: it needs the table of a stack.
func Example() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	db := dynamodb.NewFromConfig(cfg)
	submitter, err := dynamotx.New(dynamotx.Config{Client: db, Table: "makegood-jobs", Retention: 30 * 24 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	items, err := submitter.Items(ctx, makegood.Submission{Workflow: "order", ID: "o-1", Input: json.RawMessage(`{"id":"o-1"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	order := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "order#o-1"}}
	items = append(items, types.TransactWriteItem{Put: &types.Put{TableName: aws.String("orders"), Item: order}})
	_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	fmt.Println(dynamotx.Refused(err, "o-1"))
}
