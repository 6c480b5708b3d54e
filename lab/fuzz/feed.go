package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/machine"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/wire"
)

const (
	// worldMessages are how many messages a world gets before a new one takes its place: most of what
	// is in it has happened by then.
	worldMessages = 2000
	// maxViolations are how many violations are told; all are counted.
	maxViolations = 10
)

// tally is what became of the messages of one handler.
type tally struct {
	Messages    int `json:"messages"`
	Handled     int `json:"handled"`
	Quarantined int `json:"quarantined"`
	Reasons     int `json:"reasons"`
	// Left are those that were left to a newer release.
	Left int `json:"left"`
	// Returned are those that were given back to the queue, to be delivered again.
	Returned int    `json:"returned"`
	Panics   int    `json:"panics"`
	Lost     int    `json:"lost"`
	Hash     string `json:"hash"`

	reasons    map[string]int
	violations []string
}

func (t *tally) violation(format string, args ...any) {
	if len(t.violations) < maxViolations {
		t.violations = append(t.violations, fmt.Sprintf(format, args...))
	}
}

// panics counts what is logged of panics: those of a record's own goroutine end there.
type panics struct {
	slog.Handler
	n *atomic.Int64
}

func (panics) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (p panics) Handle(_ context.Context, record slog.Record) error {
	if strings.Contains(record.Message, "panicked") {
		p.n.Add(1)
	}
	return nil
}

func (p panics) WithAttrs([]slog.Attr) slog.Handler { return p }

// handling is a handler, and how it counts what it neither gave back nor put into quarantine.
type handling struct {
	handle queue.Handler
	// queue is where its messages come from, and where it sends again what it leaves.
	queue string
	// leaves reports whether the handler must leave a body.
	leaves func(body string) bool
	// settled is how many records the handler has counted as dealt with, of at least so many.
	settled func() int64
	// reads reports whether the handler should have understood a body.
	reads func(body string) bool
	// exact: settled counts each record once.
	exact bool
}

func (w *world) handling(name string) handling {
	if name == "agent" {
		return handling{
			handle: w.runner.HandleSQS, exact: true, queue: agentQueue,
			leaves: func(body string) bool {
				_, err := wire.DecodeTask(body)
				return errors.Is(err, wire.ErrNewer)
			},
			settled: func() int64 {
				s := w.runner.Stats()
				return s.Taken + s.Withdrawn + s.Succeeded + s.Failed + s.Late
			},
			reads: func(body string) bool {
				task, err := wire.DecodeTask(body)
				return err == nil && (task.Agent == "inventory" || task.Agent == "payments")
			},
		}
	}
	return handling{
		handle: w.events, queue: eventsQueue, leaves: leftByScheduler,
		settled: func() int64 {
			s := w.scheduler.Stats()
			return s.Applied + s.Duplicate + s.Stale + s.Refused + s.Unknown
		},
		reads: func(body string) bool {
			in, err := wire.DecodeIncoming(body)
			return err == nil && in.Submit == nil
		},
	}
}

// leftByScheduler reports whether the Scheduler must leave a body: a message of a newer release, or a reply whose token
// is of a later scheme.
func leftByScheduler(body string) bool {
	in, err := wire.DecodeIncoming(body)
	switch e := in.Event.(type) {
	case job.StepSucceeded:
		return machine.OfLaterScheme(e.Reply)
	case job.StepFailed:
		return machine.OfLaterScheme(e.Reply)
	default:
		return errors.Is(err, wire.ErrNewer)
	}
}

// feed gives a handler its messages. wrap puts something round the handler.
func feed(ctx context.Context, name string, seed uint64, messages int, wrap func(queue.Handler) queue.Handler) (*tally, error) {
	t := &tally{reasons: map[string]int{}}
	panicked := new(atomic.Int64)
	logger := slog.New(panics{n: panicked})
	defer slog.SetDefault(slog.Default())
	// Where a batch is taken apart, a record that panics is told to the default log.
	slog.SetDefault(logger)
	sum := fnv.New64a()
	random := rand.New(rand.NewPCG(seed, 1))
	for t.Messages < messages {
		w, err := newWorld(ctx, logger)
		if err != nil {
			return nil, err
		}
		h := w.handling(name)
		h.handle = wrap(h.handle)
		for end := min(messages, t.Messages+worldMessages); t.Messages < end; {
			var bodies []string
			for range min(1+random.IntN(10), end-t.Messages) {
				body := spoil(random, w.corpusOf(name, random))
				_, _ = sum.Write([]byte(body)) // never fails, says its documentation
				bodies = append(bodies, body)
			}
			if err := t.batch(ctx, w, h, bodies); err != nil {
				return nil, err
			}
		}
		// A panic inside a decision parks its job.
		t.Panics += int(w.scheduler.Stats().Parked)
		if err := w.store.Shut(); err != nil {
			return nil, err
		}
	}
	t.Panics += int(panicked.Load())
	t.Reasons, t.Hash = len(t.reasons), fmt.Sprintf("%016x", sum.Sum64())
	if t.Panics > 0 {
		t.violation("%d panics", t.Panics)
	}
	return t, nil
}

