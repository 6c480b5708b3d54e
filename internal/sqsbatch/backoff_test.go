package sqsbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// returns keeps what was returned to a queue, as "QUEUE WAIT RECEIPTS".
type returns struct {
	calls []string
	err   error
	// within is how long the last call might have taken; zero when its context had ended.
	within time.Duration
}

func (r *returns) Return(ctx context.Context, queue string, after time.Duration, receipts ...string) error {
	r.calls = append(r.calls, fmt.Sprintf("%s %v %q", queue, after, receipts))
	r.within = 0
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		r.within = time.Until(deadline)
	}
	return r.err
}

func longest(d time.Duration) time.Duration { return d }

func failing(ids ...string) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
		return Response(ids), nil
	}
}

func delivered(event events.SQSEvent, counts ...int) events.SQSEvent {
	for i, count := range counts {
		event.Records[i].Attributes = map[string]string{"ApproximateReceiveCount": strconv.Itoa(count)}
	}
	return event
}

func TestFailedRecordsComeBackAfterABackoffByTheirReceiveCount(t *testing.T) {
	event := delivered(batch("a", "b", "c", "d"), 1, 2, 1, 40)
	var got returns
	handler := Backoff(failing("a", "c", "d"), &got, "events", BackoffOptions{Roll: longest})
	response, err := handler(t.Context(), event)
	if err != nil || len(response.BatchItemFailures) != 3 {
		t.Errorf("answer: got %v, %v, want that of the inner handler", response, err)
	}
	want := []string{
		`events 200ms ["receipt of a" "receipt of c"]`,
		`events 1m0s ["receipt of d"]`,
	}
	if !slices.Equal(got.calls, want) {
		t.Errorf("returned:\ngot  %q\nwant %q", got.calls, want)
	}
}

func TestTheLongestWaitDoublesUpToItsMaximum(t *testing.T) {
	o := BackoffOptions{Base: time.Second, Max: 5 * time.Second}.withDefaults()
	for count, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 1 << 40: 5 * time.Second,
	} {
		if got := o.longest(count); got != want {
			t.Errorf("longest wait after delivery %d: got %v, want %v", count, got, want)
		}
	}
	if got := (BackoffOptions{Base: time.Hour, Max: time.Second}).withDefaults().longest(1); got != time.Second {
		t.Errorf("longest wait with a base above the maximum: got %v, want 1s", got)
	}
}

// Full jitter: of many rolls some lie in each quarter of the wait, and none outside of it.
func TestTheWaitIsAnyPartOfTheLongest(t *testing.T) {
	o := BackoffOptions{}.withDefaults()
	var quarters [4]int
	for range 400 {
		wait := o.Roll(time.Minute)
		if wait < 0 || wait > time.Minute {
			t.Fatalf("rolled %v, want 0 to 1m", wait)
		}
		quarters[min(3, wait/(15*time.Second))]++
	}
	if slices.Contains(quarters[:], 0) {
		t.Errorf("400 rolls fell into the quarters of the wait as %v, want some in each", quarters)
	}
}

func TestAnErrorOfTheHandlerReturnsTheWholeBatch(t *testing.T) {
	down := errors.New("the table is down")
	var got returns
	handler := Backoff(func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
		return events.SQSEventResponse{}, down
	}, &got, "events", BackoffOptions{Roll: longest})
	if _, err := handler(t.Context(), batch("a", "b")); !errors.Is(err, down) {
		t.Errorf("error: got %v, want %v", err, down)
	}
	if want := []string{`events 200ms ["receipt of a" "receipt of b"]`}; !slices.Equal(got.calls, want) {
		t.Errorf("returned: got %q, want %q", got.calls, want)
	}
}

func TestABatchWithoutFailuresIsNotTouched(t *testing.T) {
	var got returns
	handler := Backoff(failing(), &got, "events", BackoffOptions{})
	if _, err := handler(t.Context(), batch("a", "b")); err != nil || got.calls != nil {
		t.Errorf("got %v, returned %q, want nothing returned", err, got.calls)
	}
}

// The invocation may have failed because its time was up; its records must come back all the same.
func TestRecordsAreReturnedAfterTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var got returns
		handler := Backoff(func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
			cancel()
			return events.SQSEventResponse{}, ctx.Err()
		}, &got, "events", BackoffOptions{})
		if _, err := handler(ctx, batch("a")); !errors.Is(err, context.Canceled) {
			t.Errorf("error: got %v, want %v", err, context.Canceled)
		}
		if len(got.calls) != 1 || got.within != returnWithin {
			t.Errorf("returned %q within %v, want one call within %v", got.calls, got.within, returnWithin)
		}
	})
}

func TestAReturnThatFailsChangesNothingOfTheAnswer(t *testing.T) {
	got := returns{err: errors.New("no queue today")}
	handler := Backoff(failing("a"), &got, "events", BackoffOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	response, err := handler(t.Context(), batch("a", "b"))
	if err != nil || len(response.BatchItemFailures) != 1 {
		t.Errorf("got %v, %v, want one failure and no error", response, err)
	}
}
