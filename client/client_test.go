package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
)

// api is a server that answers with what the test gives it, in turn, the last for ever.
type fakeAPI struct {
	*httptest.Server

	mu      sync.Mutex
	answers []answer
	seen    []string
	bodies  []string
}

type answer struct {
	status int
	header string
	body   string
	// hangUp: the request is taken, and never answered.
	hangUp bool
}

func serve(t *testing.T, answers ...answer) *fakeAPI {
	a := &fakeAPI{answers: answers}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	next := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	a.seen = append(a.seen, r.Method+" "+r.URL.RequestURI())
	a.bodies = append(a.bodies, string(body))
	a.mu.Unlock()
	if next.hangUp {
		panic(http.ErrAbortHandler)
	}
	if name, value, ok := strings.Cut(next.header, ": "); ok {
		w.Header().Set(name, value)
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body)
}

func (a *fakeAPI) requests() ([]string, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen), slices.Clone(a.bodies)
}

func newClient(t *testing.T, url string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func job(state makegood.ProcessState) string {
	return fmt.Sprintf(`{"id":"j","processState":%q}`, state)
}

// The answer to a submission is lost twice. It is sent again as the same job, although its submitter
// named none.
func TestASubmissionWhoseAnswerIsLostIsSentAgainAsTheSameJob(t *testing.T) {
	a := serve(t, answer{hangUp: true}, answer{status: 503, body: `{"error":"busy"}`}, answer{status: 200, body: job("Pending")})
	got, err := newClient(t, a.URL).Submit(t.Context(), makegood.Submission{Workflow: "order", Input: json.RawMessage(`{"a":"<&>"}`)})
	if err != nil || !got.Existed || got.ID != "j" {
		t.Errorf("got %v, existed %v, %v", got.ID, got.Existed, err)
	}
	seen, bodies := a.requests()
	if len(seen) != 3 || bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("got the requests %v %v, want the same three times", seen, bodies)
	}
	var sent struct{ ID, Workflow string }
	if err := json.Unmarshal([]byte(bodies[0]), &sent); err != nil || len(sent.ID) != 26 || !strings.Contains(bodies[0], `"<&>"`) {
		t.Errorf("sent %s, want an id of 26 characters and the input as it is", bodies[0])
	}
}

