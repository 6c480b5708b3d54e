// Package probed is what make aws-verify tries under the role of each function, and what is to come of it. Nothing that
// is tried has an effect: writes have a condition that does not hold, and messages are about a job that nobody has
// submitted.
package probed

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// May says which of the probe's tries each role is allowed, in the order Scheduler, agent, Supervisor.
func May() map[string][3]bool {
	return map[string][3]bool{
		"read a job":                  {true, false, false},
		"write over a job":            {true, false, false},
		"write a job's state":         {true, false, false},
		"take a job out of the index": {true, false, false},
		"claim":                       {true, true, false},
		"put a claim anew":            {true, false, false},
		"heartbeat":                   {true, true, false},
		"read a claim":                {true, true, false},
		"put a claim into the index":  {true, false, false},
		"claim another agent's step":  {true, false, false},
		"end another agent's claim":   {true, false, false},
		"read another agent's claim":  {true, false, false},
		"take a lease":                {true, false, true},
		"delete a job":                {false, false, false},
		"scan the table":              {false, false, false},
		"look into the index":         {false, false, true},
		"send an event":               {true, true, true},
		"send a task":                 {true, false, false},
		"take events":                 {true, false, false},
	}
}

// prober tries things.
type prober struct {
	Stack
	ctx context.Context
	db  *dynamodb.Client
	mq  *sqs.Client
}

func (p prober) update(key map[string]types.AttributeValue, attributes ...string) func() error {
	return func() error {
		in := &dynamodb.UpdateItemInput{
			TableName: &p.Table, Key: key, ConditionExpression: aws.String("attribute_exists(PK)"), ExpressionAttributeNames: map[string]string{},
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": text("probe")},
		}
		var sets []string
		for _, name := range attributes {
			in.ExpressionAttributeNames["#"+name] = name
			sets = append(sets, "#"+name+" = :v")
		}
		in.UpdateExpression = aws.String("SET " + strings.Join(sets, ", "))
		_, err := p.db.UpdateItem(p.ctx, in)
		return err
	}
}

func (p prober) put(it map[string]types.AttributeValue) func() error {
	return func() error {
		_, err := p.db.PutItem(p.ctx, &dynamodb.PutItemInput{TableName: &p.Table, Item: it, ConditionExpression: aws.String("attribute_exists(PK)")})
		return err
	}
}

func (p prober) get(key map[string]types.AttributeValue) func() error {
	return func() error {
		_, err := p.db.GetItem(p.ctx, &dynamodb.GetItemInput{TableName: &p.Table, Key: key})
		return err
	}
}

func (p prober) send(url, body string) func() error {
	return func() error {
		_, err := p.mq.SendMessage(p.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
		return err
	}
}

// Probe tries everything.
func Probe(ctx context.Context, s Stack, db *dynamodb.Client, mq *sqs.Client) Answers {
	job, p := key("job#"+nobody, "job"), prober{s, ctx, db, mq}
	own, others := key(ownClaim, "b#s"), key(othersClaim, "b#s")
	return answered(map[string]func() error{
		"read a job":                  p.get(job),
		"write over a job":            p.put(job),
		"write a job's state":         p.update(job, "ProcessState"),
		"take a job out of the index": p.update(job, "CompleteBy"),
		"claim":                       p.update(own, claimed...),
		"put a claim anew":            p.put(claim(ownClaim)),
		"heartbeat":                   p.update(own, "CompleteBy"),
		"read a claim":                p.get(own),
		"put a claim into the index":  p.update(own, "Shard"),
		"claim another agent's step":  p.update(others, claimed...),
		"end another agent's claim":   p.update(others, "Closed"),
		"read another agent's claim":  p.get(others),
		"take a lease":                p.update(key("lease#"+nobody, "lease"), "Holder"),
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
		"send an event": p.send(s.EventsURL, s.EventBody),
		"send a task":   p.send(s.TasksURL, s.TaskBody),
		"take events": func() error {
			_, err := mq.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &s.EventsURL, VisibilityTimeout: 0})
			return err
		},
	})
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

// claimed are the attributes that a claim writes.
var claimed = []string{"Attempt", "LockedBy", "StartedAt", "CompleteBy", "ExpiresAt"}

// claim is a claim item, whole.
func claim(pk string) map[string]types.AttributeValue {
	it := key(pk, "b#s")
	for _, name := range claimed {
		it[name] = text("probe")
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
