package sqsbatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/crew"
)

// batch makes a batch of records with these message ids.
func batch(ids ...string) events.SQSEvent {
	var event events.SQSEvent
	for _, id := range ids {
		event.Records = append(event.Records, events.SQSMessage{MessageId: id, ReceiptHandle: "receipt of " + id})
	}
	return event
}

func TestResponseIsNeverNull(t *testing.T) {
	for _, test := range []struct {
		failed []string
		want   string
	}{
		{nil, `{"batchItemFailures":[]}`},
		{[]string{"b", "a"}, `{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"a"}]}`},
		{[]string{"a", "a"}, `{"batchItemFailures":[{"itemIdentifier":"a"}]}`},
	} {
		got, err := json.Marshal(Response(test.failed))
		if err != nil || string(got) != test.want {
			t.Errorf("Response(%q) is %s, %v, want %s", test.failed, got, err, test.want)
		}
	}
}

// Every record of the batch waits for all others to have begun, so a batch that ran one record
// after the other would never end; synctest reports that as a deadlock.
func TestEachRunsTheRecordsBesideOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun sync.WaitGroup
		begun.Add(10)
		failed := Each(t.Context(), new(crew.Crew), batch("0", "1", "2", "3", "4", "5", "6", "7", "8", "9").Records,
			func(context.Context, events.SQSMessage) error {
				begun.Done()
				begun.Wait()
				return nil
			})
		if len(failed) != 0 {
			t.Errorf("failed: got %q, want none", failed)
		}
	})
}

func TestEachGivesTheFailedInTheOrderOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := map[string]time.Duration{"a": 3 * time.Second, "b": 2 * time.Second, "c": 0, "d": time.Second}
		failed := Each(t.Context(), new(crew.Crew), batch("a", "b", "c", "d").Records, func(_ context.Context, record events.SQSMessage) error {
			time.Sleep(waits[record.MessageId])
			if record.MessageId == "b" {
				return nil
			}
			return errors.New("no")
		})
		if want := []string{"a", "c", "d"}; !slices.Equal(failed, want) {
			t.Errorf("failed: got %q, want %q", failed, want)
		}
	})
}

func TestAPanicFailsItsOwnRecordAloneAndIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)

	failed := Each(t.Context(), new(crew.Crew), batch("a", "bad", "c").Records, func(_ context.Context, record events.SQSMessage) error {
		if record.MessageId == "bad" {
			panic("out of cheese")
		}
		return nil
	})
	if want := []string{"bad"}; !slices.Equal(failed, want) {
		t.Errorf("failed: got %q, want %q", failed, want)
	}
	for _, want := range []string{"out of cheese", "messageId=bad", "sqsbatch_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}

func TestARecordThatEndsItsGoroutineHasFailed(t *testing.T) {
	failed := Each(t.Context(), new(crew.Crew), batch("a", "b").Records, func(_ context.Context, record events.SQSMessage) error {
		if record.MessageId == "b" {
			runtime.Goexit()
		}
		return nil
	})
	if want := []string{"b"}; !slices.Equal(failed, want) {
		t.Errorf("failed: got %q, want %q", failed, want)
	}
}

func TestReceiveCountIsAtLeastOne(t *testing.T) {
	for text, want := range map[string]int{"": 1, "x": 1, "0": 1, "-3": 1, "1": 1, "7": 7} {
		record := events.SQSMessage{Attributes: map[string]string{"ApproximateReceiveCount": text}}
		if got := ReceiveCount(record); got != want {
			t.Errorf("ReceiveCount of %q: got %d, want %d", text, got, want)
		}
	}
	if got := ReceiveCount(events.SQSMessage{}); got != 1 {
		t.Errorf("ReceiveCount without attributes: got %d, want 1", got)
	}
}

// An answer is read on the safe side, so that a backoff is given to what really stays on the queue.
func TestAnAnswerThatNamesAnUnknownRecordFailsTheBatch(t *testing.T) {
	event := batch("a", "", "c")
	for _, test := range []struct {
		failed []string
		err    error
		want   string
	}{
		{nil, nil, "[]"},
		{[]string{"c", "a"}, nil, "[a c]"},
		{[]string{"a", "stranger"}, nil, "[a  c]"},
		{[]string{""}, nil, "[a  c]"},
		{nil, errors.New("no"), "[a  c]"},
	} {
		ids := []string{}
		for _, record := range failedRecords(event, Response(test.failed), test.err) {
			ids = append(ids, record.MessageId)
		}
		if got := fmt.Sprint(ids); got != test.want {
			t.Errorf("answer %q, error %v: failed are %s, want %s", test.failed, test.err, got, test.want)
		}
	}
}
