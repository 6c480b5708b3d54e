package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/router"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/sqlitestore"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
)

// jobs are how many jobs a world has.
const jobs = 12

// eventsQueue and agentQueue are where the handlers' messages come from.
const (
	eventsQueue = "events"
	agentQueue  = "tasks-agents"
)

// origin is when every world begins.
var origin = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const workflowYAML = `
name: order
steps:
  - {name: reserve, agent: inventory, needs: [], undo: {action: release}}
  - {name: charge, agent: payments, needs: [], retry: {attempts: 2}, undo: {action: refund}}
  - {name: wrap, agent: inventory, needs: [reserve, charge], when: "${ .input.gift }", undo: none}
  - {name: ship, agent: inventory, needs: [wrap], exclusive: false, with: {to: "${ .input.to }", charged: "${ .steps.charge.output }"}, undo: none}
`

// world is the shipped handlers over a store in memory, with some jobs under way.
type world struct {
	store     *sqlitestore.Store
	scheduler *scheduler.Scheduler
	// events handles the events queue.
	events queue.Handler
	runner *agentrun.Runner
	queues *queues
	// now is the time, in ms since the origin.
	now *atomic.Int64
	// corpus are the messages of its jobs, and tasks those of them that are tasks.
	corpus, tasks []string
}

// queues is every queue. It keeps what was sent until it is taken out, and refuses what SQS refuses.
type queues struct {
	mu   sync.Mutex
	sent map[string][]string
}

var _ queue.Sender = (*queues)(nil)

// Send keeps messages.
func (m *queues) Send(_ context.Context, name string, messages ...queue.Message) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for i, message := range messages {
		if err := queue.Check(message); err != nil {
			if errs == nil {
				errs = make([]error, len(messages))
			}
			errs[i] = err
			continue
		}
		m.sent[name] = append(m.sent[name], message.Body)
	}
	return errs
}

// Depth is how much a queue holds.
func (m *queues) Depth(_ context.Context, name string) (queue.Depth, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return queue.Depth{Waiting: len(m.sent[name])}, nil
}

// takeOut empties all queues.
func (m *queues) takeOut() map[string][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent := m.sent
	m.sent = map[string][]string{}
	return sent
}

// worker is an agent that does what its input says.
type worker string

func (w worker) Name() string { return string(w) }

func (w worker) Handle(_ context.Context, task makegood.Task) (json.RawMessage, error) {
	switch text := string(task.Input); {
	case strings.Contains(text, "refuse"):
		return nil, agent.Final(agent.NotApplied(fmt.Errorf("refused: %s", text)))
	case strings.Contains(text, "busy"):
		return nil, agent.RetryAfter(time.Minute, fmt.Errorf("busy: %s", text))
	}
	return task.Input, nil
}

// newWorld makes a world with jobs under way, and the messages that they sent or may be sent.
func newWorld(ctx context.Context, logger *slog.Logger) (*world, error) {
	file, err := sqlitestore.Open(ctx, sqlitestore.Options{})
	if err != nil {
		return nil, err
	}
	w := &world{store: file, queues: &queues{sent: map[string][]string{}}, now: new(atomic.Int64)}
	w.scheduler = scheduler.New(scheduler.Config{
		Jobs: file, Closings: file, Payloads: file, Definitions: file, Queue: w.queues, Notifier: notify.Log{Logger: logger},
		Events: eventsQueue, Quarantine: "quarantine", Tasks: func(agent string) string { return "tasks-" + agent },
		Replies: []string{"shop"}, Reminders: true, Instance: "scheduler", Incarnation: 1,
		Now: w.clock, Random: func() uint64 { return 1 << 62 }, Bytes: func(n int) []byte { return make([]byte, n) }, Logger: logger,
	})
	w.events = router.New(router.Config{Jobs: w.scheduler.HandleSQS, Logger: slog.New(slog.DiscardHandler)}).Handle
	w.runner = agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{worker("inventory"), worker("payments")},
		Claims:   file, Queue: w.queues, Tasks: agentQueue, Quarantine: "quarantine", Instance: "agent", Now: w.clock, Logger: logger,
	})
	if err := w.begin(ctx); err != nil {
		return nil, fmt.Errorf("begin jobs: %w", err)
	}
	return w, nil
}

// clock is the world's time.
func (w *world) clock() time.Time { return origin.Add(time.Duration(w.now.Load()) * time.Millisecond) }

