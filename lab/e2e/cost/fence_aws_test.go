//go:build aws

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent/dynamofence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

// What a write of an agent's own costs without a fence and with it, by the same meter as the table of steps, as docs/cost.md
// says it.
func TestWhatAWriteCostsBeforeAndWithTheFence(t *testing.T) {
	name := "fence" + strings.ToLower(rand.Text()[:10])
	own := aws.String(name + "-accounts")
	tables := []*dynamodb.CreateTableInput{dynamostore.Schema(name+"-jobs", "due"), {
		TableName: own, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
	}}
	meter := costmeter.New(costmeter.Config{Tables: tables})
	config := standin.Config(standin.DynamoDB(t).Endpoint)
	meter.Watch(&config)
	db := dynamodb.NewFromConfig(config)
	for _, table := range tables {
		if err := standin.CreateTable(t.Context(), db, table); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := dynamostore.New(dynamostore.Config{Client: db, Table: name + "-jobs", Index: "due"})
	if err != nil {
		t.Fatal(err)
	}
	fence, err := dynamofence.New(dynamofence.Config{Client: db, Effects: *own})
	if err != nil {
		t.Fatal(err)
	}
	put := &types.Put{TableName: own, Item: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "a"}}}
	items := []types.TransactWriteItem{{Put: put}}
	// claimed returns the context of an attempt that holds its claim.
	claimed := func(task makegood.Task) context.Context {
		now := time.Now()
		slot := store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
		claim := job.Claim{Attempt: task.Attempt, LockedBy: task.Claim.LockedBy, StartedAt: now, CompleteBy: now.Add(time.Minute)}
		if err := jobs.Claim(t.Context(), slot, claim, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return agentctx.NewContext(t.Context(), task, nil)
	}
	task := makegood.Task{Job: "j", Birth: "b", Step: "pay", Agent: "bank", Round: 1, Attempt: 1, Key: "j/pay/1", Claim: makegood.TaskClaim{LockedBy: "i:1", Table: name + "-jobs"}}
	undo := task
	undo.Attempt, undo.Key, undo.Undo = 2, "j/pay/1/undo", &makegood.UndoTask{ForwardKey: task.Key, Outcome: makegood.OutcomeDone}
	never := undo
	never.Job, never.Key, never.Undo = "k", "k/pay/1/undo", &makegood.UndoTask{ForwardKey: "k/pay/1", Outcome: makegood.OutcomeUnknown}
	undone := func(task makegood.Task) func() error {
		ctx := claimed(task)
		return func() error {
			_, err := fence.TransactUndo(ctx, func(dynamofence.Effect) ([]types.TransactWriteItem, error) { return items, nil })
			return err
		}
	}
	var says strings.Builder
	says.WriteString("| one item of your own, below 1 KB | write units, all tables | read units |\n|---|---|---|\n")
	for _, row := range []struct {
		what string
		make func() func() error
	}{
		{"written without a fence", func() func() error {
			return func() error {
				_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: own, Item: put.Item})
				return err
			}
		}},
		{"with the fence", func() func() error {
			ctx := claimed(task)
			return func() error {
				_, err := fence.Transact(ctx, items, "done")
				return err
			}
		}},
		{"undone with the fence", func() func() error { return undone(undo) }},
		{"the undo of what never happened", func() func() error { return undone(never) }},
	} {
		do := row.make()
		meter.Take()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		entries := meter.Take()
		if err := sure(entries); err != nil {
			t.Fatalf("%s: %v", row.what, err)
		}
		took := costmeter.Sum(entries)
		fmt.Fprintf(&says, "| %s | %v | %v |\n", row.what, took.WriteUnits, took.ReadUnits)
	}
	if page := read(t, "docs/cost.md"); !strings.Contains(page, "\n\n"+says.String()) {
		t.Errorf("docs/cost.md should say\n%s", &says)
	}
}
