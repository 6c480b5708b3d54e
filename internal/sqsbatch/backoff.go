package sqsbatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/queue"
)

// The backoff of failed records by default.
const (
	DefaultBase = 200 * time.Millisecond
	DefaultMax  = time.Minute
)

// returnWithin is how long Backoff takes at most to make failed records visible again, also when the
// time of the invocation is up. It is what a function keeps back of its timeout.
const returnWithin = time.Second

// BackoffOptions are the options of Backoff; the zero value is good.
type BackoffOptions struct {
	// Base is the longest wait after the first delivery. Default: DefaultBase.
	Base time.Duration
	// Max is the longest wait after any delivery. Default: DefaultMax. SQS takes at most 12 hours.
	Max time.Duration
	// Roll picks a wait of 0 to longest. Default: evenly at random.
	Roll func(longest time.Duration) time.Duration
	// Logger hears of records that could not be returned. Default: slog.Default().
	Logger *slog.Logger
}

// Returner makes messages visible again; every queue.Receiver does.
type Returner interface {
	Return(ctx context.Context, queue string, after time.Duration, receipts ...string) error
}

// Backoff returns a handler that calls inner, and makes the records that failed visible again after an exponential
// backoff with full jitter: after their n-th delivery they wait a random part of min(Max, Base * 2^(n-1)), instead of
// the whole visibility timeout. So an error of the infrastructure costs its messages little time, and they do not
// become poison meanwhile.
//
// Failed are the records that inner names in its answer, and all where it returns an error or names one that is not in
// the batch. Records that were delivered equally often share one wait, so that they come back as one batch. Answer and
// error of inner are passed on as they are. A record that cannot be returned is logged and comes back after the
// visibility timeout: later, never lost. The same holds when inner panics; the panic is passed on.
func Backoff(inner queue.Handler, returner Returner, queueName string, options BackoffOptions) queue.Handler {
	o := options.withDefaults()
	return func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		response, err := inner(ctx, event)
		failed := failedRecords(event, response, err)
		if len(failed) > 0 {
			o.giveBack(ctx, returner, queueName, failed)
		}
		return response, err
	}
}

func (o BackoffOptions) withDefaults() BackoffOptions {
	if o.Base <= 0 {
		o.Base = DefaultBase
	}
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	if o.Roll == nil {
		o.Roll = func(longest time.Duration) time.Duration { return rand.N(longest + 1) }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o BackoffOptions) giveBack(ctx context.Context, returner Returner, queueName string, failed []events.SQSMessage) {
	// The records may have failed because ctx ended, and must be returned all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnWithin)
	defer cancel()

	receipts := make(map[int][]string)
	for _, record := range failed {
		count := ReceiveCount(record)
		receipts[count] = append(receipts[count], record.ReceiptHandle)
	}
	for _, count := range slices.Sorted(maps.Keys(receipts)) {
		after := o.Roll(o.longest(count))
		if err := returner.Return(ctx, queueName, after, receipts[count]...); err != nil {
			o.Logger.WarnContext(ctx, "failed records wait for their visibility timeout", "queue", queueName,
				"records", len(receipts[count]), "error", fmt.Errorf("return after %v: %w", after, err))
		}
	}
}

// longest is the longest wait after the count-th delivery.
func (o BackoffOptions) longest(count int) time.Duration {
	wait := o.Base
	for n := 1; n < count && wait < o.Max; n++ {
		wait *= 2
	}
	return min(wait, o.Max)
}
