package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/engine"
	"github.com/makegood-dev/makegood/telemetry"
)

// A booking whose payment needs a second attempt, whose approval waits for somebody outside, and whose ticket is refused, so
// that what was done is undone.
const booking = `
name: booking
steps:
  - {name: charge, agent: desk, undo: {action: refund}, retry: {attempts: 2, backoff: 1ms}}
  - {name: approve, agent: desk, undo: none}
  - {name: ticket, agent: desk, undo: none}
`

// desk does the steps of a booking, and keeps the traceparent that each attempt was given.
type desk struct {
	tokens chan string
	given  chan string
}

func newDesk() *desk { return &desk{tokens: make(chan string, 1), given: make(chan string, 10)} }

func (d *desk) handler() agent.Handler {
	given := func(ctx context.Context) makegood.Task {
		task := agent.TaskOf(ctx)
		time.Sleep(2 * time.Millisecond) // Times of jobs are whole milliseconds: no two attempts begin at one.
		d.given <- fmt.Sprintf("%s#%d %s %s", task.Step, task.Attempt, task.Traceparent, trace.SpanContextFromContext(ctx).SpanID())
		return task
	}
	return agent.New("desk",
		agent.Do("charge", func(ctx context.Context, _ json.RawMessage) (string, error) {
			if given(ctx).Attempt == 1 {
				return "", agent.NotApplied(errors.New("the card machine of Mr. Smith is busy"))
			}
			return "paid", nil
		}).Undo("refund", func(ctx context.Context, _ json.RawMessage, _ *string) error {
			given(ctx)
			return nil
		}),
		agent.Do("approve", func(ctx context.Context, _ json.RawMessage) (string, error) {
			d.tokens <- given(ctx).Completion
			return "", agent.Wait(time.Now().Add(time.Hour))
		}),
		agent.Do("ticket", func(ctx context.Context, _ json.RawMessage) (string, error) {
			given(ctx)
			return "", agent.Final(errors.New("sold out"))
		}))
}

// book takes a booking through all that, and returns when its engine has stopped.
func book(t *testing.T, d *desk, o engine.Options, s makegood.Submission) {
	t.Helper()
	o.Workflows = fstest.MapFS{"booking.yaml": {Data: []byte(booking)}}
	o.Agents = []agent.Handler{d.handler()}
	eng := run(t, o)
	defer eng.close(t)
	s.Workflow, s.Input = "booking", json.RawMessage("null")
	if _, err := eng.Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	token := <-d.tokens
	for job, err := range eng.Watch(t.Context(), s.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if job.Steps[1].State == makegood.StepWaiting {
			break
		}
	}
	if _, err := eng.Completion(token).Complete(t.Context(), json.RawMessage(`"yes"`)); err != nil {
		t.Fatal(err)
	}
	if job, err := eng.Wait(t.Context(), s.ID); err != nil || job.ProcessState != makegood.JobUndone {
		t.Fatalf("got %s, %v, want a booking that is undone", job.ProcessState, err)
	}
}

// tree writes spans as a person reads a trace: each under its parent, with its marks, in the order of their beginnings and
// ends. The exporter has another order: an attempt's span is made after its reply, which the next attempt may overtake.
func tree(spans tracetest.SpanStubs) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), a.EndTime.Compare(b.EndTime))
	})
	var text strings.Builder
	known := map[trace.SpanID]string{}
	for _, s := range spans {
		known[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans {
		fmt.Fprintf(&text, "%s", s.Name)
		if s.Parent.IsValid() {
			parent, ok := known[s.Parent.SpanID()]
			if !ok {
				parent = "somebody else's"
			}
			fmt.Fprintf(&text, " under %s", parent)
		}
		for _, a := range s.Attributes {
			switch a.Key {
			case "makegood.attempt", "makegood.outcome", "makegood.job.state", "error.type":
				fmt.Fprintf(&text, ", %s", a.Value.String())
			}
		}
		for _, l := range s.Links {
			fmt.Fprintf(&text, ", see %s", known[l.SpanContext.SpanID()])
		}
		text.WriteByte('\n')
	}
	return text.String()
}

const bookingTrace = `submit booking
charge under submit booking, 1, failed, failed
charge under submit booking, 2, succeeded
approve under submit booking, 1, waiting
end of wait approve under submit booking, 1, completed, see approve
ticket under submit booking, 1, failed, failed
turn under submit booking, Undone
undo charge under submit booking, 3, succeeded
end booking under submit booking, Undone
`

func traced() (*tracetest.InMemoryExporter, telemetry.Telemetry) {
	out := tracetest.NewInMemoryExporter()
	return out, telemetry.Telemetry{Traces: sdktrace.NewTracerProvider(sdktrace.WithSyncer(out), sdktrace.WithIDGenerator(telemetry.IDs{}))}
}

// The whole of it is one trace, with a span for each attempt, its undo, and the end of its wait; each agent is given the span
// of its attempt before that is made. What people say is in no span.
func TestAJobIsOneTraceAndEachAttemptASpan(t *testing.T) {
	out, there := traced()
	d := newDesk()
	book(t, d, engine.Options{Telemetry: there}, makegood.Submission{ID: "b-1"})
	spans := out.GetSpans()
	if got := tree(spans); got != bookingTrace {
		t.Errorf("got\n%s\nwant\n%s", got, bookingTrace)
	}
	made := map[string]bool{}
	for _, s := range spans {
		if s.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
			t.Errorf("%s is in trace %s, want all in one", s.Name, s.SpanContext.TraceID())
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, "Smith") || strings.Contains(text, "sold out") {
			t.Errorf("%s says what an agent said: %s", s.Name, text)
		}
		made[s.SpanContext.SpanID().String()] = true
		if s.EndTime.Before(s.StartTime) {
			t.Errorf("%s ends at %s, before it begins at %s", s.Name, s.EndTime, s.StartTime)
		}
	}
	close(d.given)
	for line := range d.given {
		var what, traceparent, under string
		_, _ = fmt.Sscan(line, &what, &traceparent, &under)
		if want := "00-" + spans[0].SpanContext.TraceID().String() + "-" + under + "-01"; traceparent != want || !made[under] {
			t.Errorf("%s was given %q and works under %s, want %s of a span that was made", what, traceparent, under, want)
		}
	}
}

