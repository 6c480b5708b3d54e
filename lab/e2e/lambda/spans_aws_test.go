//go:build aws && linux

package lambda

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/deployed"
	"github.com/makegood-dev/makegood/internal/testkit/spansink"
)

// desk is the service that a booking needs. It is busy at first, and has no ticket; it keeps which span each call came from.
type desk struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

type call struct{ path, traceparent string }

func openDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call{r.URL.Path, r.Header.Get("traceparent")})
	switch {
	case len(d.calls) == 1:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/ticket":
		w.WriteHeader(http.StatusConflict)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// booking is a job with a retry, a wait and an undo.
func (d *desk) booking() []byte {
	return []byte(strings.ReplaceAll(`
name: booking
steps:
  - name: charge
    agent: http
    with: {url: DESK/charge}
    retry: {attempts: 2, backoff: 1ms}
    undo: {with: {url: DESK/refund}}
  - {name: think, agent: wait, with: {for: 1s}}
  - {name: ticket, agent: http, with: {url: DESK/ticket}, undo: none}
`, "DESK", d.URL))
}

// theirs is the span of whoever submits a booking.
const (
	theirTrace = "0af7651916cd43dd8448eb211c80319c"
	theirs     = "00-" + theirTrace + "-b7ad6b7169203331-01"
)

// book asks for a booking by message, under their span, and takes it to its end.
func (w *world) book(id string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"v":1,"type":"Submit","workflow":"booking","id":%q,"input":null,"traceparent":%q}`, id, theirs)
	queue := w.queue(deployed.SubmissionsQueue)
	if _, err := w.queues.SendMessage(w.t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}); err != nil {
		w.t.Fatal(err)
	}
	w.waitFor("the booking to be stored", func() bool { _, err := w.store.Load(w.t.Context(), id); return err == nil })
	if j := w.ends([]string{id})[id]; j.ProcessState != makegood.JobUndone {
		w.t.Errorf("got %s (%s), want a booking that is undone", j.ProcessState, j.Reason)
	}
}

// bookingTrace is what it looks like, whoever ran it: lab/e2e/collector sees the same of an engine.
var bookingTrace = spansink.Booking("submit booking under somebody who is not there")

// A job that was submitted by message is one trace over functions and queues, in that of whoever submitted it, and what is called
// for it is told the span of its attempt.
func TestAJobIsOneTraceOverFunctionsAndQueues(t *testing.T) {
	var there spansink.Sink
	backend := httptest.NewServer(&there)
	t.Cleanup(backend.Close)
	w, d := open(t, options{environment: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + backend.URL}}), openDesk(t)
	w.define(d.booking())
	w.book("b-1")
	w.waitFor("its spans", func() bool { lines, _ := there.Tree(); return len(lines) >= len(bookingTrace) })
	got, traces := there.Tree()
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(bookingTrace)); !slices.Equal(got, want) || traces[theirTrace] != len(want) {
		t.Errorf("got of the traces %v\n%q\nwant of %s\n%q", traces, got, theirTrace, want)
	}
	d.checkSpans(t, &there)
}

// checkSpans checks that each call came from the span of an attempt.
func (d *desk) checkSpans(t *testing.T, there *spansink.Sink) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	spans := map[string]string{}
	for _, span := range there.Spans() {
		spans[fmt.Sprintf("00-%x-%x-01", span.GetTraceId(), span.GetSpanId())] = span.GetName()
	}
	var got []string
	for _, c := range d.calls {
		got = append(got, c.path+" from "+spans[c.traceparent])
	}
	if want := []string{"/charge from charge", "/charge from charge", "/ticket from ticket", "/refund from undo charge"}; !slices.Equal(got, want) {
		t.Errorf("got the calls %q, want %q", got, want)
	}
}

// A collector that takes connections and never answers delays no job by more than its bound, fails none, and is said.
func TestACollectorThatHangsHarmsNoJob(t *testing.T) {
	done := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(done); hanging.Close() })
	w, d := open(t, options{environment: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + hanging.URL}}), openDesk(t)
	w.define(d.booking())
	w.book("b-1")
	for name, f := range w.functions {
		if f.Counts.Timeouts.Load()+f.Counts.Deaths.Load() > 0 {
			t.Errorf("%s: got %d timeouts and %d deaths, want none", name, f.Counts.Timeouts.Load(), f.Counts.Deaths.Load())
		}
	}
	var said struct{ Msg string }
	for line := range strings.Lines(w.functions["scheduler"].Output()) {
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "spans were dropped" {
			return
		}
	}
	t.Errorf("got the log %s, want it to say that spans were dropped", w.functions["scheduler"].Output())
}
