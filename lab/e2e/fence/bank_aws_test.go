//go:build aws && linux

// Package fence holds the fence to its word on a stack whose processes are killed and stopped.
package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/dynamofence"
	"github.com/makegood-dev/makegood/lab/e2e/processes"
)

// workflows is a transfer, of which some are not signed and undone. Whoever is killed is silent, and given up soon: startBy is
// short, since nobody is looked for before it has passed.
var workflows = fstest.MapFS{"transfer.yaml": {Data: []byte(`
name: transfer
steps:
  - name: debit
    agent: bank
    action: book
    with: {account: "${ .input.from }", cents: "${ -.input.cents }"}
    timeout: 2s
    startBy: 2s
    retry: {attempts: 40, backoff: 100ms, max: 200ms}
    undo: {action: cancel, timeout: 2s, startBy: 2s, retry: {attempts: 40, backoff: 100ms, max: 200ms}}
  - name: credit
    agent: bank
    action: book
    with: {account: "${ .input.to }", cents: "${ .input.cents }"}
    timeout: 2s
    startBy: 2s
    retry: {attempts: 40, backoff: 100ms, max: 200ms}
    undo: {action: cancel, timeout: 2s, startBy: 2s, retry: {attempts: 40, backoff: 100ms, max: 200ms}}
  - {name: sign, agent: notary}
`)}}

// accounts is the bank's own table, under the stack's prefix.
const accounts = "accounts"

// transfer is the input of a job, and line what is written of it.
type transfer struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Cents int    `json:"cents"`
	// Bad: nobody signs it.
	Bad bool `json:"bad,omitempty"`
}

type line struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

// bank writes in its table, and nothing there but the fence keeps it from writing twice: all of it adds.
type bank struct {
	table string
	fence *dynamofence.Fence
}

func (b bank) adds(key, attribute string, n int) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &b.table, Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: key}},
		UpdateExpression: aws.String("ADD " + attribute + " :n"), ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: strconv.Itoa(n)}},
	}}
}

func (b bank) book(ctx context.Context, in line) (line, error) {
	task := agent.TaskOf(ctx)
	dawdle()
	defer dawdle()
	// Not ended by its timeout: so that who was stopped, and is woken, asks all the same.
	ctx = context.WithoutCancel(ctx)
	return dynamofence.Do(ctx, b.fence, []types.TransactWriteItem{b.adds(in.Account, "Cents", in.Cents), b.adds(lineOf(task.Job, task.Step), "Booked", 1)}, in)
}

func (b bank) cancel(ctx context.Context, _ line, _ *line) error {
	task := agent.TaskOf(ctx)
	dawdle()
	defer dawdle()
	return dynamofence.Undo(ctx, b.fence, func(done line) ([]types.TransactWriteItem, error) {
		return []types.TransactWriteItem{b.adds(done.Account, "Cents", -done.Cents), b.adds(lineOf(task.Job, task.Step), "Cancelled", 1)}, nil
	})
}

// dawdle gives a kill the time to come before or after the transaction.
func dawdle() { time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond) }

func lineOf(job, step string) string { return fmt.Sprintf("line#%s/%s", job, step) }

func sign(_ context.Context, t transfer) (string, error) {
	if t.Bad {
		return "", agent.NotApplied(agent.Final(errors.New("nobody signs this")))
	}
	return "signed", nil
}

// agents are those of a function's process, which knows by its environment where the tables are.
func agents() []agent.Handler {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		panic(err)
	}
	b := bank{table: os.Getenv(processes.PrefixVariable) + accounts}
	if b.fence, err = dynamofence.New(dynamofence.Config{Client: dynamodb.NewFromConfig(c), Effects: b.table}); err != nil {
		panic(err)
	}
	return []agent.Handler{
		agent.New("bank", agent.Do("book", b.book).Undo("cancel", b.cancel)),
		agent.New("notary", agent.Do("sign", sign)),
	}
}

// The test's own program is the functions.
func TestMain(m *testing.M) {
	processes.Serve(workflows, agents()...)
	os.Exit(m.Run())
}
