package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/limits"
	watch "github.com/makegood-dev/makegood/internal/telemetry"
	"github.com/makegood-dev/makegood/telemetry"
)

// at is a moment of the stories below.
var at = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// order is a workflow of one step that can be undone.
var order = makegood.Workflow{Name: "order", Steps: []makegood.Step{{Name: "charge", Agent: "payments", Action: "charge"}}}

// with is a job of that workflow, its step as it is given.
func with(step job.Activity) job.Job {
	return job.Job{
		ID: "a", Birth: "b", Workflow: "order", Round: 1, Rev: 7, CreatedAt: at.Add(-time.Hour), ProcessState: makegood.JobProcessing, Desired: makegood.JobProcessed,
		Steps: []job.StepState{{Name: "charge", Forward: step}},
	}
}

// happened tells a Watch of events, and returns the spans that it makes, and the samples.
func happened(t *testing.T, all ...job.Happened) (spans tracetest.SpanStubs, samples []watch.Sample) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	there := watch.Providers{Traces: sdktrace.NewTracerProvider(sdktrace.WithSyncer(out), sdktrace.WithIDGenerator(telemetry.IDs{}))}
	w := watch.New(there, slog.Default()).Tally(func(s watch.Sample) { samples = append(samples, s) })
	w.Happened(context.Background(), all)
	return out.GetSpans(), samples
}

