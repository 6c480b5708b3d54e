//go:build aws

package dynamofence_test

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/dynamofence"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
)

// stack is a stack's table with claims, and an account in a table of a user's, behind a network that loses answers.
type stack struct {
	t       *testing.T
	jobs    *dynamostore.Store
	client  *dynamodb.Client
	network *network
	fence   *dynamofence.Fence
	table   string
	own     string
}

// network loses the answers of transactions, which have been carried out.
type network struct {
	standin.WholeAnswers
	mu   sync.Mutex
	lose func() bool
}

func (n *network) Do(r *http.Request) (*http.Response, error) {
	response, err := n.WholeAnswers.Do(r)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") && n.lose != nil && n.lose() {
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, err
}

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, network: &network{}}
	config := standin.DynamoDB(t).Config(t)
	config.HTTPClient = s.network
	s.client = dynamodb.NewFromConfig(config)
	name := strings.ToLower(text12())
	s.table, s.own = "jobs-"+name, "accounts-"+name
	for _, in := range []*dynamodb.CreateTableInput{dynamostore.Schema(s.table, "due"), {
		TableName: &s.own, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
	}} {
		if err := standin.CreateTable(t.Context(), s.client, in); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = s.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: in.TableName})
		})
		wait := dynamodb.NewTableExistsWaiter(s.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second })
		if err := wait.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.jobs, err = dynamostore.New(dynamostore.Config{Client: s.client, Table: s.table, Index: "due", Shards: 3}); err != nil {
		t.Fatal(err)
	}
	if s.fence, err = dynamofence.New(dynamofence.Config{Client: s.client, Effects: s.own}); err != nil {
		t.Fatal(err)
	}
	return s
}

func text12() string { return cryptorand.Text()[:12] }

// task is an attempt of a job's one step.
func (s *stack) task(id string, attempt int) makegood.Task {
	return makegood.Task{
		Job: id, Birth: "b", Step: "pay", Agent: "bank", Round: 1, Attempt: attempt, Key: id + "/pay/1",
		Claim: makegood.TaskClaim{LockedBy: fmt.Sprintf("i:%d", attempt), Table: s.table},
	}
}

func (s *stack) undo(id string, attempt int, outcome makegood.Outcome) makegood.Task {
	task := s.task(id, attempt)
	task.Undo = &makegood.UndoTask{ForwardKey: task.Key, Outcome: outcome}
	task.Key += "/undo"
	return task
}

func (s *stack) holds(task makegood.Task) {
	s.t.Helper()
	now := time.Now()
	claim := job.Claim{Attempt: task.Attempt, LockedBy: task.Claim.LockedBy, StartedAt: now, CompleteBy: now.Add(time.Minute)}
	if err := s.jobs.Claim(s.t.Context(), slotOf(task), claim, now.Add(time.Hour)); err != nil {
		s.t.Fatal(err)
	}
}

func slotOf(task makegood.Task) store.Slot {
	return store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
}

// gives up an attempt, as a Scheduler does when its CompleteBy has passed.
func (s *stack) givesUp(task makegood.Task) {
	s.t.Helper()
	later := time.Now().Add(2 * time.Minute)
	found, err := s.jobs.Close(s.t.Context(), slotOf(task), store.Closing{Attempt: task.Attempt, Now: later, Until: later.Add(time.Hour)})
	if err != nil || found.Finding != job.FoundSilent {
		s.t.Fatalf("got %s, %v, want %s", found.Finding, err, job.FoundSilent)
	}
}

// adds is an item of the user's that is not there twice but by mistake: nothing but the fence keeps it from being added again.
func (s *stack) adds(account string, cents int) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.own, Key: item{"PK": text(account)}, UpdateExpression: aws.String("ADD Cents :cents"),
		ExpressionAttributeValues: item{":cents": &types.AttributeValueMemberN{Value: strconv.Itoa(cents)}},
	}}
}

func (s *stack) pay(task makegood.Task) (string, error) {
	return dynamofence.Do(in(task), s.fence, []types.TransactWriteItem{s.adds(task.Job, 5)}, fmt.Sprint("by ", task.Attempt))
}

func (s *stack) refund(task makegood.Task) error {
	return dynamofence.Undo(in(task), s.fence, func(string) ([]types.TransactWriteItem, error) {
		return []types.TransactWriteItem{s.adds(task.Job, -5)}, nil
	})
}

func (s *stack) want(account string, cents int) {
	s.t.Helper()
	out, err := s.client.GetItem(s.t.Context(), &dynamodb.GetItemInput{TableName: &s.own, Key: item{"PK": text(account)}, ConsistentRead: aws.Bool(true)})
	if err != nil {
		s.t.Fatal(err)
	}
	if got, _ := strconv.Atoi(asText(out.Item["Cents"])); got != cents {
		s.t.Errorf("account %s has %d, want %d", account, got, cents)
	}
}

