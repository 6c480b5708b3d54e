package dynamofence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/agent/dynamofence"
	"github.com/makegood-dev/makegood/internal/agentctx"
	"github.com/makegood-dev/makegood/internal/limits"
)

type receipt struct{ ID string }

func forward(attempt int) makegood.Task {
	return makegood.Task{
		Job: "j", Birth: "b", Step: "pay", Agent: "bank", Round: 1, Attempt: attempt, Key: "j/pay/1",
		Claim: makegood.TaskClaim{LockedBy: fmt.Sprintf("i:%d", attempt), Table: "jobs"},
	}
}

func backward(attempt int, outcome makegood.Outcome) makegood.Task {
	task := forward(attempt)
	task.Key, task.Undo = "j/pay/1/undo", &makegood.UndoTask{ForwardKey: "j/pay/1", Outcome: outcome}
	return task
}

// bank has a ledger, of which each attempt writes a line of its own.
type bank struct {
	t *testing.T
	*tables
	fence *dynamofence.Fence
}

func newBank(t *testing.T) *bank {
	t.Helper()
	d := newTables()
	fence, err := dynamofence.New(dynamofence.Config{Client: d, Effects: "effects", Sort: "SK"})
	if err != nil {
		t.Fatal(err)
	}
	return &bank{t, d, fence}
}

func line(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: aws.String("ledger"), Item: item{"PK": text(id)}, ConditionExpression: aws.String("attribute_not_exists(PK)"),
	}}
}

func in(task makegood.Task) context.Context {
	return agentctx.NewContext(context.Background(), task, nil)
}

// pay claims the attempt, if nobody has a later one, and writes a line.
func (b *bank) pay(task makegood.Task) (receipt, error) {
	b.claim(task)
	id := fmt.Sprint("line-", task.Attempt)
	return dynamofence.Do(in(task), b.fence, []types.TransactWriteItem{line(id)}, receipt{id})
}

func (b *bank) refund(task makegood.Task) error {
	b.claim(task)
	return dynamofence.Undo(in(task), b.fence, func(done receipt) ([]types.TransactWriteItem, error) {
		return []types.TransactWriteItem{line("back-" + done.ID)}, nil
	})
}

func (b *bank) want(lines int) {
	b.t.Helper()
	if n := b.count("ledger"); n != lines {
		b.t.Errorf("the ledger has %d lines, want %d", n, lines)
	}
}

func TestALaterAttemptIsAnsweredWithWhatTheFirstStored(t *testing.T) {
	b := newBank(t)
	for attempt := 1; attempt <= 3; attempt++ {
		if got, err := b.pay(forward(attempt)); err != nil || got.ID != "line-1" {
			t.Errorf("attempt %d: got %+v, %v, want what attempt 1 stored", attempt, got, err)
		}
	}
	b.want(1)
	done, was, err := b.fence.Stored(in(forward(4)))
	if err != nil || !was || done.Attempt != 1 || done.LockedBy != "i:1" || !done.Before || string(done.Output) != `{"ID":"line-1"}` {
		t.Errorf("got %+v, %v, %v, want the effect of attempt 1", done, was, err)
	}
	other := forward(1)
	other.Birth = "c"
	if _, err := b.pay(other); err == nil {
		t.Error("the line is there already, and nothing was refused")
	}
	if _, was, err := b.fence.Stored(in(other)); was || err != nil {
		t.Errorf("another job of the same id: got %v, %v, want no effect", was, err)
	}
}

func TestAZombieWritesNothing(t *testing.T) {
	b := newBank(t)
	b.claim(forward(2))
	for name, task := range map[string]makegood.Task{"a later attempt was claimed": forward(1), "another holds it": func() makegood.Task {
		task := forward(2)
		task.Claim.LockedBy = "i:another"
		return task
	}()} {
		_, err := dynamofence.Do(in(task), b.fence, []types.TransactWriteItem{line("z")}, receipt{"z"})
		if !errors.Is(err, dynamofence.ErrLost) || !errors.Is(err, agent.ErrOver) || agent.Failure(err).Applied != makegood.AppliedNo {
			t.Errorf("%s: got %v, want ErrLost, which is an agent.ErrOver and applied nothing", name, err)
		}
	}
	b.lose(forward(2))
	if _, err := dynamofence.Do(in(forward(2)), b.fence, nil, receipt{}); !errors.Is(err, dynamofence.ErrLost) {
		t.Errorf("a closed attempt: got %v, want ErrLost", err)
	}
	b.want(0)
}

