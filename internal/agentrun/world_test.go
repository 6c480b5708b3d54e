package agentrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/memstore"
	"github.com/makegood-dev/makegood/internal/testkit/leaks"
	"github.com/makegood-dev/makegood/internal/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var errDown = errors.New("the table is down")

// table keeps claims in memory. A fault makes the next write fail: unwritten, or written
// with its answer lost.
type table struct {
	claims *memstore.Store
	mu     sync.Mutex
	// faults are used up by one write each: "", "unwritten", "lost".
	faults []string
	// answer, where it is set, comes before an answer.
	answer     func(ctx context.Context, op string)
	tried      []job.Claim
	heartbeats int
}

var _ store.Claims = (*table)(nil)

func (t *table) Claim(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) error {
	t.mu.Lock()
	t.tried = append(t.tried, claim)
	err := t.write(func() error { return t.claims.Claim(ctx, ours(slot), claim, until) })
	t.mu.Unlock()
	if t.answer != nil {
		t.answer(ctx, "claim")
	}
	return err
}

// claimed is how many claims were tried so far, while others may be under way.
func (t *table) claimed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.tried)
}

func (t *table) Heartbeat(ctx context.Context, slot store.Slot, claim job.Claim, until time.Time) (time.Time, error) {
	t.mu.Lock()
	t.heartbeats++
	var completeBy time.Time
	err := t.write(func() (err error) {
		completeBy, err = t.claims.Heartbeat(ctx, ours(slot), claim, until)
		return err
	})
	t.mu.Unlock()
	if t.answer != nil {
		t.answer(ctx, "heartbeat")
	}
	return completeBy, err
}

// ours returns a slot whose agent and birth are those of the task.
func ours(slot store.Slot) store.Slot {
	if slot != slotOf(slot.Job+"/"+slot.Step) {
		panic(fmt.Sprintf("slot %+v", slot))
	}
	return slot
}

// slotOf returns the slot of "JOB/STEP".
func slotOf(key string) store.Slot {
	job, step, _ := strings.Cut(key, "/")
	return store.Slot{Agent: "shop", Job: job, Birth: "b1", Step: step}
}

// unwanted marks the claim of a step.
func (t *table) unwanted(key string) {
	closing := store.Closing{Attempt: t.slot(key).Attempt, Now: time.Now(), Ends: time.Now().Add(10 * time.Second)}
	_, _ = t.claims.Close(context.Background(), slotOf(key), closing) // memory never fails
}

// heldBy gives a claim to somebody else.
func (t *table) heldBy(key, lockedBy string, attempt int) {
	claim := job.Claim{Attempt: attempt, LockedBy: lockedBy, CompleteBy: time.Now().Add(time.Hour)}
	t.claims.Lay(slotOf(key), store.ClaimItem{Claim: claim})
}

func (t *table) write(do func() error) error {
	fault := ""
	if len(t.faults) > 0 {
		fault, t.faults = t.faults[0], t.faults[1:]
	}
	switch fault {
	case "unwritten":
		return errDown
	case "lost":
		_ = do()
		return errDown
	}
	return do()
}

func (t *table) slot(key string) job.Claim { return t.claims.InSlot(slotOf(key)).Claim }

// sent is a message that a queue took.
type sent struct {
	queue string
	at    time.Duration // since the world began
	calls int           // the number of the Send that took it
	queue.Message
}

// outbox takes messages. refuse says what it thinks of one.
type outbox struct {
	mu     sync.Mutex
	began  time.Time
	calls  int
	refuse func(call int, queue string, m queue.Message) error
	sent   []sent
}

var _ queue.Sender = (*outbox)(nil)

func (o *outbox) Send(ctx context.Context, to string, messages ...queue.Message) []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = ctx.Err(); errs[i] == nil && o.refuse != nil {
			errs[i] = o.refuse(o.calls, to, m)
		}
		if errs[i] == nil {
			o.sent = append(o.sent, sent{to, time.Since(o.began), o.calls, m})
		}
	}
	return errs
}

// told is how many messages were sent so far, while others may be under way.
func (o *outbox) told() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sent)
}

func (o *outbox) Depth(context.Context, string) (queue.Depth, error) { return queue.Depth{}, nil }

// world is a runner with its table and its queues, and one agent called "shop".
type world struct {
	t      *testing.T
	table  *table
	outbox *outbox
	log    *strings.Builder
	runner *agentrun.Runner
	// secret, if any, is the value of every secret.
	secret string
}

// handler is an agent made of one function.
type handler func(ctx context.Context, task makegood.Task) (json.RawMessage, error)

func (handler) Name() string { return "shop" }

func (h handler) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	return h(ctx, task)
}

