// Package deployed is Makegood on AWS: DynamoDB, SQS, and the handlers that Lambda functions start: those of the
// Scheduler, the Supervisor, the agents and the doors. It reads their configuration, makes the clients, and wires; it
// makes no decisions. The same handlers run in one process in package embedded.
//
// # Under Lambda
//
// A function may be killed at any moment, run twice, or be frozen between two invocations. Memory holds no state that
// must survive, and every goroutine of an invocation has ended when it returns.
package deployed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/logging"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/changes"
	"github.com/makegood-dev/makegood/internal/holds"
	"github.com/makegood-dev/makegood/internal/httpagent"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/awsnotify"
	"github.com/makegood-dev/makegood/internal/notify/groupnotify"
	"github.com/makegood-dev/makegood/internal/notify/replynotify"
	"github.com/makegood-dev/makegood/internal/otlp"
	"github.com/makegood-dev/makegood/internal/queue"
	"github.com/makegood-dev/makegood/internal/queue/sqsqueue"
	"github.com/makegood-dev/makegood/internal/quiet"
	"github.com/makegood-dev/makegood/internal/router"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/spend"
	"github.com/makegood-dev/makegood/internal/sqsbatch"
	"github.com/makegood-dev/makegood/internal/store/dynamostore"
	"github.com/makegood-dev/makegood/internal/supervisor"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
)

// keptBack is how long before the end of an invocation a handler must be done, a quarter of its time at most: the rest
// is for making failed messages visible again and for logging.
const keptBack = 2 * time.Second

// requestTimeout is how long one try of one request to AWS may take. Without it a hanging connection would use up the
// whole invocation; no request here is a long poll, so all should be quick.
const requestTimeout = 5 * time.Second

// stack holds the clients and the parts made from these, for one function.
type stack struct {
	parts
	aws    aws.Config
	store  *dynamostore.Store
	queues *sqsqueue.Queues
	// sender puts messages into one request that several goroutines send at the same time. The replies of agents are not
	// sent with it: they must not wait for a request of others.
	sender queue.Sender
	log    *slog.Logger
	meter  *meter
	spans  *otlp.Spans // nil: no spans are wanted
	// clock counts the time of the function, for those that it works for.
	clock *spend.Clock
}

func open(ctx context.Context, p parts) (*stack, error) {
	p.limitMemory()
	c, err := awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	log := newLog(os.Stdout, p.level, p.function)
	m := newMeter(os.Stdout, log, p.stack)
	m.byName = p.byName
	// Logs of libraries, and of a record that panics, go the same way.
	slog.SetDefault(log)
	s := &stack{parts: p, log: log, meter: m, spans: holdSpans(ctx, p, log), clock: spend.NewClock(p.memory, time.Now)}
	countThrottles(&c, &s.meter.throttles)
	s.aws = c
	if s.store, s.queues, err = p.open(c); err != nil {
		return nil, err
	}
	s.sender = s.queues.Together()
	return s, nil
}

// awsConfig is the configuration of all clients. The SDK reads AWS_ENDPOINT_URL, region and credentials by itself.
func awsConfig(ctx context.Context) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)),
		config.WithLogger(logging.LoggerFunc(func(class logging.Classification, format string, args ...any) {
			slog.Debug("AWS SDK", "class", class, "said", fmt.Sprintf(format, args...)) // By itself it would not be in JSON.
		})))
	if err != nil {
		return c, fmt.Errorf("AWS configuration: %w", err)
	}
	return c, nil
}

// open makes the adapters.
func (p place) open(c aws.Config) (*dynamostore.Store, *sqsqueue.Queues, error) {
	store, err := dynamostore.New(dynamostore.Config{
		Client: dynamodb.NewFromConfig(c), Table: p.table, Index: p.index, Shards: p.shards, Retention: p.retention,
	})
	if err != nil {
		return nil, nil, err
	}
	return store, sqsqueue.New(sqsqueue.Config{Client: sqs.NewFromConfig(c), URLs: p.queues, Prefix: p.prefix}), nil
}