// corpusOf returns the messages that the next one is made of: mostly what the handler is for.
func (w *world) corpusOf(name string, random *rand.Rand) []string {
	if name == "agent" && random.IntN(10) > 0 {
		return w.tasks
	}
	return w.corpus
}

func batchOf(first int, bodies ...string) (batch events.SQSEvent) {
	for i, body := range bodies {
		batch.Records = append(batch.Records, events.SQSMessage{
			MessageId: fmt.Sprint("m", first+i), ReceiptHandle: fmt.Sprint("r", first+i), Body: body,
			EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:fuzzed", Attributes: map[string]string{"ApproximateReceiveCount": "1"},
		})
	}
	return batch
}

// batch feeds one batch and looks for each of its messages.
func (t *tally) batch(ctx context.Context, w *world, h handling, bodies []string) error {
	w.now.Add(10)
	first, before := t.Messages, h.settled()
	t.Messages += len(bodies)
	answer, err := h.handle(ctx, batchOf(first, bodies...))
	if err != nil {
		t.violation("the whole batch at message %d failed: %v", first, err)
	}
	returned := map[string]bool{}
	for _, failure := range answer.BatchItemFailures {
		returned[failure.ItemIdentifier] = true
	}
	sent := w.queues.takeOut()
	kept, err := quarantined(sent["quarantine"])
	if err != nil {
		return err
	}
	settled, jobs := 0, map[string]bool{}
	for i, body := range bodies {
		id := fmt.Sprint("m", first+i)
		q, poison := kept[id]
		switch {
		case returned[id]:
			t.Returned++
		case w.wasLeft(h, body, sent):
			t.Left++
			if !h.leaves(body) {
				t.violation("message %s was left, and is no newer release's: %.200q", id, body)
			}
		case poison:
			t.quarantine(h, id, body, q)
		case h.reads(body):
			settled++
			in, _ := wire.DecodeIncoming(body)
			jobs[in.Job] = true
		default:
			t.submitted(ctx, w, id, body)
		}
	}
	t.account(h, settled, len(jobs), int(h.settled()-before))
	for name, bodies := range sent {
		t.readable(name, bodies)
	}
	return nil
}

// wasLeft reports whether a message was sent again as it was, or is a deadline that is left by dropping it.
func (w *world) wasLeft(h handling, body string, sent map[string][]string) bool {
	again, _ := wire.Leave(body, w.clock())
	in, err := wire.DecodeIncoming(body)
	return slices.Contains(sent[h.queue], again) || h.queue == eventsQueue && errors.Is(err, wire.ErrNewer) && in.Repeats
}

// account compares what the handler says to have dealt with to what it must have.
func (t *tally) account(h handling, records, jobs, counted int) {
	t.Handled += records
	missing := jobs - counted
	if h.exact {
		missing = records - counted
	}
	if missing > 0 {
		t.Lost += missing
		t.Handled -= missing
		t.violation("before message %d: %d records of %d jobs, and only %d were dealt with", t.Messages, records, jobs, counted)
	}
}

// quarantine checks that a message that is in quarantine belongs there, whole and with its reason.
func (t *tally) quarantine(h handling, id, body string, q sqsbatch.Quarantined) {
	t.Quarantined++
	t.reasons[kindOf(q.Reason)]++
	switch {
	case q.Reason == "":
		t.violation("message %s is in quarantine without a reason: %.200q", id, body)
	case h.reads(body) && !h.cannotBeLeft(body):
		t.violation("message %s is in quarantine (%s) and can be read: %.200q", id, q.Reason, body)
	case q.CutFrom == 0 && utf8.ValidString(body) && q.Body != body:
		t.violation("message %s is in quarantine as another: %.200q became %.200q", id, body, q.Body)
	}
}

// cannotBeLeft reports whether a newer release must have the message, and no queue would carry it: JSON that is read
// may hold characters that SQS refuses in a body.
func (h handling) cannotBeLeft(body string) bool {
	again, _ := wire.Leave(body, time.Time{})
	return h.leaves(body) && queue.Check(queue.Message{Body: again}) != nil
}

// submitted looks for the job of a message that is neither in quarantine nor an event.
func (t *tally) submitted(ctx context.Context, w *world, id, body string) {
	in, err := wire.DecodeIncoming(body)
	if err == nil && in.Submit != nil {
		if _, err = w.store.Load(ctx, in.Job); err == nil {
			t.Handled++
			return
		}
	}
	t.Lost++
	t.violation("message %s is lost (%v): %.200q", id, err, body)
}

// readable checks that what the handlers sent can be read by whom it is for; what the agents left they cannot read.
func (t *tally) readable(name string, bodies []string) {
	if !strings.HasPrefix(name, "tasks-") || name == agentQueue {
		return
	}
	for _, body := range bodies {
		if _, err := wire.DecodeTask(body); err != nil {
			t.violation("a task was sent that cannot be read: %v: %.200q", err, body)
		}
	}
}