func TestWhatWasDoneIsUndoneOnce(t *testing.T) {
	b := newBank(t)
	if _, err := b.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	for attempt := 2; attempt <= 4; attempt++ {
		if err := b.refund(backward(attempt, makegood.OutcomeDone)); err != nil {
			t.Errorf("undo, attempt %d: got %v", attempt, err)
		}
	}
	b.want(2)
	if _, err := b.pay(forward(5)); !errors.Is(err, dynamofence.ErrUndone) {
		t.Errorf("the same key once more: got %v, want ErrUndone", err)
	}
	if _, _, err := b.fence.Stored(in(forward(5))); !errors.Is(err, dynamofence.ErrUndone) {
		t.Errorf("looked at: got %v, want ErrUndone", err)
	}
}

// The forward call is held up on its way, nobody knows what became of it, and it comes in after the undo.
func TestWhatWasUndoneBeforeItHappenedNeverHappens(t *testing.T) {
	b := newBank(t)
	for attempt := 2; attempt <= 3; attempt++ {
		if err := b.refund(backward(attempt, makegood.OutcomeUnknown)); err != nil {
			t.Fatal(err)
		}
	}
	// Its claim would let it pass.
	if _, err := b.pay(forward(1)); !errors.Is(err, dynamofence.ErrUndone) || !errors.Is(err, agent.ErrOver) {
		t.Errorf("a zombie: got %v, want ErrUndone, which is an agent.ErrOver", err)
	}
	b.want(0)
}

// It comes in while the undo looks.
func TestAnUndoSeesAnEffectThatCameAtTheLastMoment(t *testing.T) {
	b := newBank(t)
	undo := backward(2, makegood.OutcomeUnknown)
	b.before = func(n int) error {
		if n != 1 {
			return nil
		}
		b.items["ledger line-1 "] = item{"PK": text("line-1")}
		b.items["effects effect#j/pay/1#b effect"] = item{"State": text("done"), "Output": text(`{"ID":"line-1"}`)}
		return nil
	}
	if err := b.refund(undo); err != nil {
		t.Fatal(err)
	}
	b.want(2)
	if _, there := b.items["ledger back-line-1 "]; !there {
		t.Errorf("what came in was not undone: %v", b.items)
	}
}

// The undo of another attempt is written while this one is on its way.
func TestAnEffectThatIsUndoneAtTheLastMomentIsUndoneOnce(t *testing.T) {
	b := newBank(t)
	if _, err := b.pay(forward(1)); err != nil {
		t.Fatal(err)
	}
	b.before = func(n int) error {
		if n == 2 {
			b.items["effects effect#j/pay/1#b effect"]["State"] = text("undone")
		}
		return nil
	}
	if err := b.refund(backward(2, makegood.OutcomeDone)); err != nil {
		t.Fatal(err)
	}
	b.want(1)
}

func TestAnUndoOfWhatIsNotHereSaysSo(t *testing.T) {
	b := newBank(t)
	if err := b.refund(backward(2, makegood.OutcomeDone)); !errors.Is(err, dynamofence.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
	if err := b.refund(forward(1)); !errors.Is(err, dynamofence.ErrTask) || agent.Failure(err).Retryable {
		t.Errorf("an undo of what is no undo: got %v, want ErrTask, for good", err)
	}
}

// Theirs stand first, so that the place of a refused one is the one that they gave it.
func TestARefusedItemIsNamedByItsPlaceInTheCallersList(t *testing.T) {
	b := newBank(t)
	b.claim(forward(1))
	b.items["ledger b "] = item{"PK": text("b")}
	_, err := b.fence.Transact(in(forward(1)), []types.TransactWriteItem{line("a"), line("b"), line("c")}, nil)
	var refused *dynamofence.RefusedError
	if !errors.As(err, &refused) || refused.Index != 1 || refused.Code != "ConditionalCheckFailed" || len(refused.Reasons) != 3 || refused.Item == nil {
		t.Fatalf("got %v, want item 1 refused", err)
	}
	if f := agent.Failure(err); !f.Retryable || f.Applied != makegood.AppliedNo || !strings.Contains(f.Message, "item 1 ") {
		t.Errorf("got %+v, want a retryable failure that surely applied nothing", f)
	}
	if !errors.As(err, new(*types.TransactionCanceledException)) {
		t.Errorf("got %v, want what DynamoDB answered under it", err)
	}
	b.want(1)
	if n := b.count("effects"); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
}

// Each row: what the n-th transaction suffers, and what comes of it.
func TestWhatPassesIsTriedAgainUnderTheSameToken(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(n int) error
		tries         int
	}{
		"a heartbeat is under way":                 {before: first(because("None", "TransactionConflict", "None")), tries: 2},
		"another attempt is, and an item is taken": {before: first(because("ConditionalCheckFailed", "None", "TransactionConflict")), tries: 2},
		"throttled by the table":                   {before: first(because("ThrottlingError", "None", "None")), tries: 2},
		"throttled as a whole":                     {before: first(&types.ProvisionedThroughputExceededException{}), tries: 2},
		"still in progress":                        {before: first(&types.TransactionInProgressException{}), tries: 2},
		"an error of the server":                   {after: first(&types.InternalServerError{}), tries: 2},
		"the answer is lost":                       {after: first(errLost), tries: 2},
		"no answer ever comes":                     {after: func(int) error { return errLost }, tries: 12},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t)
				b.before, b.after = c.before, c.after
				b.claim(forward(1))
				got, err := b.fence.Transact(in(forward(1)), []types.TransactWriteItem{line("a")}, receipt{"a"})
				if err != nil || got.Before || string(got.Output) != `{"ID":"a"}` || got.Attempt != 1 {
					t.Errorf("got %+v, %v, want the effect, as its own", got, err)
				}
				if n := len(slices.Compact(slices.Clone(b.asked))); len(b.asked) != c.tries || n != 1 {
					t.Errorf("got %d tries under %d tokens, want %d under one", len(b.asked), n, c.tries)
				}
				b.want(1)
			})
		})
	}
}

