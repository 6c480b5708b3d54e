package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/crew"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
	"github.com/makegood-dev/makegood/internal/wire"
)

// some are enough messages to reach everything that a million reach, more seldom.
const some = 20_000

func asItIs(h queue.Handler) queue.Handler { return h }

func TestAFuzzedMessageIsHandledOrInQuarantineWithItsReason(t *testing.T) {
	seed := seed.Of(t)
	for _, name := range []string{"scheduler", "agent"} {
		t.Run(name, func(t *testing.T) {
			some := some
			if testing.Short() {
				some /= 5 // Ten times as slow, and each batch is one goroutine's.
			}
			got, err := feed(t.Context(), name, seed, some, asItIs)
			if err != nil {
				t.Fatal(err)
			}
			line, _ := json.Marshal(got)
			t.Logf("seed %d (go run ./lab/fuzz -messages %d -seed %d): %s", seed, some, seed, line)
			for _, v := range got.violations {
				t.Error(v)
			}
			if got.Handled+got.Quarantined+got.Left+got.Returned != some || got.Handled < some/20 || got.Quarantined < some/4 || got.Reasons < 10 {
				t.Errorf("got %s; want every message handled, in quarantine, left or given back, and many of both", line)
			}
		})
	}
}

// Of these messages a random run found one that a newer release must have, and that no queue carries: it belongs in
// quarantine, though it can be read.
func TestWhatCannotBeLeftMayBeInQuarantine(t *testing.T) {
	const seed = 5618594442876213629
	got, err := feed(t.Context(), "scheduler", seed, 6000, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got.violations {
		t.Error(v)
	}
}

func TestASeedDecidesTheMessages(t *testing.T) {
	hash := func(seed uint64) string {
		got, err := feed(t.Context(), "agent", seed, 3000, asItIs)
		if err != nil {
			t.Fatal(err)
		}
		return got.Hash
	}
	if one, same := hash(7), hash(7); one != same {
		t.Errorf("seed 7 gave messages of hash %s, and then %s", one, same)
	}
	if hash(7) == hash(8) {
		t.Error("seeds 7 and 8 gave the same messages")
	}
}

// Each handler does something wrong with its batches, which must be seen.
func TestAWrongHandlerIsFound(t *testing.T) {
	for name, wrong := range map[string]struct {
		handler string
		wrap    func(queue.Handler) queue.Handler
		says    string
	}{
		"poison is dropped":         {"scheduler", dropping(func(body string) bool { _, err := wire.DecodeIncoming(body); return err != nil }), "is lost"},
		"submissions are dropped":   {"scheduler", dropping(func(body string) bool { return strings.Contains(body, `"later"`) }), "is lost"},
		"tasks are dropped":         {"agent", dropping(func(body string) bool { _, err := wire.DecodeTask(body); return err == nil }), "were dealt with"},
		"what is right is poison":   {"agent", spoiling, "and can be read"},
		"an event is forgotten":     {"scheduler", dropping(func(body string) bool { return strings.Contains(body, "DeadlinePassed") }), "were dealt with"},
		"a panic is only logged":    {"agent", panicking, "panics"},
		"a whole batch is an error": {"agent", failing, "the whole batch"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := feed(t.Context(), wrong.handler, 1, 3000, wrong.wrap)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(got.violations, "\n"); !strings.Contains(text, wrong.says) {
				t.Errorf("got violations %q, want one that says %q", text, wrong.says)
			}
		})
	}
}

// FuzzScheduler and FuzzAgent feed a handler with a message of the fuzzer's own between two good ones.
func FuzzScheduler(f *testing.F) { fuzzHandler(f, "scheduler") }

func FuzzAgent(f *testing.F) { fuzzHandler(f, "agent") }

func fuzzHandler(f *testing.F, name string) {
	w, err := newWorld(f.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := w.store.Shut(); err != nil {
			f.Error(err)
		}
	})
	h, first, last := w.handling(name), w.corpus[0], w.tasks[0]
	f.Add(first)
	f.Add(last)
	f.Fuzz(func(t *testing.T, body string) {
		got := &tally{reasons: map[string]int{}}
		if err := got.batch(t.Context(), w, h, []string{first, body, last}); err != nil {
			t.Fatal(err)
		}
		for _, v := range got.violations {
			t.Error(v)
		}
	})
}

// FuzzBatch gives both handlers a batch as Lambda's runtime decodes it, whatever is in its records: they
// fail no record that is not there.
func FuzzBatch(f *testing.F) {
	w, err := newWorld(f.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := w.store.Shut(); err != nil {
			f.Error(err)
		}
	})
	f.Add([]byte(`{"Records":[{"messageId":"m","body":"{}","attributes":{"ApproximateReceiveCount":"1"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var batch events.SQSEvent
		if json.Unmarshal(body, &batch) != nil {
			return
		}
		ids := map[string]bool{}
		for _, record := range batch.Records {
			ids[record.MessageId] = true
		}
		for name, handle := range map[string]queue.Handler{"scheduler": w.events, "agent": w.runner.HandleSQS} {
			answer, err := handle(t.Context(), batch)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, failure := range answer.BatchItemFailures {
				if !ids[failure.ItemIdentifier] {
					t.Errorf("%s failed %q, which is not in %v", name, failure.ItemIdentifier, ids)
				}
			}
			w.queues.takeOut()
		}
	})
}

// dropping keeps some records from the handler, and says nothing of it.
func dropping(drop func(body string) bool) func(queue.Handler) queue.Handler {
	return func(h queue.Handler) queue.Handler {
		return func(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
			var rest events.SQSEvent
			for _, record := range batch.Records {
				if !drop(record.Body) {
					rest.Records = append(rest.Records, record)
				}
			}
			return h(ctx, rest)
		}
	}
}

// spoiling hides every body, so that the handler finds poison where there is none.
func spoiling(h queue.Handler) queue.Handler {
	return func(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
		for i := range batch.Records {
			batch.Records[i].Body = "spoilt"
		}
		return h(ctx, batch)
	}
}

// panicking panics at each record, where a panic is caught.
func panicking(queue.Handler) queue.Handler {
	return func(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
		return sqsbatch.Response(sqsbatch.Each(ctx, new(crew.Crew), batch.Records, func(context.Context, events.SQSMessage) error { panic("as planned") })), nil
	}
}

func failing(h queue.Handler) queue.Handler {
	return func(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
		answer, _ := h(ctx, batch)
		return answer, context.DeadlineExceeded
	}
}