// A verb that is asked for again after a lost answer is the same request; another call is another.
func TestARequestIsNamed(t *testing.T) {
	a := serve(t, answer{hangUp: true}, answer{status: 200, body: job("Undoing")})
	c := newClient(t, a.URL)
	for range 2 {
		if _, err := c.Request(t.Context(), "j", api.Request{Verb: makegood.VerbCancel, Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
	}
	seen, bodies := a.requests()
	if len(bodies) != 3 || seen[0] != "POST /api/jobs/j/cancel" || bodies[0] != bodies[1] || bodies[1] == bodies[2] || !strings.Contains(bodies[0], `"reason":"enough"`) {
		t.Errorf("got %v %v, want one request twice and then another", seen, bodies)
	}
}

func TestErrorsSayWhatHappened(t *testing.T) {
	for _, test := range []struct {
		answer answer
		is     func(error) bool
	}{
		{answer{status: 409, body: `{"error":"x","code":"mismatch","job":"j","have":"a","got":"b"}`}, func(err error) bool {
			e, ok := errors.AsType[*api.MismatchError](err)
			return ok && *e == api.MismatchError{Job: "j", Have: "a", Got: "b"}
		}},
		{answer{status: 409, body: `{"error":"x","code":"refused","job":"j","reason":"it is Processed"}`}, func(err error) bool {
			e, ok := errors.AsType[*api.RefusedError](err)
			return ok && *e == api.RefusedError{Job: "j", Reason: "it is Processed"}
		}},
		{answer{status: 404, body: `{"error":"x","code":"no_job","job":"j"}`}, func(err error) bool { return errors.Is(err, api.ErrNotFound) }},
		{answer{status: 404, body: `{"error":"nothing here"}`}, func(err error) bool {
			e, ok := errors.AsType[*api.InvalidError](err)
			return ok && e.Message == "nothing here" && e.Status == 404
		}},
		{answer{status: 413, body: `{"error":"too large"}`}, func(err error) bool {
			e, ok := errors.AsType[*api.InvalidError](err)
			return ok && e.Message == "too large"
		}},
		{answer{status: 500, body: `{"error":"damaged"}`}, isUnreachable},
		{answer{status: 500, body: `{"error":"job j is stored, but cannot be read","code":"damaged","job":"j"}`}, func(err error) bool {
			return isUnreachable(err) && errors.Is(err, api.ErrDamaged) && strings.HasSuffix(err.Error(), "500: job j is stored, but cannot be read")
		}},
		{answer{status: 503, body: `{"error":"ask again","code":"newer","job":"j"}`}, func(err error) bool {
			return isUnreachable(err) && errors.Is(err, api.ErrNewer)
		}},
		{answer{status: 301, header: "Location: http://elsewhere.example/"}, isUnreachable},
		{answer{status: 200, body: `<html>`}, isUnreachable},
	} {
		a := serve(t, test.answer)
		_, err := newClient(t, a.URL, client.WithPatience(20*time.Millisecond)).Request(t.Context(), "j", api.Request{Verb: makegood.VerbUndo})
		if err == nil || !test.is(err) {
			t.Errorf("%d %s: got %T %v", test.answer.status, test.answer.body, err, err)
		}
	}
}

func isUnreachable(err error) bool {
	_, ok := errors.AsType[*api.UnreachableError](err)
	return ok
}

// What can never be granted is asked for once; what may be, until patience ends.
func TestOnlyWhatMayHelpIsTriedAgain(t *testing.T) {
	for status, want := range map[int]int{400: 1, 403: 1, 404: 1, 409: 1, 415: 1, 421: 1, 500: 1, 301: 1, 502: 3, 503: 3, 504: 3, 429: 3} {
		a := serve(t, answer{status: status}, answer{status: status}, answer{status: 200, body: job("Pending")})
		_, err := newClient(t, a.URL).Look(t.Context(), "j")
		seen, _ := a.requests()
		if len(seen) != want || (err == nil) != (want == 3) {
			t.Errorf("%d: got %d requests and %v, want %d", status, len(seen), err, want)
		}
	}
}

func TestPatienceEndsAndContextsEnd(t *testing.T) {
	busy := answer{status: 503, header: "Retry-After: 7", body: `{"error":"busy"}`}
	synctest.Test(t, func(t *testing.T) {
		a, started := &answering{answers: []answer{busy}}, time.Now()
		c := newClient(t, "http://127.0.0.1:1", client.WithHTTPClient(&http.Client{Transport: a}), client.WithPatience(100*time.Millisecond))
		_, err := c.Get(t.Context(), "j")
		if took := time.Since(started); !isUnreachable(err) || !strings.Contains(err.Error(), "busy") || took != 0 {
			t.Errorf("got %v after %s, want that it cannot be reached, at once: it asks for 7s", err, took)
		}
	})
	a := serve(t, busy)
	_, err := newClient(t, "http://127.0.0.1:1", client.WithPatience(0)).Get(t.Context(), "j")
	if !isUnreachable(err) || !strings.Contains(err.Error(), "cannot reach http://127.0.0.1:1: dial") {
		t.Errorf("nobody listens: got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = newClient(t, a.URL).Get(ctx, "j")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that of the context", err)
	}
}

func TestWatchGivesEachChangeAndWaitTheEnd(t *testing.T) {
	answers := []answer{
		{status: 200, body: job("Pending")},
		{status: 200, body: job("Pending")},
		{status: 200, body: job("Processing")},
		{status: 200, body: job("Processing")},
		{status: 200, body: job("Error")},
	}
	var states []string
	for job, err := range newClient(t, serve(t, answers...).URL).Watch(t.Context(), "j") {
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, string(job.ProcessState))
	}
	if got := strings.Join(states, " "); got != "Pending Processing Error" {
		t.Errorf("got %s, want each change once", got)
	}
	a := serve(t, answers...)
	end, err := newClient(t, a.URL).Wait(t.Context(), "j")
	seen, _ := a.requests()
	if err != nil || end.ProcessState != makegood.JobError || seen[0] != "GET /api/jobs/j?payloads=false" || seen[len(seen)-1] != "GET /api/jobs/j" {
		t.Errorf("got %s, %v after %v", end.ProcessState, err, seen)
	}
}

// A list is read on as far as its caller reads, pages that are empty before the end included.
func TestAListIsReadAsFarAsItsCallerDoes(t *testing.T) {
	pages := []answer{
		{status: 200, body: `{"jobs":[{"id":"a"},{"id":"b"}],"cursor":"9"}`},
		{status: 200, body: `{"jobs":[],"cursor":"5"}`},
		{status: 200, body: `{"jobs":[{"id":"c"}],"cursor":""}`},
	}
	a := serve(t, pages...)
	var got []string
	for job, err := range newClient(t, a.URL).List(t.Context(), api.Filter{State: makegood.JobError, Workflow: "order"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, job.ID)
	}
	seen, _ := a.requests()
	if strings.Join(got, " ") != "a b c" || len(seen) != 3 || seen[1] != "GET /api/jobs?cursor=9&limit=200&state=Error&workflow=order" {
		t.Errorf("got %v by %v", got, seen)
	}
	a = serve(t, pages...)
	for range newClient(t, a.URL).List(t.Context(), api.Filter{}) {
		break
	}
	if seen, _ := a.requests(); len(seen) != 1 {
		t.Errorf("one job read: got %v, want one page", seen)
	}
}

func TestAURLThatIsNoneIsRefused(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:4777", "ftp://x", "http://", "http://x?y", "%"} {
		if _, err := client.New(url); err == nil {
			t.Errorf("%q: got a client, want an error", url)
		}
	}
	for _, url := range []string{"http://x", "https://x/behind/", "http://[::1]:4777"} {
		if _, err := client.New(url); err != nil {
			t.Errorf("%q: got %v", url, err)
		}
	}
}

