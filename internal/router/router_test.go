package router_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/router"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/wire"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// parts keep what was handed to them.
type parts struct {
	mu       sync.Mutex
	jobs     []string
	fired    []string
	released int
}

func (p *parts) handle(_ context.Context, batch events.SQSEvent) (response events.SQSEventResponse, err error) {
	for _, record := range batch.Records {
		p.jobs = append(p.jobs, record.MessageId)
		if record.MessageId == "stuck-job" {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
		}
	}
	return response, nil
}

func (p *parts) fire(_ context.Context, schedule string, key time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired = append(p.fired, schedule+" "+key.UTC().Format(time.TimeOnly))
	switch schedule {
	case "stuck":
		return errors.New("the store does not answer")
	case "later":
		return &scheduler.NewerError{What: schedule}
	}
	return nil
}

func (p *parts) release(context.Context) error {
	p.released++
	return errors.New("half of them")
}

// routes gives a batch to a router, and returns the messages that come again.
func routes(t *testing.T, r *router.Router, bodies map[string]string) (again []string) {
	t.Helper()
	var batch events.SQSEvent
	for id, body := range bodies {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: id, Body: body})
	}
	response, err := r.Handle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if response.BatchItemFailures == nil {
		t.Error("the answer has null in the place of no failures")
	}
	for _, f := range response.BatchItemFailures {
		again = append(again, f.ItemIdentifier)
	}
	slices.Sort(again)
	return again
}

func due(t *testing.T, schedule string) string {
	t.Helper()
	body, err := wire.EncodeScheduleDue(wire.ScheduleDue{Schedule: schedule, Key: at})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A hint goes where it belongs with the key that was seen, once a batch to the pauses; everything else goes to the Scheduler, hints that
// cannot be read among it. What could not be done comes again, but for a schedule of a newer release: that is left, and counted.
func TestHintsAndEventsGoTheirOwnWays(t *testing.T) {
	var p parts
	r := router.New(router.Config{Jobs: p.handle, Fire: p.fire, Release: p.release, Logger: slog.New(slog.DiscardHandler)})
	held, err := wire.EncodeHoldsDue(at)
	if err != nil {
		t.Fatal(err)
	}
	again := routes(t, r, map[string]string{
		"1": due(t, "nightly"), "2": due(t, "stuck"), "3": due(t, "later"), "4": held, "5": held,
		"job": `{"v":1,"type":"DeadlinePassed","job":"j"}`, "stuck-job": `{"v":1,"type":"StepSucceeded","job":"HoldsDue"}`, "poison": `{"v":1,"type":"ScheduleDue"`,
	})
	if want := []string{"2", "stuck-job"}; !slices.Equal(again, want) {
		t.Errorf("%q come again, want %q", again, want)
	}
	slices.Sort(p.fired)
	if want := []string{"later 03:04:05", "nightly 03:04:05", "stuck 03:04:05"}; !slices.Equal(p.fired, want) {
		t.Errorf("fired were %q, want %q", p.fired, want)
	}
	slices.Sort(p.jobs)
	if want := []string{"job", "poison", "stuck-job"}; !slices.Equal(p.jobs, want) {
		t.Errorf("the Scheduler had %q, want %q", p.jobs, want)
	}
	if p.released != 1 || r.Left() != 1 {
		t.Errorf("let go %d times and left %d, want once and one", p.released, r.Left())
	}
}

// A hint is dropped where nobody is to hear of it, and a batch of hints alone reaches no Scheduler.
func TestAHintThatNobodyHearsIsDropped(t *testing.T) {
	r := router.New(router.Config{Jobs: func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
		t.Error("the Scheduler had a batch of hints")
		return events.SQSEventResponse{}, nil
	}})
	held, err := wire.EncodeHoldsDue(at)
	if err != nil {
		t.Fatal(err)
	}
	if again := routes(t, r, map[string]string{"1": due(t, "nightly"), "2": held}); again != nil {
		t.Errorf("%q come again, want none", again)
	}
}