// Scheduler makes the handler of the events and submissions queues from the environment, and of workflow files, which
// are published, unless their names exist, before the first batch is handled. The error names every mistake in the
// environment. inline are agents whose inline attempts run in this function.
func Scheduler(ctx context.Context, getenv func(string) string, files fs.FS, inline []agent.Handler) (queue.Handler, error) {
	c, err := readScheduler(getenv)
	if err != nil {
		return nil, err
	}
	known, err := newDefinitions(files)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, c.parts)
	if err != nil {
		return nil, err
	}
	told := &alerts{Notifier: s.notifier(c)}
	keeper := s.holds(c.agents, nil)
	sched := scheduler.New(scheduler.Config{
		Changes: s.changes(c.changes),
		Held:    holds.NewReader(s.store, nil),
		Gate:    s.gates(), Breaker: keeper, Breakers: c.breakers,
		Jobs: s.store, Closings: s.store, Payloads: s.store, Definitions: s.store, CurrentFor: currentFor, Large: s.large(), LargeAge: s.payloads.renew, Queue: s.sender,
		Notifier: told, Listener: s.listener(c), Submissions: SubmissionsQueue, Events: EventsQueue, Quarantine: QuarantineQueue, Tasks: TasksQueue,
		Replies: slices.Sorted(maps.Keys(c.replies)), Asked: slices.Sorted(maps.Keys(c.replies)), Asker: replynotify.Replies{Queues: c.replies, Send: s.sendOne},
		Link:   c.link(),
		Agents: c.agents, Reminders: true, Period: SweepPeriod, Evaluations: c.evaluations(),
		Counts: true, Clock: s.clock, Lane: s.lane(inline),
		Instance: s.instance(), Watch: s.watch(), Logger: s.log,
	})
	fires := s.timetable(sched.SubmitCurrent, func(ctx context.Context, workflow string) error {
		_, err := s.store.CurrentDefinition(ctx, workflow)
		return err
	})
	routed := router.New(router.Config{Jobs: sched.HandleSQS, Fire: fires.Fire, Release: keeper.Release, Logger: s.log})
	s.meter.count(func() []total {
		stats := sched.Stats()
		stats.Left += routed.Left()
		return append(schedulerTotals(stats), total{MetricAlerts, told.told.Load()})
	})
	s.meter.count(func() []total { return timetableTotals(fires.Stats()) })
	with := func(handle queue.Handler, name string) queue.Handler {
		return s.handler(func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			if err := known.publishAll(ctx, s.store, fires); err != nil {
				// Only submissions to a workflow that is new rest on it; the next batch tries again.
				s.log.WarnContext(ctx, "definitions were not published", "error", err)
			}
			return handle(ctx, event)
		}, name)
	}
	replies, submissions := with(routed.Handle, EventsQueue), with(sched.HandleSubmissions, SubmissionsQueue)
	return func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		// A batch is of one queue.
		if s.isFrom(event, SubmissionsQueue) {
			return submissions(ctx, event)
		}
		return replies(ctx, event)
	}, nil
}

// lane runs the inline attempts of these agents; nil: there are none.
func (s *stack) lane(inline []agent.Handler) scheduler.Lane {
	if len(inline) == 0 {
		return nil
	}
	return agentrun.NewLane(inline, s.large(), time.Now, s.log)
}

// SweepPeriod is how often the schedule of the template starts the Supervisor.
const SweepPeriod = time.Minute

// SweptAtOnce is how many shards a sweep goes through at the same time: one after the other, at ten milliseconds a
// request, it would tell of fewer than 40,000 jobs within its minute (docs/scale.md).
const SweptAtOnce = 8

// listener notifies the listeners of a job, and the bus.
func (s *stack) listener(c schedulerConfig) notify.Notifier {
	all := []notify.Notifier{replynotify.Replies{Queues: c.replies, Send: s.sendOne}}
	if c.bus != "" {
		all = append(all, awsnotify.Bus{Client: eventbridge.NewFromConfig(s.aws), Name: c.bus})
	}
	return notify.All(all...)
}

// changes is the bus on which every change is published; nil: there is none.
func (s *stack) changes(bus string) changes.Publisher {
	if bus == "" {
		return nil
	}
	return awsnotify.Bus{Client: eventbridge.NewFromConfig(s.aws), Name: bus}
}

// notifier notifies an operator: in the log, and by the configured ways, all instances of the stack together.
func (s *stack) notifier(c schedulerConfig) notify.Notifier {
	log := notify.Log{Logger: quiet.Loud(s.log)}
	var to []notify.Alerter
	if c.topic != "" {
		to = append(to, awsnotify.Topic{Client: sns.NewFromConfig(s.aws), ARN: c.topic})
	}
	if c.webhook != "" {
		to = append(to, &keptWebhook{ssm: ssm.NewFromConfig(s.aws), parameter: c.webhook, now: time.Now})
	}
	if len(to) == 0 {
		return notify.All(log)
	}
	return notify.All(notify.Logged(log, groupnotify.New(groupnotify.Config{To: to, Places: s.store.Alerts(), Where: c.where})))
}

