package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/deployed"
	gates "github.com/makegood-dev/makegood/internal/gate"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/notify/replynotify"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/internal/wire"
	"github.com/makegood-dev/makegood/internal/workflowfile"
	"github.com/makegood-dev/makegood/lab/costmeter"
)

// instance is as long as the name of a log stream, of which functions make theirs.
const instance = "2026/11/21/[$LATEST]0123456789abcdef0123456789abcdef"

const (
	// receiveLimit is how long a message that was sent may take to be there.
	receiveLimit = 2 * time.Minute
	// gateLimit is how long the attempts of a batch wait for each other.
	gateLimit = 2 * time.Minute
)

// listener is the registered name of who is told, and repliesQueue is where.
const (
	listener     = "submitter"
	repliesQueue = "replies"
)

// endpoints are where the stand-ins answer.
type endpoints struct{ dynamoDB, sqs string }

// indexName is that of the index on CompleteBy.
const indexName = "due"

// world is a table and queues of its own, and on them the shipped handlers, fed in step.
type world struct {
	load      load
	meter     *costmeter.Meter
	db        *dynamodb.Client
	table     string
	queues    *sqsqueue.Queues
	sender    queue.Sender // what the Scheduler and the Supervisor send with
	store     *dynamostore.Store
	scheduler *scheduler.Scheduler
	agent     queue.Handler
	compiled  *workflowfile.Compiled
	gate      gate
	// supervisor and clock are for steps that are slow, and counted is what they have cost so far.
	supervisor *supervisor.Supervisor
	clock      clock
	counted    []costmeter.Entry
	// kept is what the jobs of the last run say themselves that they have cost.
	kept job.Spent
	// runs is how often changes of a job were published, each an event of the bus.
	runs int
}

// open makes a world. check has DynamoDB asked what it would bill.
func open(ctx context.Context, at endpoints, l load, check bool) (*world, error) {
	prefix := "cost" + strings.ToLower(rand.Text()[:10])
	w := &world{load: l, table: prefix + "-jobs"}
	schema := dynamostore.Schema(w.table, indexName)
	w.meter = costmeter.New(costmeter.Config{Tables: []*dynamodb.CreateTableInput{schema}, Check: check})
	database, messages := standin.Config(at.dynamoDB), standin.Config(at.sqs)
	w.meter.Watch(&database)
	w.meter.Watch(&messages)
	w.db = dynamodb.NewFromConfig(database)
	if err := standin.CreateTable(ctx, w.db, schema); err != nil {
		return nil, err
	}
	var err error
	if w.store, err = dynamostore.New(dynamostore.Config{Client: w.db, Table: w.table, Index: indexName, Shards: l.shards(), Now: w.clock.now}); err != nil {
		return nil, err
	}
	if w.queues, err = makeQueues(ctx, sqs.NewFromConfig(messages), prefix); err != nil {
		return nil, err
	}
	w.sender = w.queues.Together()
	if w.compiled, err = workflowfile.Parse("reference.yaml", l.workflow()); err != nil {
		return nil, err
	}
	if err := w.store.PutDefinition(ctx, w.compiled.Workflow.Name, w.compiled.Hash, w.compiled.Definition); err != nil {
		return nil, fmt.Errorf("store the definition: %w", err)
	}
	w.wire()
	if l.limited() {
		limit := job.Hold{Kind: makegood.HoldLimit, Name: agentName, Limit: l.limit, Since: w.clock.now()}
		return w, w.store.PutHolds(ctx, store.Held{Holds: job.Holds{limit}})
	}
	return w, nil
}

func makeQueues(ctx context.Context, client *sqs.Client, prefix string) (*sqsqueue.Queues, error) {
	urls := map[string]string{}
	for _, name := range []string{deployed.EventsQueue, deployed.QuarantineQueue, deployed.TasksQueue(agentName), repliesQueue} {
		out, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(prefix + "-" + name)})
		if err != nil {
			return nil, fmt.Errorf("create queue %s: %w", name, err)
		}
		urls[name] = aws.ToString(out.QueueUrl)
	}
	return sqsqueue.New(sqsqueue.Config{Client: client, URLs: urls}), nil
}