func first(err error) func(int) error {
	return func(n int) error {
		if n == 1 {
			return err
		}
		return nil
	}
}

// What may have been carried out is never said not to have been.
func TestARefusalBehindALostAnswerIsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lost := range []bool{false, true} {
			b := newBank(t)
			b.before = func(n int) error {
				if lost && n == 1 {
					return errLost
				}
				return because("ConditionalCheckFailed", "None", "None")
			}
			_, err := b.fence.Transact(in(forward(1)), []types.TransactWriteItem{line("a")}, nil)
			want := makegood.AppliedNo
			if lost {
				want = makegood.AppliedUnknown
			}
			if f := agent.Failure(err); f.Applied != want || !errors.As(err, new(*dynamofence.RefusedError)) {
				t.Errorf("lost %v: got %+v, want applied %s", lost, f, want)
			}
		}
		for _, fault := range []smithy.ErrorFault{smithy.FaultServer, smithy.FaultClient, smithy.FaultUnknown} {
			b := newBank(t)
			b.before = func(n int) error {
				if n == 1 {
					return &smithy.GenericAPIError{Code: "RequestTimeoutException", Fault: fault}
				}
				return because("ConditionalCheckFailed", "None", "None")
			}
			want := makegood.AppliedUnknown
			if fault == smithy.FaultClient {
				want = makegood.AppliedNo
			}
			if _, err := b.fence.Transact(in(forward(1)), []types.TransactWriteItem{line("a")}, nil); agent.Failure(err).Applied != want || len(b.asked) != 2 {
				t.Errorf("by fault of %v: got %v after %d tries, want applied %s", fault, err, len(b.asked), want)
			}
		}
		b := newBank(t)
		b.before = func(int) error { return errLost }
		if _, err := b.fence.Transact(in(forward(1)), nil, nil); !errors.Is(err, errLost) || agent.Failure(err).Applied != makegood.AppliedUnknown {
			t.Errorf("got %v, want an outcome that is unknown", err)
		}
	})
}

// Where nothing was written for sure, nothing is read to find that out; and what was read wrongly is no answer.
func TestWhatIsKnownIsNotLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t)
		b.before = func(int) error { return because("None", "TransactionConflict", "None") }
		if _, err := b.pay(forward(1)); agent.Failure(err).Applied != makegood.AppliedNo || b.reads > 0 {
			t.Errorf("got %v after %d reads, want that nothing was written, and none", err, b.reads)
		}
		b.before = func(int) error { return because("None") }
		if _, err := b.pay(forward(1)); !errors.As(err, new(*types.TransactionCanceledException)) {
			t.Errorf("a cancellation without reasons: got %v, want it", err)
		}
		b.unreadable = errLost
		if _, ok, err := b.fence.Stored(in(forward(1))); ok || !errors.Is(err, errLost) {
			t.Errorf("cannot be read: got %v, %v, want no effect, and why", ok, err)
		}
	})
}

// The time of the attempt bounds the tries.
func TestItEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t)
		b.before = func(int) error { return because("None", "TransactionConflict", "None") }
		ctx, cancel := context.WithTimeout(in(forward(1)), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := b.fence.Transact(ctx, []types.TransactWriteItem{line("a")}, nil)
		if err == nil || agent.Failure(err).Applied != makegood.AppliedNo || time.Since(began) > 200*time.Millisecond {
			t.Errorf("got %v after %v, want an end in time, and that nothing was written", err, time.Since(began))
		}
	})
}

