package dynamofence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/fenced"
	"github.com/makegood-dev/makegood/internal/pause"
)

const (
	// maxTries is how often a transaction is sent at most, and tryTime how long one may go without an answer.
	maxTries = 12
	tryTime  = 5 * time.Second
	// pauseMin and pauseMax bound the wait before the next try; it doubles from one to the other.
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
	// maxLooks is how often an undo looks at its effect, which may come in between once.
	maxLooks = 3
)

var (
	// errAgain: the transaction was not carried out, and may be sent again.
	errAgain = errors.New("the transaction was cancelled by others")
	// errMoved: the effect of an undo has changed since it was read.
	errMoved = errors.New("the effect keeps changing")
)

// The codes of the reasons for which DynamoDB cancels a transaction.
const (
	codeNone      = "None"
	codeCondition = "ConditionalCheckFailed"
)

// transient are those that pass by themselves.
var transient = []string{"TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}

// RefusedError says that DynamoDB refused an item of the agent's own; no item was written.
type RefusedError struct {
	// Index is the place of the item in the list that was given, the first if there are several. Reasons are those of the
	// whole list, as DynamoDB gave them.
	Index   int
	Reasons []types.CancellationReason
	// Code is the reason: ConditionalCheckFailed, ItemCollectionSizeLimitExceeded, ValidationError. Item is the stored
	// item, if ReturnValuesOnConditionCheckFailure asked for it.
	Code, Message string
	Item          map[string]types.AttributeValue

	cause error
}

// Error says which item was refused, and why.
func (e *RefusedError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("item %d of the transaction was refused: %s", e.Index, e.Code)
	}
	return fmt.Sprintf("item %d of the transaction was refused: %s: %s", e.Index, e.Code, e.Message)
}

// Unwrap returns what DynamoDB answered.
func (e *RefusedError) Unwrap() error { return e.cause }

// send sends a transaction until its outcome is known, as long as ctx lasts.
func (f *Fence) send(ctx context.Context, items, ours []types.TransactWriteItem) (Effect, error) {
	if len(items) > MaxItems {
		return Effect{}, agent.Final(agent.NotApplied(fmt.Errorf("%w: %d, the limit is %d", ErrItems, len(items), MaxItems)))
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: slices.Concat(items, ours), ClientRequestToken: aws.String(newToken())}
	// An earlier try without an answer may have been carried out, or may be yet; then a later refusal is no proof.
	open := false
	var last error
	for try := range maxTries {
		if try > 0 && pause.For(ctx, wait(try)) != nil {
			break
		}
		err := f.try(ctx, in)
		if err == nil {
			return f.written(ctx, ours), nil
		}
		done, judged := f.judge(ctx, err, ours)
		if last = judged; judged == nil || !again(err, judged, &open) {
			return done, settle(judged, open)
		}
	}
	last = settle(fmt.Errorf("transaction of %s: %w", agent.TaskOf(ctx).Key, last), open)
	if open && isPut(ours) {
		return f.lookBack(ctx, last)
	}
	return Effect{}, last
}

// settle marks an error as agent.NotApplied, unless the outcome is open.
func settle(err error, open bool) error {
	if open {
		return err
	}
	return agent.NotApplied(err)
}

