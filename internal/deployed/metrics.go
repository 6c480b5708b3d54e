package deployed

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"

	"github.com/makegood-dev/makegood/internal/agentrun"
	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/scheduler"
	"github.com/makegood-dev/makegood/internal/supervisor"
	"github.com/makegood-dev/makegood/internal/timetable"
)

// The dimensions of the metrics: all are under DimensionStack, those of agents under DimensionAgent as well; with
// VarMetricsByName those of MetricsByAgent and MetricsByWorkflow under these, too.
const (
	MetricsNamespace  = "Makegood"
	DimensionStack    = "Stack"
	DimensionAgent    = "Agent"
	DimensionWorkflow = "Workflow"
)

// The metrics: times are in milliseconds, all others are counts. template.yaml uses some in its alarms.
const (
	// Of the Scheduler: the outcomes of events, and of jobs.
	MetricApplied     = "Applied"     // events that changed their job
	MetricReplies     = "Replies"     // applied events that are replies of agents
	MetricDuplicates  = "Duplicates"  // events that were applied before
	MetricStale       = "Stale"       // events that came too late to count
	MetricRefused     = "Refused"     // requests that the table of verbs refuses
	MetricUnknown     = "Unknown"     // events of jobs that are not there
	MetricConflicts   = "Conflicts"   // saves that were decided again
	MetricClosed      = "Closed"      // attempts that were closed because they are not wanted any more
	MetricLies        = "Lies"        // claims that could not be true, and were overruled
	MetricStood       = "Stood"       // jobs that stood still, and were moved on
	MetricSaved       = "Saved"       // saves
	MetricTasks       = "Tasks"       // tasks sent
	MetricReminders   = "Reminders"   // delayed events for jobs that are due soon
	MetricUnstarted   = "Unstarted"   // tasks due again because no agent had claimed them
	MetricUnpublished = "Unpublished" // tries to publish changes of a job that failed
	MetricJobsInError = "JobsInError" // jobs that came into Error
	MetricAlerts      = "Alerts"      // alerts to an operator
	MetricFires       = "Fires"       // fires of schedules that made a job
	MetricFiresMissed = "FiresMissed" // fires left out by their schedule's rules for missed ones and overlaps
	MetricFiresFailed = "FiresFailed" // fires that cannot make a job
	// Of agents: how tasks ended.
	MetricClaimed    = "Claimed"    // tasks that were claimed
	MetricClaimsLost = "ClaimsLost" // another claim held the attempt
	MetricWithdrawn  = "Withdrawn"  // the attempt was not wanted any more
	MetricSucceeded  = "Succeeded"  // attempts that succeeded
	MetricWaiting    = "Waiting"    // attempts after which an outside caller completes the step
	MetricFailed     = "Failed"     // attempts that failed
	MetricLate       = "Late"       // attempts without a reply past CompleteBy
	MetricHeld       = "Held"       // tasks that were let go, because their agent or workflow is paused
	// Of the Supervisor.
	MetricSwept           = "Swept"           // complete sweeps that left no shard to another holder
	MetricOverdue         = "Overdue"         // jobs found overdue
	MetricWoken           = "Woken"           // jobs that the Scheduler was told of
	MetricAhead           = "Ahead"           // woken jobs that were not due yet
	MetricQueueDepthBrake = "QueueDepthBrake" // sweeps that held back because the events queue was deep
	MetricAudited         = "Audited"         // jobs that the audit looked at
	MetricStray           = "Stray"           // jobs with a wrong entry in the index
	// Of the Scheduler and the doors: durations and outcomes.
	MetricQueueTime         = "QueueTime"         // an attempt in the queue of its agent
	MetricAttemptTime       = "AttemptTime"       // an attempt, from its claim until its end was known
	MetricStepTime          = "StepTime"          // a step, or its undo, over all its attempts
	MetricJobTime           = "JobTime"           // a job, from its birth to its end
	MetricLateness          = "Lateness"          // how long after its time a due job was acted on
	MetricSweepTime         = "SweepTime"         // a sweep of the Supervisor
	MetricAttemptsSucceeded = "AttemptsSucceeded" // attempts that succeeded, by any agent
	MetricAttemptsFailed    = "AttemptsFailed"    // attempts that failed, as their agents said
	MetricAttemptsSilent    = "AttemptsSilent"    // attempts that were silent until their time ran out
	MetricAttemptsWaiting   = "AttemptsWaiting"   // attempts after which an outside caller completes the step
	MetricAttemptsWithdrawn = "AttemptsWithdrawn" // attempts that were not wanted any more
	MetricAttemptsRefused   = "AttemptsRefused"   // attempts with a task that could not be sent
	MetricJobsSubmitted     = "JobsSubmitted"     // jobs that were stored
	MetricJobsProcessed     = "JobsProcessed"     // jobs that ended Processed
	MetricJobsUndone        = "JobsUndone"        // jobs that ended Undone
	MetricJobsCancelled     = "JobsCancelled"     // jobs that ended Cancelled
	// Of all functions.
	MetricPoison    = "Poison"    // messages put into quarantine
	MetricLeft      = "Left"      // messages left to a newer release, and the deadlines of its jobs
	MetricThrottles = "Throttles" // answers of AWS that ask for patience
)

