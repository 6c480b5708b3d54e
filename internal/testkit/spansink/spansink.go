// Package spansink is a backend of traces for tests: it takes spans over OTLP (http/protobuf), and draws what came.
package spansink

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody is how large a request may be, unpacked.
const maxBody = 16 << 20

// Sink keeps all spans that are posted to it. The zero value is ready, and may be used by many goroutines at once.
type Sink struct {
	mu       sync.Mutex
	requests []*tracepb.TracesData
}

// ServeHTTP takes a request of OTLP; its body is the same on the wire as a TracesData.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = plain
	}
	data, err := io.ReadAll(io.LimitReader(body, maxBody))
	request := &tracepb.TracesData{}
	if err = errors.Join(err, proto.Unmarshal(data, request)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Requests returns what was posted, as it came.
func (s *Sink) Requests() []*tracepb.TracesData {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Spans returns the spans that came, those first that ended first.
func (s *Sink) Spans() (all []*tracepb.Span) {
	for _, request := range s.Requests() {
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				all = append(all, scope.GetSpans()...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *tracepb.Span) int {
		return int(int64(a.GetEndTimeUnixNano()) - int64(b.GetEndTimeUnixNano()))
	}) //nolint:gosec // times of now
	return all
}

// Tree draws the spans: each with its parent, its outcome, and what it is linked to; and counts those of each trace.
func (s *Sink) Tree() (lines []string, traces map[string]int) {
	spans := s.Spans()
	names, traces := map[string]string{}, map[string]int{}
	for _, span := range spans {
		names[string(span.GetSpanId())] = span.GetName()
		traces[fmt.Sprintf("%x", span.GetTraceId())]++
	}
	for _, span := range spans {
		line := span.GetName()
		if parent, known := names[string(span.GetParentSpanId())]; known {
			line += " under " + parent
		} else if len(span.GetParentSpanId()) > 0 {
			line += " under somebody who is not there"
		}
		for _, a := range span.GetAttributes() {
			if a.GetKey() == "makegood.outcome" {
				line += ", " + a.GetValue().GetStringValue()
			}
		}
		for _, link := range span.GetLinks() {
			line += ", see " + names[string(link.GetSpanId())]
		}
		lines = append(lines, line)
	}
	return lines, traces
}