func (s *stack) sendOne(ctx context.Context, name, body, group string) error {
	for _, err := range s.sender.Send(ctx, name, queue.Message{Body: body, Group: group}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Agent makes the handler of an agent's tasks queue from the environment, for one of these agents or
// the built-in http. The error names everything that is wrong with it.
func Agent(ctx context.Context, getenv func(string) string, agents []agent.Handler) (queue.Handler, error) {
	c, err := readAgent(getenv, agents)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, c.parts)
	if err != nil {
		return nil, err
	}
	var runs agent.Handler
	for _, a := range agents {
		if a.Name() == c.agent {
			runs = a
		}
	}
	if c.agent == makegood.HTTPAgent {
		if runs, err = httpagent.New(httpagent.Policy{Allow: c.allow, RuntimeAPI: c.runtimeAPI}); err != nil {
			return nil, fmt.Errorf("environment: %s: %w", VarHTTPAllow, err)
		}
	}
	runner := agentrun.New(agentrun.Config{
		Held:     holds.NewReader(s.store, nil).Holds,
		Handlers: []agent.Handler{runs}, Claims: s.store, ClaimsIn: makegood.TaskClaim{Table: c.table}, Queue: s.queues,
		Tasks: TasksQueue(c.agent), Quarantine: QuarantineQueue, Instance: s.instance(), Secrets: s.secrets(c), Large: s.large(), Logger: s.log,
		Counts: true, Clock: s.clock,
	})
	s.lendSpans()
	s.meter.agent = c.agent
	s.meter.count(func() []total { return agentTotals(runner.Stats()) })
	return s.handler(runner.HandleSQS, TasksQueue(c.agent)), nil
}

// Supervisor makes the handler of the schedule's events from the environment: each is a sweep, and
// what the event says does not matter. The error names everything that is wrong with the environment.
func Supervisor(ctx context.Context, getenv func(string) string) (func(context.Context, events.EventBridgeEvent) error, error) {
	p, err := readSupervisor(getenv)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, p)
	if err != nil {
		return nil, err
	}
	sup := supervisor.New(supervisor.Config{
		Index: s.store, Queue: s.sender, Events: EventsQueue, Leases: s.store, Holder: s.instance(), Auditor: s.store, Places: s.store,
		Unpolled: time.Second, Ahead: limits.RemindWithin, AtOnce: SweptAtOnce, AskAgain: time.Second, Logger: s.log,
	})
	var swept atomic.Int64
	s.meter.count(func() []total { return append(supervisorTotals(sup.Stats()), total{MetricSwept, swept.Load()}) })
	return func(ctx context.Context, _ events.EventBridgeEvent) error { return s.sweep(ctx, sup, &swept) }, nil
}

// sweep sweeps until shortly before the end of the invocation. Stopping then is no error: the next sweep begins with
// the oldest. swept counts complete sweeps that left no shard to another holder: a leaseholder need not sweep, and then
// no process would.
func (s *stack) sweep(ctx context.Context, sup sweeper, swept *atomic.Int64) error {
	defer s.meter.write(ctx)
	within, cancel := shorten(ctx)
	defer cancel()
	began := time.Now()
	result, err := sup.Sweep(within)
	s.meter.sample(watch.Sample{Metric: watch.SweepDuration, Value: time.Since(began).Seconds()})
	cut := within.Err() != nil
	if (err == nil || cut && ctx.Err() == nil) && result.Leased == 0 {
		swept.Add(1)
	}
	s.log.InfoContext(ctx, "swept", "overdue", result.Overdue, "sent", result.Sent, "ahead", result.Ahead, "leased", result.Leased, "braked", result.Braked, "cut", cut)
	if cut && ctx.Err() == nil {
		return nil
	}
	if err == nil && !result.Braked {
		s.audit(within, sup)
	}
	return err
}

// audit audits one more page, after a sweep that left time. Its failure is no failed sweep: the next audit covers the
// same jobs.
func (s *stack) audit(ctx context.Context, sup sweeper) {
	if _, err := sup.Audit(ctx); err != nil {
		s.log.WarnContext(ctx, "audit goes on with the next sweep", "error", err)
	}
}

// sweeper is a Supervisor.
type sweeper interface {
	Sweep(ctx context.Context) (supervisor.Result, error)
	Audit(ctx context.Context) (supervisor.AuditResult, error)
}

// handler makes the handler that Lambda calls from inner, which ends in time to give back failed messages. Spans are
// sent last, after all important work.
func (s *stack) handler(inner queue.Handler, name string) queue.Handler {
	handle := sqsbatch.Backoff(func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		defer s.meter.write(ctx)
		ctx, cancel := shorten(ctx)
		defer cancel()
		return inner(ctx, event)
	}, s.queues, name, sqsbatch.BackoffOptions{Logger: s.log})
	return func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		defer s.sendSpans(ctx)
		return handle(ctx, event)
	}
}

// shorten ends ctx early, by keptBack.
func shorten(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(keptBack, time.Until(end)/4)))
}

// instance names this process in LockedBy: the function, and a part that distinguishes its environments.
func (s *stack) instance() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails, says its documentation
	return s.function + "-" + hex.EncodeToString(id[:])
}