// begin submits jobs, lets them come to different places, and collects the corpus on the way.
func (w *world) begin(ctx context.Context) error {
	c, err := workflowfile.Parse("order.yaml", []byte(workflowYAML))
	if err != nil {
		return err
	}
	if err := w.store.PutDefinition(ctx, c.Workflow.Name, c.Hash, c.Definition); err != nil {
		return err
	}
	inputs := []string{`{"gift":false,"to":"Ann"}`, `{"gift":true,"to":"\u00fc\ufffe"}`, `{"gift":"no","to":{"busy":[1,2.5e3,null]}}`, `{"gift":false,"to":"` + strings.Repeat("far ", 500) + `"}`}
	for i := range jobs {
		sub := wire.Submit{Workflow: "order", ID: fmt.Sprint("job-", i), Input: json.RawMessage(inputs[i%len(inputs)])}
		if i%3 == 0 {
			sub.ReplyTo = "shop"
		}
		if err := w.keep(wire.EncodeSubmit(sub)); err != nil {
			return err
		}
		if err := w.deliver(ctx, w.corpus[len(w.corpus)-1]); err != nil {
			return err
		}
		if err := w.work(ctx, i); err != nil {
			return err
		}
	}
	for i := range jobs {
		if err := w.note(ctx, fmt.Sprint("job-", i)); err != nil {
			return err
		}
	}
	later := wire.Submit{Workflow: "order", ID: "later", Input: json.RawMessage(`{}`), StartAt: origin.Add(time.Minute)}
	return w.keep(wire.EncodeSubmit(later))
}

// work claims tasks of the last job and answers them: with failures for one job in three, and so often
// that the jobs come to different places.
func (w *world) work(ctx context.Context, i int) error {
	for turn := range i % 4 {
		sent := w.queues.takeOut()
		for _, body := range append(sent["tasks-inventory"], sent["tasks-payments"]...) {
			w.corpus, w.tasks = append(w.corpus, body), append(w.tasks, body)
			task, err := wire.DecodeTask(body)
			if err != nil {
				return err
			}
			lockedBy := fmt.Sprint("agent:", i)
			slot := store.Slot{Agent: task.Agent, Job: task.Job, Birth: task.Birth, Step: task.Step}
			if err := w.store.Claim(ctx, slot, job.Claim{
				Attempt: task.Attempt, LockedBy: lockedBy, StartedAt: origin, CompleteBy: origin.Add(task.Timeout.Std()),
			}, task.ClaimUntil); err != nil && !task.Shared {
				return err
			}
			by := job.Reply{Step: task.Step, Attempt: task.Attempt, Token: task.Token, LockedBy: lockedBy, StartedAt: origin}
			done := job.StepSucceeded{Reply: by, Output: wire.Inline(task.Input)}
			failed := job.StepFailed{Reply: by, Error: job.StepError{
				Message: "no", Retryable: turn == 0, Applied: makegood.AppliedUnknown, RetryAfter: makegood.Second,
			}}
			answer := len(w.corpus)
			for _, e := range []job.Event{done, failed} {
				if err := w.keep(wire.EncodeEvent(task.Job, e)); err != nil {
					return err
				}
			}
			if i%3 == 2 && task.Step == "charge" {
				answer++
			}
			// The last answers stay unsaid, so that some of the corpus is still to come true.
			if turn+1 < i%4 {
				if err := w.deliver(ctx, w.corpus[answer]); err != nil {
					return err
				}
			}
		}
	}
	sent := w.queues.takeOut()
	open := append(sent["tasks-inventory"], sent["tasks-payments"]...)
	w.corpus, w.tasks = append(w.corpus, open...), append(w.tasks, open...)
	return nil
}

// note keeps what the Supervisor and a submitter may say of a job.
func (w *world) note(ctx context.Context, id string) error {
	j, err := w.store.Load(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range []job.Event{
		job.Submitted{},
		job.DeadlinePassed{Key: j.CompleteBy},
		job.DeadlinePassed{Key: origin},
		job.DeadlinePassed{},
	} {
		if _, deadline := e.(job.DeadlinePassed); deadline && j.CompleteBy.IsZero() {
			continue
		}
		if err := w.keep(wire.EncodeEvent(id, e)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) keep(body string, err error) error {
	w.corpus = append(w.corpus, body)
	return err
}

// deliver gives one message to the Scheduler, which must take it.
func (w *world) deliver(ctx context.Context, body string) error {
	answer, err := w.events(ctx, batchOf(0, body))
	if err != nil || len(answer.BatchItemFailures) > 0 {
		return fmt.Errorf("the message %s was given back: %v", body, err)
	}
	return nil
}

// quarantined reads what was put into quarantine, by the ids of the messages.
func quarantined(bodies []string) (map[string]sqsbatch.Quarantined, error) {
	found := map[string]sqsbatch.Quarantined{}
	for _, body := range bodies {
		var q sqsbatch.Quarantined
		if err := json.Unmarshal([]byte(body), &q); err != nil {
			return nil, fmt.Errorf("what is in quarantine cannot be read: %w", err)
		}
		found[q.MessageID] = q
	}
	return found, nil
}
