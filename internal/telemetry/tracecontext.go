package telemetry

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood/internal/job"
)

// TraceparentHeader is the name of the header that carries a trace context, as the W3C gave it.
const TraceparentHeader = "traceparent"

// TraceID is the trace of a job: that of its submitter, or one that is made from its id and the nonce of its birth.
func TraceID(j job.Job) trace.TraceID {
	if sc := Submitter(j); sc.IsValid() {
		return sc.TraceID()
	}
	return trace.TraceID(sum(j, "trace")[:16])
}

// storedBytes is how long a trace context is as a job keeps it: trace, span and flags.
const storedBytes = 16 + 8 + 1

// StoredSpan is a span as a job keeps it; nil for none.
func StoredSpan(sc trace.SpanContext) []byte {
	if !sc.IsValid() {
		return nil
	}
	id, span := sc.TraceID(), sc.SpanID()
	return append(append(append(make([]byte, 0, storedBytes), id[:]...), span[:]...), byte(sc.TraceFlags()))
}

// Submitter is the span under which a job was submitted; the zero value where it brought none.
func Submitter(j job.Job) trace.SpanContext {
	if len(j.Trace) != storedBytes {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(j.Trace[:16]), SpanID: trace.SpanID(j.Trace[16:24]), TraceFlags: trace.TraceFlags(j.Trace[24]), Remote: true,
	})
}

// RootSpan is the span of the job's submission. All others of its first round are its children.
func RootSpan(j job.Job) trace.SpanID { return spanID(j, "submit") }

// RoundSpan is the span under which the attempts of a round are: RootSpan for the first.
func RoundSpan(j job.Job, round int) trace.SpanID {
	if round <= 1 {
		return RootSpan(j)
	}
	return spanID(j, "round", strconv.Itoa(round))
}

// AttemptSpan is the span of an attempt of a step or its undo. A number is used once in the life of a step, whatever
// the round and the direction.
func AttemptSpan(j job.Job, step string, attempt int) trace.SpanID {
	return spanID(j, "attempt", step, strconv.Itoa(attempt))
}

// MarkSpan is the span of a momentary event of a job; name distinguishes it from all others.
func MarkSpan(j job.Job, name ...string) trace.SpanID {
	return spanID(j, append([]string{"mark"}, name...)...)
}

func spanID(j job.Job, parts ...string) trace.SpanID {
	return trace.SpanID(sum(j, parts...)[:8])
}

// sum is the hash of what names a thing of a job. No name has the byte that is between them.
func sum(j job.Job, parts ...string) []byte {
	hash := sha256.Sum256([]byte(j.ID + "\x00" + j.Birth + "\x00" + strings.Join(parts, "\x00")))
	return hash[:]
}

// SpanContext is a span of a job's trace, as a remote process would know it.
func SpanContext(id trace.TraceID, span trace.SpanID, sampled bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(0).WithSampled(sampled), Remote: true,
	})
}

// WriteTraceparent writes a span as a traceparent.
func WriteTraceparent(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier[TraceparentHeader]
}

// ReadTraceparent reads a traceparent. The zero value where it is none.
func ReadTraceparent(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{TraceparentHeader: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// Under is the span under which a job is submitted: the one that is named, or that of ctx; empty: there is none.
func Under(ctx context.Context, traceparent string) string {
	if sc := trace.SpanContextFromContext(ctx); traceparent == "" && sc.IsValid() {
		return WriteTraceparent(sc)
	}
	return traceparent
}

// Continue puts the span that a traceparent names into ctx, as the parent of spans begun under it. An invalid
// traceparent has no effect.
func Continue(ctx context.Context, traceparent string) context.Context {
	if sc := ReadTraceparent(traceparent); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	return ctx
}

type idsKey struct{}

// ids are those that a span is to have.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// WithIDs says which ids the span is to have that is begun under ctx.
func WithIDs(ctx context.Context, id trace.TraceID, span trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, ids{id, span})
}

// SpanIDs returns the ids for the span that begins under ctx; ok is false if none were set.
func SpanIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID, ok bool) {
	want, ok := ctx.Value(idsKey{}).(ids)
	return want.trace, want.span, ok
}

// The attributes by which log lines and spans are joined.
const (
	LogTrace = "trace_id"
	LogSpan  = "span_id"
)

// lines is a log that adds the span to each line.
type lines struct{ slog.Handler }

// LogLines adds to each line of a log the trace and the span of its context, where there is one.
func LogLines(inner slog.Handler) slog.Handler { return lines{inner} }

func (h lines) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone() // The caller may give it to others.
		r.AddAttrs(slog.String(LogTrace, sc.TraceID().String()), slog.String(LogSpan, sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h lines) WithAttrs(attrs []slog.Attr) slog.Handler { return lines{h.Handler.WithAttrs(attrs)} }

func (h lines) WithGroup(name string) slog.Handler { return lines{h.Handler.WithGroup(name)} }