func newWorld(t *testing.T, h handler) *world {
	w := &world{
		t:      t,
		table:  &table{claims: memstore.New()},
		outbox: &outbox{began: time.Now()},
		log:    new(strings.Builder),
	}
	w.runner = w.newRunner(h, nil)
	return w
}

func (w *world) newRunner(h agent.Handler, now func() time.Time) *agentrun.Runner {
	return agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{h}, Claims: w.table, Queue: w.outbox, Tasks: "tasks-shop", Quarantine: "quarantine", Instance: "i-1",
		Now: now, Secrets: func(context.Context, string) (string, error) { return w.secret, nil }, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// task makes an open attempt of job "j", and its task, with a timeout of 10 s.
func (w *world) task(step string, change ...func(*makegood.Task)) makegood.Task {
	now := domain.Instant(time.Now())
	task := makegood.Task{
		Job: "j", Workflow: "w", Step: step, Round: 1, Attempt: 3, Agent: "shop", Action: step, Input: json.RawMessage(`{}`),
		Key: "j/" + step + "/1", SentAt: now, StartBy: now.Add(10 * time.Minute), Timeout: 10 * makegood.Second, ReplyTo: "events",
		Birth: "b1", Token: "1.t", ClaimUntil: now.Add(limits.MaxClaimDelay),
	}
	for _, c := range change {
		c(&task)
	}
	return task
}

func shared(task *makegood.Task) {
	task.Shared = true
	task.CompleteBy = task.StartBy.Add(task.Timeout.Std())
}

// handle runs a batch and returns the ids of the records that failed; a record's id is its index.
func (w *world) handle(ctx context.Context, tasks ...makegood.Task) []string {
	w.t.Helper()
	bodies := make([]string, len(tasks))
	for i, task := range tasks {
		body, err := wire.EncodeTask(task)
		if err != nil {
			w.t.Fatal(err)
		}
		bodies[i] = body
	}
	return w.handleBodies(ctx, bodies...)
}

func (w *world) handleBodies(ctx context.Context, bodies ...string) []string {
	w.t.Helper()
	var event events.SQSEvent
	for i, body := range bodies {
		event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: body})
	}
	response, err := w.runner.HandleSQS(ctx, event)
	if err != nil || response.BatchItemFailures == nil {
		w.t.Fatalf("got %v, %v, want a list and no error", response, err)
	}
	failed := []string{}
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

// replies decodes what was sent to the queue "events".
func (w *world) replies() []job.Event {
	w.t.Helper()
	var replies []job.Event
	for _, s := range w.outbox.sent {
		if s.queue != "events" {
			continue
		}
		job, event, err := wire.DecodeEvent(s.Body)
		if job != "j" || err != nil {
			w.t.Fatalf("%s: job %q, %v", s.Body, job, err)
		}
		replies = append(replies, event)
	}
	return replies
}

// wantFailure checks that there is one reply: this failure, by the claim that is stored.
func (w *world) wantFailure(step string, want job.StepError) {
	w.t.Helper()
	replies := w.replies()
	if len(replies) != 1 {
		w.t.Fatalf("got %d replies %+v, want one", len(replies), replies)
	}
	expected := job.StepFailed{Reply: w.saidBy(step), Error: want}
	if expected.LockedBy == "" {
		// Nobody claims a shared one.
		expected.StartedAt = replies[0].(job.StepFailed).StartedAt
	}
	if replies[0] != job.Event(expected) {
		w.t.Errorf("got reply %+v, want %+v", replies[0], expected)
	}
}

// saidBy is what a reply says of itself: the claim that is stored, and the token of the task.
func (w *world) saidBy(step string) job.Reply {
	claim := w.table.slot("j/" + step)
	return job.Reply{Step: step, Attempt: 3, Token: "1.t", LockedBy: claim.LockedBy, StartedAt: claim.StartedAt}
}

func (w *world) wantSilence() {
	w.t.Helper()
	if len(w.outbox.sent) != 0 {
		w.t.Errorf("got messages %+v, want none", w.outbox.sent)
	}
}

func (w *world) wantFailed(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("failed records: got %q, want %q", got, want)
	}
}

// wantCounters compares with claimed, taken, withdrawn, succeeded, failed, late, poisoned.
func (w *world) wantCounters(want ...int64) {
	w.t.Helper()
	c := w.runner.Stats()
	got := []int64{c.Claimed, c.Taken, c.Withdrawn, c.Succeeded, c.Failed, c.Late, c.Poisoned}
	if !slices.Equal(got, want) {
		w.t.Errorf("claimed taken withdrawn succeeded failed late poisoned: got %v, want %v", got, want)
	}
}
