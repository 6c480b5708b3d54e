package telemetry

import (
	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
)

// Metric is the name of one, as OpenTelemetry has it.
type Metric string

// The metrics. Metrics describes them.
const (
	JobsSubmitted   Metric = "makegood.jobs.submitted"
	JobsEnded       Metric = "makegood.jobs.ended"
	JobsStopped     Metric = "makegood.jobs.stopped"
	JobDuration     Metric = "makegood.job.duration"
	Attempts        Metric = "makegood.attempts"
	QueueDuration   Metric = "makegood.queue.duration"
	AttemptDuration Metric = "messaging.process.duration"
	StepDuration    Metric = "makegood.step.duration"
	WaitDuration    Metric = "makegood.wait.duration"
	Lateness        Metric = "makegood.lateness"
	Sweeps          Metric = "makegood.sweeps"
	SweepDuration   Metric = "makegood.sweep.duration"
	SweepOverdue    Metric = "makegood.sweep.overdue"
	Spans           Metric = "makegood.telemetry.spans"
)

// seconds is the unit of durations, which are histograms; all others are counters.
const seconds = "s"

// Described is the description of a metric.
type Described struct {
	Metric Metric
	// Unit is OpenTelemetry's.
	Unit string
	Says string
	// By are the attributes that distinguish its samples.
	By []string
}

// Metrics describes all metrics.
func Metrics() []Described {
	workflow, agent, outcome, state := string(keyWorkflow), string(keyAgent), string(keyOutcome), string(keyState)
	return []Described{
		{JobsSubmitted, "{job}", "Jobs that were stored.", []string{workflow}},
		{JobsEnded, "{job}", "Jobs that came to an end, by it.", []string{workflow, state}},
		{JobsStopped, "{job}", "Jobs that came into Error, and wait for a person.", []string{workflow}},
		{JobDuration, seconds, "From a job's birth to its end.", []string{workflow, state}},
		{Attempts, "{attempt}", "Attempts that ended, by their outcome.", []string{workflow, agent, outcome}},
		{QueueDuration, seconds, "How long an attempt waited for its agent.", []string{agent}},
		{AttemptDuration, seconds, "From the claim of an attempt until its end was known.", []string{string(keyAgentQueue), string(keyError)}},
		{StepDuration, seconds, "From the first claim of a step, or of its undo, until it was done.", []string{workflow, string(keyStep), string(keyUndo)}},
		{WaitDuration, seconds, "How long a step waited for a person or a system outside.", []string{workflow, outcome}},
		{Lateness, seconds, "How long after its time a due deadline was acted on.", nil},
		{Sweeps, "{sweep}", "Sweeps of the Supervisor.", nil},
		{SweepDuration, seconds, "How long a sweep took.", nil},
		{SweepOverdue, "{job}", "Jobs that sweeps found overdue.", nil},
		{Spans, "{span}", "Spans that were sent, and that were dropped.", []string{outcome}},
	}
}

// Sample is one measurement: how many, or how many seconds. What its metric does not distinguish is empty.
type Sample struct {
	Metric                Metric
	Value                 float64
	Workflow, Agent, Step string
	Undo                  bool
	Outcome               Outcome
	State                 makegood.ProcessState
	// Failed says of an attempt that it did.
	Failed bool
}

// samples are what an event has brought about, in numbers.
func samples(h job.Happened, s seen) (all []Sample) {
	workflow := h.After.Workflow
	if s.born {
		all = append(all, Sample{Metric: JobsSubmitted, Value: 1, Workflow: workflow})
	}
	if s.stopped {
		all = append(all, Sample{Metric: JobsStopped, Value: 1, Workflow: workflow})
	}
	if s.finished {
		all = append(all, Sample{Metric: JobsEnded, Value: 1, Workflow: workflow, State: h.After.ProcessState},
			Sample{Metric: JobDuration, Value: elapsed(h.After.CreatedAt, h.At), Workflow: workflow, State: h.After.ProcessState})
	}
	for _, a := range s.attempts {
		all = append(all, Sample{Metric: Attempts, Value: 1, Workflow: workflow, Agent: a.agent, Outcome: a.outcome})
		if a.claimed.IsZero() {
			continue
		}
		claimed := between(a.opened, a.claimed, h.At)
		all = append(all, Sample{Metric: QueueDuration, Value: elapsed(a.opened, claimed), Agent: a.agent},
			Sample{Metric: AttemptDuration, Value: elapsed(claimed, h.At), Agent: a.agent, Outcome: a.outcome, Failed: a.failure() != ""})
	}
	for _, w := range s.waits {
		all = append(all, Sample{Metric: WaitDuration, Value: elapsed(w.began, h.At), Workflow: workflow, Outcome: w.outcome})
	}
	for _, done := range s.steps {
		if !done.began.IsZero() {
			all = append(all, Sample{Metric: StepDuration, Value: elapsed(done.began, h.At), Workflow: workflow, Step: done.step, Undo: done.undo})
		}
	}
	if due, is := h.Event.(job.DeadlinePassed); is && !due.Key.IsZero() {
		all = append(all, Sample{Metric: Lateness, Value: elapsed(due.Key, h.At)})
	}
	return all
}