// try sends it once. The SDK does not try again by itself, which would multiply the tries.
func (f *Fence) try(ctx context.Context, in *dynamodb.TransactWriteItemsInput) error {
	within, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	_, err := f.config.Client.TransactWriteItems(within, in, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	return err
}

func wait(try int) time.Duration {
	longest := min(pauseMax, pauseMin<<(try-1))
	return longest/3 + time.Duration(rand.Int64N(int64(longest)*2/3))
}

// isPut reports whether a transaction ends with the item of an effect that is put, and is no undo.
func isPut(ours []types.TransactWriteItem) bool {
	put := ours[len(ours)-1].Put
	return put != nil && read(put.Item).state == fenced.Done
}

// written is the effect of a transaction that was carried out.
func (f *Fence) written(ctx context.Context, ours []types.TransactWriteItem) Effect {
	if isPut(ours) {
		return read(ours[len(ours)-1].Put.Item).Effect
	}
	return Effect{Attempt: agent.TaskOf(ctx).Attempt}
}

// again reports whether a transaction with this answer is to be sent once more, and notes in open whether this try
// may have been carried out.
func again(err, judged error, open *bool) bool {
	if errors.As(err, new(*types.TransactionCanceledException)) {
		return errors.Is(judged, errAgain)
	}
	var known smithy.APIError
	if !errors.As(err, &known) {
		*open = true // The network, or no answer in time.
		return true
	}
	if errors.As(err, new(*types.TransactionInProgressException)) || errors.As(err, new(*types.InternalServerError)) {
		*open = true
		return true
	}
	retryable := retry.NewStandard().IsErrorRetryable(err)
	*open = *open || retryable && known.ErrorFault() != smithy.FaultClient
	return retryable
}

// lookBack looks whether a transaction with an unknown outcome was carried out. If it finds no effect, the outcome
// stays open.
func (f *Fence) lookBack(ctx context.Context, last error) (Effect, error) {
	task := agent.TaskOf(ctx)
	seen, err := f.look(ctx, task.Key, task.Birth)
	if err == nil && seen.state != fenced.None {
		return seen.answers(task)
	}
	return Effect{}, errors.Join(last, err)
}

// judge reads why a transaction was cancelled. It looks at our items first, the last of the transaction: the claim,
// if it is there, then the effect; then at the rest. An error that is no cancellation is returned as it is.
func (f *Fence) judge(ctx context.Context, err error, ours []types.TransactWriteItem) (Effect, error) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) < len(ours) {
		return Effect{}, err
	}
	reasons := cancelled.CancellationReasons
	theirs, fences := reasons[:len(reasons)-len(ours)], reasons[len(reasons)-len(ours):]
	task := agent.TaskOf(ctx)
	if len(fences) > 1 && code(fences[0]) == codeCondition {
		return Effect{}, fmt.Errorf("the claim of attempt %d of %s is gone: %w", task.Attempt, task.Key, ErrLost)
	}
	if effect := fences[len(fences)-1]; code(effect) == codeCondition {
		if !isPut(ours) {
			return Effect{}, errMoved
		}
		return f.standing(ctx, effect.Item)
	}
	for _, reason := range fences {
		if slices.Contains(transient, code(reason)) {
			return Effect{}, fmt.Errorf("%w: %w", errAgain, err)
		}
		if code(reason) != codeNone {
			return Effect{}, agent.Final(fmt.Errorf("the fence's items of %s: %s: %w", task.Key, code(reason), err))
		}
	}
	return Effect{}, refused(theirs, err)
}

// standing answers with the effect that stands in the way of this one.
func (f *Fence) standing(ctx context.Context, it item) (Effect, error) {
	task := agent.TaskOf(ctx)
	seen := read(it)
	if seen.state == fenced.None {
		// It did not come back with the refusal.
		var err error
		if seen, err = f.look(ctx, task.Key, task.Birth); err != nil || seen.state == fenced.None {
			return Effect{}, fmt.Errorf("the effect of %s stands in the way, and cannot be read: %w", task.Key, errors.Join(errAgain, err))
		}
	}
	return seen.answers(task)
}

// refused says which of the agent's items was refused; errAgain, if that passes.
func refused(theirs []types.CancellationReason, err error) error {
	definite := slices.IndexFunc(theirs, func(r types.CancellationReason) bool {
		return code(r) != codeNone && !slices.Contains(transient, code(r))
	})
	if definite < 0 {
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	reason := theirs[definite]
	no := &RefusedError{
		Index: definite, Reasons: theirs, Code: code(reason), Message: aws.ToString(reason.Message), Item: reason.Item, cause: err,
	}
	if no.Code != codeCondition {
		return agent.Final(no)
	}
	return no
}

// code is that of a reason; DynamoDB leaves it out where there is none.
func code(r types.CancellationReason) string {
	if c := aws.ToString(r.Code); c != "" {
		return c
	}
	return codeNone
}