// Metrics are the names of all metrics.
func Metrics() []string {
	return []string{
		MetricApplied, MetricReplies, MetricDuplicates, MetricStale, MetricRefused, MetricUnknown, MetricConflicts, MetricClosed, MetricLies, MetricStood, MetricSaved, MetricTasks, MetricReminders,
		MetricUnstarted, MetricUnpublished, MetricJobsInError, MetricAlerts, MetricFires, MetricFiresMissed, MetricFiresFailed, MetricClaimed, MetricClaimsLost, MetricWithdrawn, MetricSucceeded, MetricWaiting,
		MetricFailed, MetricLate, MetricHeld, MetricSwept, MetricOverdue, MetricWoken, MetricAhead, MetricQueueDepthBrake, MetricAudited, MetricStray, MetricPoison, MetricLeft, MetricThrottles,
		MetricQueueTime, MetricAttemptTime, MetricStepTime, MetricJobTime, MetricLateness, MetricSweepTime, MetricAttemptsSucceeded, MetricAttemptsFailed, MetricAttemptsSilent,
		MetricAttemptsWaiting, MetricAttemptsWithdrawn, MetricAttemptsRefused, MetricJobsSubmitted, MetricJobsProcessed, MetricJobsUndone, MetricJobsCancelled,
	}
}

// total is a running total under the name of its metric.
type total struct {
	name  string
	value int64
}

// meter writes the growth of totals, and the samples, a line per invocation; with byName a further line per name.
type meter struct {
	out          io.Writer
	log          *slog.Logger
	now          func() time.Time
	stack, agent string
	byName       bool
	throttles    atomic.Int64
	names        names

	mu      sync.Mutex
	sources []func() []total
	told    map[string]int64
	sampled map[filing]map[string]*series
}

func newMeter(out io.Writer, log *slog.Logger, stack string) *meter {
	m := &meter{out: out, log: log, now: time.Now, stack: stack, told: map[string]int64{}}
	m.count(func() []total { return []total{{MetricThrottles, m.throttles.Load()}} })
	return m
}

// count adds totals to those that are written, as they are then.
func (m *meter) count(totals func() []total) { m.sources = append(m.sources, totals) }

// totals are all totals as they are now.
func (m *meter) totals() (all []total) {
	for _, source := range m.sources {
		all = append(all, source()...)
	}
	return all
}

// write writes the changes since its last call, if there are any.
func (m *meter) write(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records() {
		line, err := r.Line()
		if err == nil {
			_, err = m.out.Write(line)
		}
		if err != nil {
			m.log.ErrorContext(ctx, "metrics were not written", "error", err)
		}
	}
}