// attribute is what a span says; empty: nothing.
func attribute(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// Each way in which an attempt ends is the outcome of its span and of its sample; which of them failed, an error.
func TestEachEndOfAnAttemptIsItsOutcome(t *testing.T) {
	for kind, c := range map[makegood.EntryKind]struct{ outcome, failure string }{
		makegood.EntryFailed: {"failed", "card"}, makegood.EntrySilent: {"silent", "silent"}, makegood.EntryInterrupted: {"interrupted", "interrupted"},
		makegood.EntryRefused: {"refused", "refused"}, makegood.EntryWithdrawn: {"withdrawn", ""},
	} {
		entry := job.Entry{Kind: kind, Step: "charge", Attempt: 2, StartedAt: at.Add(-time.Second)}
		if kind == makegood.EntryFailed {
			entry.Error = &job.StepError{Kind: "card"}
		}
		spans, samples := happened(t, job.Happened{
			Workflow: order, Before: with(job.Activity{State: job.Dispatched, Attempt: 2, At: at.Add(-3 * time.Second), Resent: 1}), After: with(job.Activity{State: job.Backoff, Attempt: 2}),
			Event: job.DeadlinePassed{}, Entries: []job.Entry{entry}, At: at,
		})
		if len(spans) != 1 || attribute(spans[0], "makegood.outcome") != c.outcome || attribute(spans[0], "error.type") != c.failure || attribute(spans[0], "makegood.attempt") != "2" {
			t.Errorf("%s: got %v, want one span of attempt 2, %s, %q", kind, spans, c.outcome, c.failure)
		}
		if attribute(spans[0], "makegood.resent") != "1" || len(spans[0].Events) != 1 || spans[0].EndTime.Sub(spans[0].StartTime) != 3*time.Second {
			t.Errorf("%s: got %+v, want three seconds with a claim, sent again once", kind, spans[0])
		}
		want := []string{"makegood.attempts 1 " + c.outcome, "makegood.queue.duration 2 ", "messaging.process.duration 1 " + c.outcome}
		var got []string
		for _, s := range samples {
			got = append(got, fmt.Sprintf("%s %v %s", s.Metric, s.Value, s.Outcome))
			if s.Metric == watch.AttemptDuration && s.Failed != (c.failure != "") {
				t.Errorf("%s: got %+v, want it to say whether it failed", kind, s)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got the samples %q, want %q", kind, got, want)
		}
	}
}

// An attempt that another job does has a span, since that job's trace hangs on it, whichever event found its end.
func TestAnAttemptThatAnotherJobDoesHasASpan(t *testing.T) {
	child := makegood.Workflow{Name: "order", Steps: []makegood.Step{{Name: "charge", Agent: makegood.AgentWorkflow, Action: "paying"}}}
	out := with(job.Activity{State: job.Dispatched, Attempt: 2, At: at.Add(-3 * time.Second)})
	for _, x := range []struct {
		event job.Event
		after job.Activity
		spans int
	}{
		{job.ChildEnded{Step: "charge", Attempt: 2}, job.Activity{State: job.Done, Attempt: 2}, 1},
		{job.DeadlinePassed{}, job.Activity{State: job.Done, Attempt: 2}, 1},
		{job.DeadlinePassed{}, job.Activity{State: job.Dispatched, Attempt: 3}, 0},
	} {
		spans, _ := happened(t, job.Happened{Workflow: child, Before: out, After: with(x.after), Event: x.event, At: at})
		if len(spans) != x.spans || x.spans > 0 && (attribute(spans[0], "makegood.outcome") != "succeeded" || spans[0].EndTime.Sub(spans[0].StartTime) != 3*time.Second) {
			t.Errorf("%T, %s: got %v, want %d of three seconds that succeeded", x.event, x.after.State, spans, x.spans)
		}
	}
}

// What people ask and settle, and what becomes of the job, are spans of one moment; a round has one with a link to the round before.
func TestWhatBecomesOfAJobIsASpanOfOneMoment(t *testing.T) {
	done := job.Activity{State: job.Done, Attempt: 1}
	before, stopped, again, undone := with(done), with(done), with(done), with(done)
	stopped.ProcessState = makegood.JobError
	again.Round = 2
	undone.ProcessState, undone.Desired = makegood.JobUndone, makegood.JobUndone
	for name, c := range map[string]struct {
		h       job.Happened
		want    []string
		failure bool
	}{
		"stop":      {job.Happened{Before: before, After: stopped, Event: job.DeadlinePassed{}}, []string{"stop"}, true},
		"request":   {job.Happened{Before: stopped, After: before, Event: job.Requested{}, Entries: []job.Entry{{Kind: makegood.EntryRequest, Verb: makegood.VerbResubmit}}}, []string{"request"}, false},
		"settle":    {job.Happened{Before: stopped, After: before, Event: job.Settled{}, Entries: []job.Entry{{Kind: makegood.EntrySettled, Step: "charge"}}}, []string{"settle"}, false},
		"round":     {job.Happened{Before: before, After: again, Event: job.Requested{}}, []string{"round"}, false},
		"turn, end": {job.Happened{Before: before, After: undone, Event: job.DeadlinePassed{}}, []string{"turn", "end order"}, false},
	} {
		c.h.Workflow, c.h.At = order, at
		spans, _ := happened(t, c.h)
		var got []string
		for _, s := range spans {
			got = append(got, s.Name)
			if !s.StartTime.Equal(s.EndTime) || (s.Status.Description != "" || attribute(s, "error.type") != "") != c.failure {
				t.Errorf("%s: got %+v, want one moment, and an error only where the job stopped", name, s)
			}
			if links := len(s.Links); links != strings.Count(s.Name, "round") {
				t.Errorf("%s: got %d links, want one from a round to the one before", name, links)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got the spans %q, want %q", name, got, c.want)
		}
	}
}

// Every metric has a name, a unit and a description of its own, and every sample is of one that is described.
func TestEveryMetricIsDescribed(t *testing.T) {
	seen := map[watch.Metric]bool{}
	for _, d := range watch.Metrics() {
		if seen[d.Metric] || d.Unit == "" || d.Says == "" {
			t.Errorf("got %+v, want a name of its own, a unit and a description", d)
		}
		seen[d.Metric] = true
	}
	due := at.Add(-time.Minute)
	ended := with(job.Activity{State: job.Done, Attempt: 1, StartedAt: at.Add(-time.Second)})
	ended.ProcessState = makegood.JobProcessed
	_, samples := happened(t, job.Happened{Workflow: order, Before: with(job.Activity{}), After: ended, Event: job.DeadlinePassed{Key: due}, At: at},
		job.Happened{Workflow: order, After: with(job.Activity{}), Event: job.Submitted{}, At: at})
	want := map[watch.Metric]float64{watch.JobsEnded: 1, watch.JobDuration: 3600, watch.StepDuration: 1, watch.Lateness: 60, watch.JobsSubmitted: 1}
	for _, s := range samples {
		if value, is := want[s.Metric]; !is || s.Value != value || !seen[s.Metric] {
			t.Errorf("got %+v, want %v of a metric that is described", s, value)
		}
		delete(want, s.Metric)
	}
	if len(want) > 0 {
		t.Errorf("got no sample of %v", want)
	}
}

// A metric distinguishes MaxMetricNames names, and knows those for ever.
func TestNamesAreBounded(t *testing.T) {
	var n watch.Names
	for i := range limits.MaxMetricNames {
		if got := n.Bound(fmt.Sprint(i)); got != fmt.Sprint(i) {
			t.Fatalf("got %s, want %d", got, i)
		}
	}
	if got := n.Bound("one more"); got != watch.Other || n.Bound("0") != "0" {
		t.Errorf("got %s and %s, want %s and 0", got, n.Bound("0"), watch.Other)
	}
}