// answering answers requests without a network, one after the other, and says when each came.
type answering struct {
	answers []answer
	came    []time.Time
}

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	next := a.answers[len(a.came)]
	a.came = append(a.came, time.Now())
	name, value, _ := strings.Cut(next.header, ": ")
	return &http.Response{StatusCode: next.status, Header: http.Header{name: {value}}, Body: io.NopCloser(strings.NewReader(next.body))}, nil
}

// A server that asks for a while is left alone for it, up to half a minute. Who asks for more is asked at the
// client's own pace: 60 is what an API says while its deployment rolls, and another try may meet a release that knows more.
func TestWhatAnAnswerAsksForIsWaitedUpToHalfAMinute(t *testing.T) {
	for asked, want := range map[string]time.Duration{"1": time.Second, "7": 7 * time.Second, "30": 30 * time.Second, "31": 0, "60": 0, "0": 0, "-7": 0, "soon": 0} {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answering{answers: []answer{{status: 503, header: "Retry-After: " + asked, body: `{"error":"busy"}`}, {status: 200, body: job("Pending")}}}
				c := newClient(t, "http://127.0.0.1:1", client.WithHTTPClient(&http.Client{Transport: a}), client.WithPatience(time.Minute))
				if _, err := c.Look(t.Context(), "j"); err != nil || len(a.came) != 2 {
					t.Fatalf("got %v after %d requests, want an answer to the second", err, len(a.came))
				}
				if pause := a.came[1].Sub(a.came[0]); want > 0 && pause != want || want == 0 && pause > 100*time.Millisecond {
					t.Errorf("asked again after %v, want %v (0: soon)", pause, want)
				}
			})
		})
	}
}