func TestWhatCannotBeIsRefusedAtTheDoor(t *testing.T) {
	b := newBank(t)
	many := slices.Repeat([]types.TransactWriteItem{line("a")}, dynamofence.MaxItems+1)
	_, err := b.fence.Transact(in(forward(1)), many, nil)
	if !errors.Is(err, dynamofence.ErrItems) || !strings.Contains(err.Error(), "99, the limit is 98") || agent.Failure(err).Retryable {
		t.Errorf("got %v, want ErrItems, with both numbers, for good", err)
	}
	_, err = b.fence.Transact(in(forward(1)), nil, strings.Repeat("x", makegood.MaxPayloadBytes))
	if f := agent.Failure(err); f.Retryable || f.Applied != makegood.AppliedNo || !strings.Contains(f.Message, "the limit is 262144") {
		t.Errorf("got %v, want a final error that names the limit", err)
	}
	if _, err := b.fence.Transact(t.Context(), nil, nil); !errors.Is(err, dynamofence.ErrTask) {
		t.Errorf("outside of a task: got %v, want ErrTask", err)
	}
	if len(b.asked) > 0 {
		t.Errorf("DynamoDB was asked %d times, want never", len(b.asked))
	}
	for want, c := range map[string]dynamofence.Config{
		"client": {Effects: "e"}, "table": {Client: b.tables}, "2160h": {Client: b.tables, Effects: "e", Keep: time.Hour},
	} {
		if _, err := dynamofence.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that names %q", err, want)
		}
	}
}

// In an embedded engine no table has the claim.
func TestWithoutAClaimItMustBeAskedFor(t *testing.T) {
	b := newBank(t)
	task := forward(1)
	task.Claim.Table = ""
	if _, err := b.pay(task); !errors.Is(err, dynamofence.ErrTask) {
		t.Errorf("got %v, want ErrTask", err)
	}
	back := backward(2, makegood.OutcomeUnknown)
	back.Claim.Table = ""
	unclaimed := func() error {
		return dynamofence.Undo(in(back), b.fence, func(receipt) ([]types.TransactWriteItem, error) { return nil, nil })
	}
	if err := unclaimed(); !errors.Is(err, dynamofence.ErrTask) {
		t.Errorf("an undo: got %v, want ErrTask", err)
	}
	fence, err := dynamofence.New(dynamofence.Config{Client: b.tables, Effects: "effects", Sort: "SK", Unclaimed: true})
	if err != nil {
		t.Fatal(err)
	}
	b.fence = fence
	for attempt := 1; attempt <= 2; attempt++ {
		task.Attempt = attempt
		if got, err := b.pay(task); err != nil || got.ID != "line-1" {
			t.Errorf("got %+v, %v, want what attempt 1 stored", got, err)
		}
	}
	if _, err := fence.ClaimCheck(in(task)); !errors.Is(err, dynamofence.ErrTask) {
		t.Errorf("a check of no claim: got %v, want ErrTask", err)
	}
	b.want(1)
	if err := unclaimed(); err != nil {
		t.Errorf("an undo: got %v", err)
	}
}

// Who makes the transaction alone reads what comes of it by the same rules.
func TestTheItemsOfATransactionOfTheCallers(t *testing.T) {
	b := newBank(t)
	send := func(attempt int) (dynamofence.Effect, error) {
		ctx := in(forward(attempt))
		ours, err := b.fence.Items(ctx, receipt{"a"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: append([]types.TransactWriteItem{line("a")}, ours...), ClientRequestToken: aws.String(fmt.Sprint(attempt)),
		})
		return b.fence.Outcome(ctx, receipt{"a"}, err)
	}
	if _, err := send(1); !errors.Is(err, dynamofence.ErrLost) {
		t.Errorf("unclaimed: got %v, want ErrLost", err)
	}
	for attempt := 1; attempt <= 2; attempt++ {
		b.claim(forward(attempt))
		b.tokens = map[string]bool{}
		got, err := send(attempt)
		if err != nil || got.Before != (attempt == 2) || got.Attempt != 1 || !json.Valid(got.Output) {
			t.Errorf("attempt %d: got %+v, %v", attempt, got, err)
		}
	}
	b.want(1)
}

func TestAnEffectIsKeptAsLongAsIsSaid(t *testing.T) {
	b := newBank(t)
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	fence, err := dynamofence.New(dynamofence.Config{
		Client: b.tables, Effects: "effects", Keep: limits.MinKeepEffect, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.claim(forward(1))
	if _, err := fence.Transact(in(forward(1)), nil, nil); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(now.Add(limits.MinKeepEffect).Unix() + 1)
	if got := asText(b.items["effects effect#j/pay/1#b "]["ExpiresAt"]); got != want {
		t.Errorf("expires at %q, want %s", got, want)
	}
}
