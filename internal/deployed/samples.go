package deployed

import (
	"maps"
	"math"
	"slices"

	"github.com/makegood-dev/makegood"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
)

// maxSampled is how many values of one metric are kept until the end of an invocation; further ones are dropped. A
// batch has ten messages.
const maxSampled = 1000

// filing is where samples are filed beside the stack: under an agent or a workflow. Zero: under the stack alone.
type filing struct{ dimension, name string }

// names bound how many agents and workflows an instance tells apart.
type names struct{ agents, workflows watch.Names }

// series has the samples of a metric: durations one by one, and counts as their sum.
type series struct {
	unit   emfUnit
	sum    float64
	values []float64
}

// MetricsByAgent are the metrics that VarMetricsByName files by agent, MetricsByWorkflow those by workflow.
func MetricsByAgent() []string {
	return []string{
		MetricQueueTime, MetricAttemptTime, MetricAttemptsSucceeded, MetricAttemptsFailed, MetricAttemptsSilent, MetricAttemptsWaiting, MetricAttemptsWithdrawn, MetricAttemptsRefused,
	}
}

// MetricsByWorkflow are those by workflow; see MetricsByAgent.
func MetricsByWorkflow() []string {
	return []string{MetricStepTime, MetricJobTime, MetricJobsSubmitted, MetricJobsProcessed, MetricJobsUndone, MetricJobsCancelled}
}

// sample keeps a sample for the line of this invocation. It drops samples without a metric of ours in CloudWatch:
// waits, and counts that the totals have already.
func (m *meter) sample(s watch.Sample) {
	name, unit := metricOf(s)
	if name == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(filing{}, name, unit, s.Value)
	if !m.byName {
		return
	}
	if slices.Contains(MetricsByAgent(), name) {
		m.keep(filing{DimensionAgent, m.names.agents.Bound(s.Agent)}, name, unit, s.Value)
	}
	if slices.Contains(MetricsByWorkflow(), name) {
		m.keep(filing{DimensionWorkflow, m.names.workflows.Bound(s.Workflow)}, name, unit, s.Value)
	}
}

func (m *meter) keep(at filing, name string, unit emfUnit, value float64) {
	if m.sampled == nil {
		m.sampled = map[filing]map[string]*series{}
	}
	if m.sampled[at] == nil {
		m.sampled[at] = map[string]*series{}
	}
	of := m.sampled[at][name]
	if of == nil {
		of = &series{unit: unit}
		m.sampled[at][name] = of
	}
	switch {
	case unit == emfCount:
		of.sum += value
	case len(of.values) < maxSampled:
		of.values = append(of.values, math.Round(value*1000))
	}
}

// takeSampled returns the samples filed there, and removes them.
func (m *meter) takeSampled(at filing) (all []emfMetric) {
	for _, name := range slices.Sorted(maps.Keys(m.sampled[at])) {
		of := m.sampled[at][name]
		all = append(all, emfMetric{Name: name, Unit: of.unit, Value: of.sum, Values: of.values})
	}
	delete(m.sampled, at)
	return all
}

// split makes as many records of one as its values need; none, if it has no metric.
func split(r emfRecord) (all []emfRecord) {
	for len(r.Metrics) > 0 {
		var rest []emfMetric
		for i, metric := range r.Metrics {
			if len(metric.Values) > maxEMFValues {
				r.Metrics[i].Values = metric.Values[:maxEMFValues]
				metric.Values = metric.Values[maxEMFValues:]
				rest = append(rest, metric)
			}
		}
		all = append(all, r)
		r.Metrics = rest
	}
	return all
}

// metricOf is CloudWatch's metric of a sample; empty: there is none.
func metricOf(s watch.Sample) (name string, unit emfUnit) {
	switch s.Metric {
	case watch.JobsSubmitted:
		return MetricJobsSubmitted, emfCount
	case watch.JobsEnded:
		return map[makegood.ProcessState]string{
			makegood.JobProcessed: MetricJobsProcessed, makegood.JobUndone: MetricJobsUndone, makegood.JobCancelled: MetricJobsCancelled,
		}[s.State], emfCount
	case watch.Attempts:
		return map[watch.Outcome]string{
			watch.Succeeded: MetricAttemptsSucceeded, watch.Failed: MetricAttemptsFailed, watch.Silent: MetricAttemptsSilent,
			watch.Waiting: MetricAttemptsWaiting, watch.Withdrawn: MetricAttemptsWithdrawn, watch.Refused: MetricAttemptsRefused,
		}[s.Outcome], emfCount
	default:
		return map[watch.Metric]string{
			watch.QueueDuration: MetricQueueTime, watch.AttemptDuration: MetricAttemptTime, watch.StepDuration: MetricStepTime,
			watch.JobDuration: MetricJobTime, watch.Lateness: MetricLateness, watch.SweepDuration: MetricSweepTime,
		}[s.Metric], emfMilliseconds
	}
}