// wire makes the handlers as the functions do.
func (w *world) wire() {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	config := scheduler.Config{
		Changes: w.publisher(), Jobs: w.store, Closings: w.store, Payloads: w.store, Definitions: w.store, Queue: w.sender,
		Events: deployed.EventsQueue, Quarantine: deployed.QuarantineQueue, Tasks: deployed.TasksQueue,
		Replies: []string{listener}, Listener: replynotify.Replies{Queues: map[string]string{listener: repliesQueue}, Send: w.sendOne},
		Counts: true, Clock: untimed(), Lane: w.lane(log),
		Instance: instance, Reminders: true, Period: deployed.SweepPeriod, Logger: log, Now: w.clock.now,
		// One draw for all: a pause drawn below limits.RemindWithin would cost a reminder, in one run of sixty.
		Random: func() uint64 { return 7 },
	}
	if w.load.limited() {
		config.Held = holds.NewReader(w.store, w.clock.now)
		config.Gate = gates.New(gates.Config{Store: w.store, Jobs: w.store, Queue: w.sender, Events: deployed.EventsQueue, Logger: log, Now: w.clock.now})
	}
	w.scheduler = scheduler.New(config)
	w.supervisor = supervisor.New(supervisor.Config{
		Index: w.store, Queue: w.sender, Events: deployed.EventsQueue, Leases: w.store, Holder: instance, Logger: log, Now: w.clock.now,
	})
	w.agent = agentrun.New(agentrun.Config{
		Handlers: []agent.Handler{w.worker()}, Claims: w.store, Queue: w.queues, Tasks: deployed.TasksQueue(agentName),
		Quarantine: deployed.QuarantineQueue, Instance: instance, Logger: log, Now: w.clock.now,
		Counts: true, Clock: untimed(),
	}).HandleSQS
}

// worker is the agent of all steps.
func (w *world) worker() agent.Handler {
	return agent.New(agentName, agent.Do("work", func(ctx context.Context, _ json.RawMessage) (string, error) {
		if w.load.inline {
			return w.load.answer(), nil
		}
		// So that the replies of a batch come together, as those of fast agents do.
		return w.load.answer(), w.gate.pass(ctx)
	}))
}

// lane is that of a Scheduler's function which links the agent; nil: it does not.
func (w *world) lane(log *slog.Logger) scheduler.Lane {
	if !w.load.inline {
		return nil
	}
	return agentrun.NewLane([]agent.Handler{w.worker()}, nil, w.clock.now, log)
}

// publisher is who hears of every change; nil: nobody. A bus is asked for nothing that this table counts.
func (w *world) publisher() changes.Publisher {
	if !w.load.changes {
		return nil
	}
	return counted{w}
}

// counted takes every run, and counts them.
type counted struct{ w *world }

func (c counted) Publish(_ context.Context, runs []changes.Run) []error {
	c.w.runs += len(runs)
	return make([]error, len(runs))
}

// untimed is the clock of a function of which nobody asks how long it takes: the time of this machine is in no figure.
func untimed() *spend.Clock { return spend.NewClock(0, time.Now) }

// sendOne sends an announcement, as the Scheduler function does.
func (w *world) sendOne(ctx context.Context, name, body, group string) error {
	return errors.Join(w.sender.Send(ctx, name, queue.Message{Body: body, Group: group})...)
}

