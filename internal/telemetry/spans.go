package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/job"
)

// The attributes of spans. docs/telemetry.md describes them.
const (
	keyJob      = attribute.Key("makegood.job.id")
	keyWorkflow = attribute.Key("makegood.workflow")
	keyState    = attribute.Key("makegood.job.state")
	keyFailures = attribute.Key("makegood.job.failures")
	keyDuration = attribute.Key("makegood.job.duration")
	keyRound    = attribute.Key("makegood.round")
	keyStep     = attribute.Key("makegood.step")
	keyUndo     = attribute.Key("makegood.undo")
	keyAttempt  = attribute.Key("makegood.attempt")
	keyAgent    = attribute.Key("makegood.agent")
	keyAction   = attribute.Key("makegood.action")
	keyOutcome  = attribute.Key("makegood.outcome")
	keyResent   = attribute.Key("makegood.resent")
	keyWaited   = attribute.Key("makegood.wait.duration")
	keyVerb     = attribute.Key("makegood.verb")
	// OpenTelemetry's own.
	keyError     = attribute.Key("error.type")
	keyOperation = attribute.Key("messaging.operation.type")
)

// eventClaimed is the event of an attempt's span at which its agent began: before it, the attempt waited in a queue.
const eventClaimed = "claimed"

// span is one as it is to be made: whole.
type span struct {
	name       string
	id         trace.SpanID
	parent     trace.SpanContext
	from, to   time.Time
	kind       trace.SpanKind
	attributes []attribute.KeyValue
	// claimed is when the agent began; zero: it did not, or this is unknown.
	claimed time.Time
	// failure is the cause of the failure, in a word; empty: it did not fail.
	failure string
	links   []trace.SpanContext
}

// trace makes the spans of what an event has brought about.
func (w *Watch) trace(ctx context.Context, h job.Happened, s seen) {
	if !w.keeps(h.After) {
		return
	}
	if s.born {
		w.make(ctx, h.After, w.submission(h))
	}
	for _, a := range s.attempts {
		w.make(ctx, h.After, w.attemptSpan(h, a))
	}
	for _, waited := range s.waits {
		w.make(ctx, h.After, w.waitSpan(h, waited))
	}
	for _, m := range marks(h, s) {
		m.parent = w.context(h.After, RoundSpan(h.After, h.After.Round))
		w.make(ctx, h.After, m)
	}
	if s.round > 0 {
		w.make(ctx, h.After, w.roundSpan(h, s.round))
	}
}

// submission is the root of a job's trace, or, where the submitter brought a trace, what hangs on that.
func (w *Watch) submission(h job.Happened) span {
	return span{
		name: "submit " + h.After.Workflow, id: RootSpan(h.After), parent: Submitter(h.After),
		from: h.After.CreatedAt, to: h.At, kind: trace.SpanKindProducer,
	}
}

// roundSpan is above the attempts of a round that is not the first.
func (w *Watch) roundSpan(h job.Happened, round int) span {
	return span{
		name: "round", id: RoundSpan(h.After, round), parent: w.context(h.After, RootSpan(h.After)), from: h.At, to: h.At,
		attributes: []attribute.KeyValue{keyRound.Int(round)},
		links:      []trace.SpanContext{w.context(h.After, RoundSpan(h.After, round-1))},
	}
}

// attemptSpan is the span of an attempt: from its making until the Scheduler learned of its end.
func (w *Watch) attemptSpan(h job.Happened, a attempt) span {
	made := span{
		name: a.name(), id: AttemptSpan(h.After, a.step, a.number), parent: w.context(h.After, RoundSpan(h.Before, h.Before.Round)),
		from: a.opened, to: h.At, kind: trace.SpanKindConsumer, claimed: a.claimed,
		attributes: append(a.attributes(), keyRound.Int(h.Before.Round), keyAttempt.Int(a.number), keyOutcome.String(string(a.outcome)), keyOperation.String("process")),
	}
	if a.resent > 0 {
		made.attributes = append(made.attributes, keyResent.Int(a.resent))
	}
	made.failure = a.failure()
	return made
}

// failure is what an attempt failed of, in a word; empty: it did not fail.
func (a attempt) failure() string {
	switch a.outcome {
	case Failed, Silent, Interrupted, Refused:
		return cmp.Or(a.kind, string(a.outcome))
	default:
		return ""
	}
}