// records are the lines to write.
func (m *meter) records() (all []emfRecord) {
	whole := emfRecord{
		Namespace: MetricsNamespace, At: m.now(), Sets: [][]string{{DimensionStack}}, Values: map[string]string{DimensionStack: m.stack},
	}
	if m.agent != "" {
		whole.Sets = append(whole.Sets, []string{DimensionStack, DimensionAgent})
		whole.Values[DimensionAgent] = m.agent
	}
	whole.Metrics = append(m.grown(), m.takeSampled(filing{})...)
	all = append(all, split(whole)...)
	for at := range m.sampled {
		all = append(all, split(emfRecord{
			Namespace: MetricsNamespace, At: whole.At, Sets: [][]string{{DimensionStack, at.dimension}},
			Values: map[string]string{DimensionStack: m.stack, at.dimension: at.name}, Metrics: m.takeSampled(at),
		})...)
	}
	return all
}

// grown is the growth of totals.
func (m *meter) grown() (all []emfMetric) {
	for _, t := range m.totals() {
		if grown := t.value - m.told[t.name]; grown != 0 {
			all = append(all, emfMetric{Name: t.name, Unit: emfCount, Value: float64(grown)})
		}
		m.told[t.name] = t.value
	}
	return all
}

func schedulerTotals(s scheduler.Stats) []total {
	return []total{
		{MetricApplied, s.Applied},
		{MetricReplies, s.Replies},
		{MetricDuplicates, s.Duplicate},
		{MetricStale, s.Stale},
		{MetricRefused, s.Refused},
		{MetricUnknown, s.Unknown},
		{MetricConflicts, s.Conflicts},
		{MetricClosed, s.Closed},
		{MetricLies, s.Lies},
		{MetricStood, s.Stood},
		{MetricSaved, s.Saves},
		{MetricTasks, s.Tasks},
		{MetricReminders, s.Reminders},
		{MetricUnstarted, s.Unstarted},
		{MetricUnpublished, s.Unpublished},
		{MetricPoison, s.Poisoned},
		{MetricLeft, s.Left},
		{MetricJobsInError, s.Stopped + s.Parked},
	}
}

func timetableTotals(s timetable.Stats) []total {
	return []total{
		{MetricFires, s.Fired},
		{MetricFiresMissed, s.Missed},
		{MetricFiresFailed, s.Failed},
	}
}

func agentTotals(s agentrun.Stats) []total {
	return []total{
		{MetricClaimed, s.Claimed},
		{MetricClaimsLost, s.Taken},
		{MetricWithdrawn, s.Withdrawn},
		{MetricSucceeded, s.Succeeded},
		{MetricWaiting, s.Waiting},
		{MetricFailed, s.Failed},
		{MetricLate, s.Late},
		{MetricHeld, s.Held},
		{MetricPoison, s.Poisoned},
		{MetricLeft, s.Left},
	}
}

func supervisorTotals(s supervisor.Stats) []total {
	return []total{
		{MetricOverdue, s.Overdue},
		{MetricWoken, s.Sent},
		{MetricAhead, s.Ahead},
		{MetricQueueDepthBrake, s.Braked},
		{MetricAudited, s.Audited},
		{MetricStray, s.Stray},
	}
}

// alerts counts the alerts to an operator.
type alerts struct {
	notify.Notifier
	told atomic.Int64
}

// Announce tells, and counts an Error.
func (a *alerts) Announce(ctx context.Context, n notify.Notice) error {
	err := a.Notifier.Announce(ctx, n)
	if err == nil && n.ForOperator() {
		a.told.Add(1)
	}
	return err
}

// AgentAlert tells, and counts it.
func (a *alerts) AgentAlert(ctx context.Context, agent, paused string) error {
	err := a.Notifier.AgentAlert(ctx, agent, paused)
	if err == nil {
		a.told.Add(1)
	}
	return err
}

// countThrottles counts every try of every request that AWS answers with throttling: the SDK retries by itself, so
// these would go unseen.
func countThrottles(c *aws.Config, throttles *atomic.Int64) {
	asked := retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}
	count := middleware.FinalizeMiddlewareFunc("CountThrottles", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
		out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
	) {
		out, metadata, err = next.HandleFinalize(ctx, in)
		if asked.IsErrorThrottle(err) == aws.TrueTernary {
			throttles.Add(1)
		}
		return out, metadata, err
	})
	c.APIOptions = append(slices.Clip(c.APIOptions), func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(count, "Retry", middleware.After)
	})
}