// What the fake of the other tests answers, a stand-in answers, too.
func TestTheFenceOnAStandIn(t *testing.T) {
	s := newStack(t)
	if _, err := s.pay(s.task("a", 1)); !errors.Is(err, dynamofence.ErrLost) {
		t.Errorf("unclaimed: got %v, want ErrLost", err)
	}
	s.holds(s.task("a", 1))
	for range 2 {
		if got, err := s.pay(s.task("a", 1)); err != nil || got != "by 1" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	s.givesUp(s.task("a", 1))
	if _, err := s.pay(s.task("a", 1)); !errors.Is(err, dynamofence.ErrLost) || agent.Failure(err).Applied != makegood.AppliedNo {
		t.Errorf("given up: got %v, want ErrLost", err)
	}
	s.holds(s.task("a", 2))
	if got, err := s.pay(s.task("a", 2)); err != nil || got != "by 1" {
		t.Errorf("attempt 2: got %q, %v, want what 1 stored", got, err)
	}
	if done, was, err := s.fence.Stored(in(s.task("a", 2))); err != nil || !was || !done.Before || done.Attempt != 1 || done.At.IsZero() {
		t.Errorf("got %+v, %v, %v", done, was, err)
	}
	s.want("a", 5)
	for attempt := 3; attempt <= 4; attempt++ {
		s.holds(s.undo("a", attempt, makegood.OutcomeDone))
		if err := s.refund(s.undo("a", attempt, makegood.OutcomeDone)); err != nil {
			t.Errorf("undo, attempt %d: %v", attempt, err)
		}
	}
	s.want("a", 0)
	s.holds(s.task("a", 5))
	if _, err := s.pay(s.task("a", 5)); !errors.Is(err, dynamofence.ErrUndone) {
		t.Errorf("got %v, want ErrUndone", err)
	}
}

func TestAnUndoneStepNeverHappensOnAStandIn(t *testing.T) {
	s := newStack(t)
	s.holds(s.undo("a", 2, makegood.OutcomeUnknown))
	for range 2 {
		if err := s.refund(s.undo("a", 2, makegood.OutcomeUnknown)); err != nil {
			t.Fatal(err)
		}
	}
	s.holds(s.task("a", 3)) // As if no claim stood in its way.
	if _, err := s.pay(s.task("a", 3)); !errors.Is(err, dynamofence.ErrUndone) {
		t.Errorf("got %v, want ErrUndone", err)
	}
	s.want("a", 0)
}

func TestEachEffectOfARepeatedStepIsUndoneOnAStandIn(t *testing.T) {
	s := newStack(t)
	for n := 1; n <= 3; n++ {
		task := s.task("a", n)
		if n > 1 {
			task.Key = fmt.Sprintf("%s/%d", task.Key, n)
		}
		s.holds(task)
		if _, err := s.pay(task); err != nil {
			t.Fatal(err)
		}
	}
	s.want("a", 15)
	undo := s.undo("a", 4, makegood.OutcomeDone)
	undo.Undo.Repeats = 2
	s.holds(undo)
	for range 2 {
		if err := s.refund(undo); err != nil {
			t.Fatal(err)
		}
		s.want("a", 0)
	}
}

func TestARefusedItemIsNamedByItsPlaceOnAStandIn(t *testing.T) {
	s := newStack(t)
	s.holds(s.task("a", 1))
	no := s.adds("c", 1)
	no.Update.ConditionExpression = aws.String("attribute_exists(PK)")
	_, err := s.fence.Transact(in(s.task("a", 1)), []types.TransactWriteItem{s.adds("b", 1), no}, nil)
	var refused *dynamofence.RefusedError
	if !errors.As(err, &refused) || refused.Index != 1 || refused.Code != "ConditionalCheckFailed" {
		t.Fatalf("got %v, want item 1 refused", err)
	}
	s.want("b", 0)
	all := make([]types.TransactWriteItem, dynamofence.MaxItems)
	for i := range all {
		all[i] = s.adds(fmt.Sprint("many-", i), 1)
	}
	if _, err := s.fence.Transact(in(s.task("a", 1)), all, strings.Repeat("x", makegood.MaxPayloadBytes-2)); err != nil {
		t.Errorf("as many and as much as may be: %v", err)
	}
	s.want("many-97", 1)
}

// Whoever comes first, wins: what is not there when Close has answered never comes.
func TestATransactionAndTheCloseOfItsAttemptHaveOneWinner(t *testing.T) {
	s := newStack(t)
	for n := range 10 {
		task := s.task(fmt.Sprint("a", n), 1)
		s.holds(task)
		var racing sync.WaitGroup
		var err error
		racing.Go(func() { _, err = s.pay(task) })
		s.givesUp(task)
		_, there, looked := s.fence.Stored(in(task))
		racing.Wait()
		if looked != nil || there != (err == nil) || err != nil && !errors.Is(err, dynamofence.ErrLost) {
			t.Errorf("the effect is there: %v, %v, and its transaction has ended with %v", there, looked, err)
		}
		want := 0
		if there {
			want = 5
		}
		s.want(task.Job, want)
	}
}

// Answers are lost, attempts are given up while their transactions are on their way, and come in late; half of the jobs are
// undone. Each account is as its job says.
func TestWhateverIsLostEachEffectIsThereOnce(t *testing.T) {
	s := newStack(t)
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	s.network.lose = func() bool { return random.IntN(3) == 0 }
	var late sync.WaitGroup
	for n := range 30 {
		id, attempt := fmt.Sprint("a", n), 1
		for ; ; attempt++ {
			task := s.task(id, attempt)
			s.holds(task)
			if attempt < 4 && n%3 != 0 {
				late.Go(func() { _, _ = s.pay(task) }) // A zombie: what comes of it nobody hears.
				s.givesUp(task)
				continue
			}
			if got, err := s.pay(task); err != nil || got == "" {
				t.Errorf("%s: got %q, %v", id, got, err)
			}
			break
		}
		if n%2 == 0 {
			continue
		}
		s.givesUp(s.task(id, attempt))
		for again := 1; again <= 2; again++ {
			undo := s.undo(id, attempt+again, makegood.OutcomeUnknown)
			s.holds(undo)
			if err := s.refund(undo); err != nil {
				t.Errorf("undo of %s: %v", id, err)
			}
		}
	}
	late.Wait()
	for n := range 30 {
		s.want(fmt.Sprint("a", n), 5*((n+1)%2))
	}
}
