// Command probe is a Lambda function that tries what its role may do and what it may not, for make aws-verify. It
// is deployed once under the role of each of our functions. Nothing that it tries has an effect: writes have a
// condition that does not hold, and messages are about a job that nobody has submitted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// nobody is a job that is not there.
const nobody = "makegood-verify-nobody"

// The agent whose role the probe has is inventory; payments is another.
const (
	ownClaim    = "claim#inventory#" + nobody
	othersClaim = "claim#payments#" + nobody
)

// Stack is the event: where the parts of the stack are, and harmless messages for its queues.
type Stack struct {
	Table, Index        string
	EventsURL, TasksURL string
	EventBody, TaskBody string
}

// Answers are what came of each try, by its name: allowed, denied, or the error.
type Answers map[string]string

func main() {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	lambda.Start(func(ctx context.Context, s Stack) (Answers, error) {
		return probe(ctx, s, dynamodb.NewFromConfig(c), sqs.NewFromConfig(c)), nil
	})
}

// probe tries everything.
func probe(ctx context.Context, s Stack, db *dynamodb.Client, mq *sqs.Client) Answers {
	job := key("job#"+nobody, "job")
	update := func(key map[string]types.AttributeValue, attribute string) func() error {
		return func() error {
			_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &s.Table, Key: key, UpdateExpression: aws.String("SET #a = :v"),
				ConditionExpression:       aws.String("attribute_exists(PK)"),
				ExpressionAttributeNames:  map[string]string{"#a": attribute},
				ExpressionAttributeValues: map[string]types.AttributeValue{":v": text("probe")},
			})
			return err
		}
	}
	put := func(it map[string]types.AttributeValue) func() error {
		return func() error {
			_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.Table, Item: it, ConditionExpression: aws.String("attribute_exists(PK)")})
			return err
		}
	}
	get := func(key map[string]types.AttributeValue) func() error {
		return func() error {
			_, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.Table, Key: key})
			return err
		}
	}
	send := func(url, body string) error {
		_, err := mq.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
		return err
	}
	tries := map[string]func() error{
		"read a job":                  get(job),
		"write over a job":            put(job),
		"write a job's state":         update(job, "ProcessState"),
		"take a job out of the index": update(job, "CompleteBy"),
		"claim":                       put(claim(ownClaim)),
		"heartbeat":                   update(key(ownClaim, "b#s"), "CompleteBy"),
		"read a claim":                get(key(ownClaim, "b#s")),
		"put a claim into the index":  update(key(ownClaim, "b#s"), "Shard"),
		"claim another agent's step":  put(claim(othersClaim)),
		"end another agent's claim":   update(key(othersClaim, "b#s"), "Closed"),
		"read another agent's claim":  get(key(othersClaim, "b#s")),
		"take a lease":                update(key("lease#"+nobody, "lease"), "Holder"),
		"delete a job": func() error {
			_, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.Table, Key: job, ConditionExpression: aws.String("attribute_exists(PK)")})
			return err
		},
		"scan the table": func() error {
			_, err := db.Scan(ctx, &dynamodb.ScanInput{TableName: &s.Table, Limit: aws.Int32(1)})
			return err
		},
		"look into the index": func() error {
			_, err := db.Query(ctx, &dynamodb.QueryInput{
				TableName: &s.Table, IndexName: &s.Index, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#s = :s"),
				ExpressionAttributeNames:  map[string]string{"#s": "Shard"},
				ExpressionAttributeValues: map[string]types.AttributeValue{":s": text("0")},
			})
			return err
		},
		"send an event": func() error { return send(s.EventsURL, s.EventBody) },
		"send a task":   func() error { return send(s.TasksURL, s.TaskBody) },
		"take events": func() error {
			_, err := mq.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &s.EventsURL, VisibilityTimeout: 0})
			return err
		},
	}
	return answered(tries)
}

// answered makes the tries.
func answered(tries map[string]func() error) Answers {
	answers := Answers{}
	for name, try := range tries {
		answers[name] = verdict(try())
	}
	return answers
}

func key(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"PK": text(pk), "SK": text(sk)}
}

// claim is a claim item as the code writes it.
func claim(pk string) map[string]types.AttributeValue {
	it := key(pk, "b#s")
	it["LockedBy"] = text("probe")
	for _, name := range []string{"Attempt", "StartedAt", "CompleteBy", "ExpiresAt"} {
		it[name] = &types.AttributeValueMemberN{Value: "1"}
	}
	return it
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// verdict reads an answer: whoever gets as far as a condition that does not hold, or a key that is not the
// index's, was allowed.
func verdict(err error) string {
	var answer smithy.APIError
	switch {
	case err == nil:
		return "allowed"
	case !errors.As(err, &answer):
		return err.Error()
	case strings.Contains(answer.ErrorCode(), "AccessDenied"):
		return "denied"
	case answer.ErrorCode() == "ConditionalCheckFailedException", answer.ErrorCode() == "ValidationException":
		return "allowed"
	default:
		return err.Error()
	}
}
