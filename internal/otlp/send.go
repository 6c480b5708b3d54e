package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxAnswerBytes is how much of a collector's answer is read, so that its connection can be used again.
const maxAnswerBytes = 64 << 10

// sender posts spans.
type sender struct {
	to       Destination
	resource *resourcepb.Resource
	schema   string
	client   http.Client
}

func newSender(to Destination, service *resource.Resource) *sender {
	return &sender{
		to: to, resource: &resourcepb.Resource{Attributes: attributes(service.Attributes())}, schema: service.SchemaURL(),
		// The headers may hold a key, which must not go to another host.
		client: http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// send posts spans once. A TracesData is the same on the wire as OTLP's request.
func (s *sender) send(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	all := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: s.resource, SchemaUrl: s.schema, ScopeSpans: byScope(spans)}}}
	body, err := proto.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	request.Header = s.to.Headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := s.client.Do(request)
	if asked, is := errors.AsType[*url.Error](err); is {
		err = asked.Err // It has the address, and the query may hold a key.
	}
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswerBytes)) // the body is of no use here
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("send spans: the collector answered %s", answer.Status)
	}
	return nil
}

// byScope sorts spans by their instrumentation scope.
func byScope(spans []sdktrace.ReadOnlySpan) (all []*tracepb.ScopeSpans) {
	known := map[instrumentation.Scope]*tracepb.ScopeSpans{}
	for _, span := range spans {
		scope := span.InstrumentationScope()
		of := known[scope]
		if of == nil {
			of = &tracepb.ScopeSpans{
				Scope:     &commonpb.InstrumentationScope{Name: scope.Name, Version: scope.Version, Attributes: attributes(scope.Attributes.ToSlice())},
				SchemaUrl: scope.SchemaURL,
			}
			known[scope] = of
			all = append(all, of)
		}
		of.Spans = append(of.Spans, encode(span))
	}
	return all
}

func encode(span sdktrace.ReadOnlySpan) *tracepb.Span {
	at, parent := span.SpanContext(), span.Parent()
	id, self := at.TraceID(), at.SpanID()
	made := &tracepb.Span{
		TraceId: id[:], SpanId: self[:], TraceState: at.TraceState().String(), Flags: flags(at, parent),
		Name: span.Name(), Kind: tracepb.Span_SpanKind(span.SpanKind()), // the numbers are the same, which a test holds
		StartTimeUnixNano: nanos(span.StartTime()), EndTimeUnixNano: nanos(span.EndTime()),
		Attributes: attributes(span.Attributes()), DroppedAttributesCount: count(span.DroppedAttributes()),
		DroppedEventsCount: count(span.DroppedEvents()), DroppedLinksCount: count(span.DroppedLinks()),
		Status: status(span.Status()),
	}
	if parent.SpanID().IsValid() {
		above := parent.SpanID()
		made.ParentSpanId = above[:]
	}
	for _, e := range span.Events() {
		made.Events = append(made.Events, &tracepb.Span_Event{
			Name: e.Name, TimeUnixNano: nanos(e.Time), Attributes: attributes(e.Attributes), DroppedAttributesCount: count(e.DroppedAttributeCount),
		})
	}
	for _, l := range span.Links() {
		id, other := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		made.Links = append(made.Links, &tracepb.Span_Link{
			TraceId: id[:], SpanId: other[:], TraceState: l.SpanContext.TraceState().String(), Flags: flags(l.SpanContext, l.SpanContext),
			Attributes: attributes(l.Attributes), DroppedAttributesCount: count(l.DroppedAttributeCount),
		})
	}
	return made
}

// flags are those of W3C, and whether what a span is under, or linked to, is of another process.
func flags(of, above trace.SpanContext) uint32 {
	all := uint32(of.TraceFlags()) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if above.IsRemote() {
		all |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return all
}

func status(s sdktrace.Status) *tracepb.Status {
	switch s.Code {
	case codes.Ok:
		return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK}
	case codes.Error:
		return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Description}
	default:
		return &tracepb.Status{}
	}
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) } //nolint:gosec // not negative

func count(n int) uint32 { return uint32(max(0, n)) } //nolint:gosec // no span has four thousand million of anything

func attributes(all []attribute.KeyValue) (made []*commonpb.KeyValue) {
	for _, a := range all {
		made = append(made, &commonpb.KeyValue{Key: string(a.Key), Value: valueOf(a.Value)})
	}
	return made
}

// valueOf encodes a value. A value of a kind that OTLP lacks is written as text.
func valueOf(v attribute.Value) *commonpb.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	case attribute.BOOLSLICE:
		return list(v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		return list(v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		return list(v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.STRINGSLICE:
		return list(v.AsStringSlice(), attribute.StringValue)
	default:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v.String()}}
	}
}

func list[T any](values []T, of func(T) attribute.Value) *commonpb.AnyValue {
	all := &commonpb.ArrayValue{}
	for _, v := range values {
		all.Values = append(all.Values, valueOf(of(v)))
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: all}}
}