// run runs jobs to their end, whose ids begin so, and returns what their submission and what their steps cost.
func (w *world) run(ctx context.Context, prefix string) (submission, steps []costmeter.Entry, err error) {
	w.meter.Take()
	w.runs = 0
	n := w.load.jobs()
	if err := w.submitAll(ctx, prefix, n); err != nil {
		return nil, nil, fmt.Errorf("submit: %w", err)
	}
	submission = w.meter.Take()
	w.counted = nil
	if w.load.inline || w.load.byMessage {
		if err := w.feed(ctx, deployed.EventsQueue, n, w.scheduler.HandleSQS); err != nil {
			return nil, nil, err
		}
	}
	if w.load.mapped {
		if err := w.settle(ctx, jobID(prefix, 0)); err != nil {
			return nil, nil, err
		}
	}
	if w.load.limited() {
		for i := range n {
			if err := w.settle(ctx, jobID(prefix, i)); err != nil {
				return nil, nil, err
			}
		}
	}
	for range w.load.hops() {
		if err := w.feed(ctx, deployed.TasksQueue(agentName), n, w.work); err != nil {
			return nil, nil, err
		}
		if w.load.forgetful {
			w.wire()
		}
		if err := w.feed(ctx, deployed.EventsQueue, n, w.scheduler.HandleSQS); err != nil {
			return nil, nil, err
		}
	}
	steps = append(w.counted, w.meter.Take()...)
	w.kept = job.Spent{}
	ids, err := w.ids(ctx, prefix)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		j, err := w.store.Load(ctx, id)
		if err != nil {
			return nil, nil, fmt.Errorf("load job %s: %w", id, err)
		}
		if j.ProcessState != makegood.JobProcessed {
			return nil, nil, fmt.Errorf("job %s is %s, want Processed", j.ID, j.ProcessState)
		}
		if len(j.Changes.Pending) > 0 || w.load.changes != (j.Changes.Seq > 0) {
			return nil, nil, fmt.Errorf("job %s has made %d changes, and %d wait to be published", j.ID, j.Changes.Seq, len(j.Changes.Pending))
		}
		w.kept = w.kept.Plus(j.Spent)
	}
	return submission, steps, nil
}

// submitAll submits n jobs: by messages, if the Scheduler's function runs their steps itself, or the load says so.
func (w *world) submitAll(ctx context.Context, prefix string, n int) error {
	if w.load.inline || w.load.byMessage {
		return w.submitByMessage(ctx, prefix, n)
	}
	for i := range n {
		s := scheduler.Submission{ID: jobID(prefix, i), Definition: w.compiled.Hash, Input: w.load.input(i)}
		if w.load.listened {
			s.ReplyTo = listener
		}
		if _, _, err := w.scheduler.Submit(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) submitByMessage(ctx context.Context, prefix string, n int) error {
	messages := make([]queue.Message, n)
	for i := range messages {
		body, err := wire.EncodeSubmit(wire.Submit{ID: jobID(prefix, i), Workflow: w.compiled.Workflow.Name, Input: w.load.input(i)})
		if err != nil {
			return err
		}
		messages[i] = queue.Message{Body: body, Group: jobID(prefix, i)}
	}
	return errors.Join(w.queues.Send(ctx, deployed.EventsQueue, messages...)...)
}

// jobID returns ids of twelve bytes.
func jobID(prefix string, i int) string { return fmt.Sprintf("%s-%06d", prefix, i) }

// feed hands n messages of a queue to a handler, in batches of the load's size, as Lambda does: one request that
// receives, an invocation, one request that deletes.
func (w *world) feed(ctx context.Context, name string, n int, handle queue.Handler) error {
	for n > 0 {
		records, err := w.receive(ctx, name)
		if err != nil {
			return err
		}
		w.clock.pass(hop)
		w.meter.Invoked(name, len(records))
		response, err := handle(ctx, events.SQSEvent{Records: records})
		if err != nil {
			return fmt.Errorf("handle %s: %w", name, err)
		}
		if failed := len(response.BatchItemFailures); failed > 0 {
			return fmt.Errorf("handle %s: %d records failed", name, failed)
		}
		receipts := make([]string, len(records))
		for i, r := range records {
			receipts[i] = r.ReceiptHandle
		}
		if err := w.queues.Delete(ctx, name, receipts...); err != nil {
			return err
		}
		n -= len(records)
	}
	return nil
}

func (w *world) receive(ctx context.Context, name string) ([]events.SQSMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, receiveLimit)
	defer cancel()
	return w.queues.Receive(ctx, name, w.load.batch())
}

// close deletes the table; the queues go with the stand-in.
func (w *world) close(ctx context.Context) error {
	_, err := w.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &w.table})
	return err
}