// Who submits under a span finds the job in the trace of that, whether they named it or have it in their context. Of what is
// no traceparent nothing comes.
func TestAJobGoesOnWithTheTraceOfItsSubmitter(t *testing.T) {
	theirs := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for traceparent, want := range map[string]string{theirs: "0af7651916cd43dd8448eb211c80319c", "00-nonsense": ""} {
		out, there := traced()
		book(t, newDesk(), engine.Options{Telemetry: there}, makegood.Submission{ID: "b-1", Traceparent: traceparent})
		first := out.GetSpans()[0]
		if got := first.SpanContext.TraceID().String(); (got == want) != (want != "") || first.Parent.IsValid() != (want != "") {
			t.Errorf("%s: got trace %s under %s", traceparent, got, first.Parent.SpanID())
		}
	}
	unsampled := strings.TrimSuffix(theirs, "1") + "0"
	out, there := traced()
	book(t, newDesk(), engine.Options{Telemetry: there}, makegood.Submission{ID: "b-1", Traceparent: unsampled})
	if got := tree(out.GetSpans()); got != "" {
		t.Errorf("a submitter who keeps no trace: got\n%s\nwant no span", got)
	}
}

// Without a provider there are no spans, and agents are given what the submitter brought; nothing, if they brought nothing.
func TestWithoutAProviderATraceIsHandedThrough(t *testing.T) {
	theirs := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, traceparent := range []string{theirs, ""} {
		d := newDesk()
		book(t, d, engine.Options{}, makegood.Submission{ID: "b-1", Traceparent: traceparent})
		if got := <-d.given; !strings.HasPrefix(got, "charge#1 "+traceparent+" ") {
			t.Errorf("submitted under %q: got %s", traceparent, got)
		}
	}
}

// What the user's sampling drops is dropped whole, and no agent is asked to keep its part.
func TestATraceIsKeptWholeOrNotAtAll(t *testing.T) {
	out, there := traced()
	there.Sampled = func(trace.TraceID) bool { return false }
	d := newDesk()
	book(t, d, engine.Options{Telemetry: there}, makegood.Submission{ID: "b-1"})
	if got := tree(out.GetSpans()); got != "" {
		t.Errorf("got\n%s\nwant no span", got)
	}
	if got := strings.Fields(<-d.given)[1]; !strings.HasSuffix(got, "-00") {
		t.Errorf("an agent was given %s, want it unsampled", got)
	}
}

// The trace of a submitter comes along over HTTP: as the header, as the field, and from the context of a client.
func TestASubmissionOverHTTPCarriesItsTrace(t *testing.T) {
	theirs := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	given := make(chan string, 1)
	eng := run(t, engine.Options{
		Workflows: fstest.MapFS{"note.yaml": {Data: []byte("name: note\nsteps: [{name: write, agent: pen}]\n")}},
		Agents: []agent.Handler{agent.New("pen", agent.Do("write", func(ctx context.Context, _ json.RawMessage) (string, error) {
			given <- agent.TaskOf(ctx).Traceparent
			return "", nil
		}))},
	})
	defer eng.close(t)
	server := httptest.NewServer(eng.Handler())
	defer server.Close()
	post := func(header, body string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/jobs", strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Traceparent", header)
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	remote, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var carrier propagation.TraceContext
	under := carrier.Extract(t.Context(), propagation.MapCarrier{"traceparent": theirs})
	for name, submit := range map[string]func() error{
		"header": func() error { return post(theirs, `{"workflow":"note","id":"header","input":null}`) },
		"field": func() error {
			return post(strings.Replace(theirs, "0af7", "ffff", 1), `{"workflow":"note","id":"field","input":null,"traceparent":"`+theirs+`"}`)
		},
		"context of a client": func() error {
			_, err := remote.Submit(under, makegood.Submission{Workflow: "note", ID: "client", Input: json.RawMessage("null")})
			return err
		},
	} {
		if err := submit(); err != nil {
			t.Fatal(err)
		}
		if got := <-given; got != theirs {
			t.Errorf("%s: the agent was given %q, want %s", name, got, theirs)
		}
	}
}