// waitSpan is a span at the end of a wait, with the length of the wait and a link to the attempt that began it: a
// span should not last as long as a person thinks.
func (w *Watch) waitSpan(h job.Happened, a wait) span {
	made := span{
		name: "end of wait " + a.name(), id: MarkSpan(h.After, "wait", a.step, strconv.Itoa(a.number)),
		parent: w.context(h.After, RoundSpan(h.Before, h.Before.Round)), from: h.At, to: h.At,
		attributes: append(a.attributes(), keyRound.Int(h.Before.Round), keyAttempt.Int(a.number), keyOutcome.String(string(a.outcome)), keyWaited.Float64(elapsed(a.began, h.At))),
	}
	if domain.GetsTasks(a.agent) {
		made.links = []trace.SpanContext{w.context(h.After, AttemptSpan(h.After, a.step, a.number))}
	}
	if a.outcome == Failed {
		made.failure = string(Failed)
	}
	return made
}

// marks are the spans of the events of the job as a whole. Each is of one moment.
func marks(h job.Happened, s seen) (all []span) {
	j := h.After
	mark := func(name, what string, attributes ...attribute.KeyValue) *span {
		// The first save after the birth is of revision 1, so that no two marks of one name are of the same.
		id := MarkSpan(j, name, what, strconv.FormatInt(h.Before.Rev, 10), h.Event.Cause())
		all = append(all, span{name: name, id: id, from: h.At, to: h.At, attributes: append(attributes, keyRound.Int(j.Round))})
		return &all[len(all)-1]
	}
	if s.request != "" {
		mark("request", string(s.request), keyVerb.String(string(s.request)))
	}
	for _, e := range s.settled {
		mark("settle", e.Step, keyStep.String(e.Step), keyUndo.Bool(e.Undo))
	}
	if s.turned {
		mark("turn", "", keyState.String(string(j.Desired)))
	}
	if s.stopped {
		mark("stop", "", keyState.String(string(j.ProcessState))).failure = string(makegood.JobError)
	}
	if s.finished {
		mark("end "+j.Workflow, "", keyState.String(string(j.ProcessState)), keyFailures.Int(j.FailureCount), keyDuration.Float64(elapsed(j.CreatedAt, h.At)))
	}
	return all
}

func (a side) name() string {
	if a.undo {
		return "undo " + a.step
	}
	return a.step
}

func (a side) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{keyStep.String(a.step), keyUndo.Bool(a.undo), keyAgent.String(a.agent), keyAction.String(a.action)}
}

// make makes a span, whole, under the id that it is to have.
func (w *Watch) make(ctx context.Context, j job.Job, s span) {
	ctx = WithIDs(trace.ContextWithRemoteSpanContext(ctx, s.parent), TraceID(j), s.id)
	options := []trace.SpanStartOption{
		trace.WithTimestamp(s.from), trace.WithSpanKind(s.kind),
		trace.WithAttributes(append(s.attributes, keyJob.String(j.ID), keyWorkflow.String(j.Workflow))...),
	}
	for _, link := range s.links {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	_, made := w.tracer.Start(ctx, s.name, options...)
	w.strange.look(made.SpanContext(), s.id)
	if !s.claimed.IsZero() {
		made.AddEvent(eventClaimed, trace.WithTimestamp(between(s.from, s.claimed, s.to)))
	}
	if s.failure != "" {
		made.SetAttributes(keyError.String(s.failure))
		made.SetStatus(codes.Error, "")
	}
	made.End(trace.WithTimestamp(between(s.from, s.to, s.to)))
}

// between is a time, but not before from nor after to: an agent says when it began, by a clock of its own.
func between(from, at, to time.Time) time.Time {
	if at.After(to) {
		at = to
	}
	if at.Before(from) {
		return from
	}
	return at
}

// elapsed is in seconds.
func elapsed(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }

// strange warns of a provider that does not take the ids that it is given: its spans would be in traces of their own.
type strange struct {
	logger *slog.Logger
	once   sync.Once
}

func (s *strange) look(made trace.SpanContext, want trace.SpanID) {
	if made.SpanID() == want || !made.IsSampled() {
		return
	}
	s.once.Do(func() {
		s.logger.Warn("the TracerProvider makes ids of its own, so spans do not find their parents: give it telemetry.IDs (sdktrace.WithIDGenerator)")
	})
}
