//go:build aws && linux

package fence

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/e2e/processes"
	"github.com/makegood-dev/makegood/lab/testkit/lambdahost"
)

const (
	transfers = 12
	badEvery  = 4
	// kills and zombies are how many processes of the bank are killed, and stopped until their attempts were given up.
	kills, zombies = 8, 2
	// sleeps is how long zombies do at least: longer than their step's timeout and the next sweep.
	sleeps = 5 * time.Second
	// patience bounds what should be done long before.
	patience = 3 * time.Minute
)

func open(t *testing.T) *processes.Stack {
	t.Helper()
	stack, err := processes.Open(t.Context(), processes.Config{
		DynamoDB: standin.DynamoDB(t).Endpoint, SQS: standin.SQS(t).Endpoint, Agents: []string{"bank", "notary"},
		Tables: []*dynamodb.CreateTableInput{{
			TableName: aws.String(accounts), BillingMode: types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
		}},
	})
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return stack
}

// trouble kills processes of the bank that are at work, and lets others sleep until nobody waits for them, until ctx ends or there
// were enough. It returns how many were killed, and how many woke.
func trouble(ctx context.Context, bank *lambdahost.Function, random *rand.Rand) (killed, woken int) {
	var sleeping sync.WaitGroup
	var woke atomic.Int64
	for stopped := 0; (killed < kills || stopped < zombies) && ctx.Err() == nil; {
		time.Sleep(time.Duration(50+random.IntN(100)) * time.Millisecond)
		if stopped < zombies && killed >= 2*stopped {
			if bank.Signal(syscall.SIGSTOP, random.IntN) {
				stopped++
				sleeping.Go(func() {
					time.Sleep(sleeps)
					woke.Add(int64(bank.Wake()))
				})
			}
			continue
		}
		if bank.Signal(syscall.SIGKILL, random.IntN) {
			killed++
		}
	}
	sleeping.Wait()
	return killed, int(woke.Load())
}

// The processes of an agent are killed at any moment, and stopped until their attempts were given up, and then woken: each line
// of a transfer that was done is there once, and what was undone comes to nothing.
func TestHoweverOftenItIsKilledEachEffectIsThereOnce(t *testing.T) {
	stack := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var troubled sync.WaitGroup
	var killed, woken int
	troubled.Go(func() { killed, woken = trouble(ctx, stack.Functions["bank"], rand.New(rand.NewPCG(seed.Of(t), 0))) })
	for n := range transfers {
		input, err := json.Marshal(transferOf(n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stack.Client.Submit(ctx, makegood.Submission{Workflow: "transfer", ID: fmt.Sprint("t-", n), Input: input}); err != nil {
			t.Fatalf("%v\n%s", err, stack.Said())
		}
	}
	attempts := 0
	for n := range transfers {
		attempts += compare(ctx, t, stack, n)
	}
	troubled.Wait()
	if t.Failed() {
		t.Log(stack.Said())
	}
	if killed == 0 || woken == 0 || attempts <= 2*transfers {
		t.Errorf("%d processes were killed and %d woken in %d attempts: too few to show anything", killed, woken, attempts)
	}
	t.Logf("%d processes were killed and %d woken: %d transfers in %d attempts", killed, woken, transfers, attempts)
	sum := 0
	for n := range 7 {
		sum += number(t, stack, fmt.Sprint("a", n), "Cents")
	}
	if sum != 0 {
		t.Errorf("the accounts come to %d, want 0", sum)
	}
}

func transferOf(n int) transfer {
	return transfer{From: fmt.Sprint("a", n%7), To: fmt.Sprint("a", (n+1)%7), Cents: 1 + n, Bad: n%badEvery == badEvery-1}
}

// compare compares a job with its lines, and returns how many attempts these took.
func compare(ctx context.Context, t *testing.T, stack *processes.Stack, n int) (attempts int) {
	t.Helper()
	id := fmt.Sprint("t-", n)
	job, err := stack.Client.Wait(ctx, id)
	if err != nil {
		t.Fatalf("job %s: %v\n%s", id, err, stack.Said())
	}
	want := makegood.JobProcessed
	if transferOf(n).Bad {
		want = makegood.JobUndone
	}
	if job.ProcessState != want {
		t.Errorf("job %s is %s (%s), want %s", id, job.ProcessState, job.Reason, want)
	}
	for _, step := range job.Steps[:2] {
		attempts += step.Attempt
		booked, cancelled := number(t, stack, lineOf(id, step.Name), "Booked"), number(t, stack, lineOf(id, step.Name), "Cancelled")
		if undone := map[bool]int{true: 1}[transferOf(n).Bad]; booked != 1 || cancelled != undone {
			t.Errorf("step %s of %s, which is %s, is booked %d times and cancelled %d, want 1 and %d", step.Name, id, job.ProcessState, booked, cancelled, undone)
		}
	}
	return attempts
}

// number is one of the bank's table; 0: it is not there.
func number(t *testing.T, stack *processes.Stack, key, attribute string) int {
	t.Helper()
	out, err := stack.DB.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(stack.Prefix + accounts), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, is := out.Item[attribute].(*types.AttributeValueMemberN)
	if !is {
		return 0
	}
	got, err := strconv.Atoi(n.Value)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
