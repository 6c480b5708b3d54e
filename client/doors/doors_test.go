package doors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/payload/payloadtest"
	"github.com/makegood-dev/makegood/internal/protocol"
	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
)

const region = "eu-central-1"

func account(key, secret string) aws.Config {
	return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")}
}

// stack is three doors that check signatures, and one that is open, which answer what the test gives them, in turn, the last for ever.
type stack struct {
	doors.Addresses

	mu      sync.Mutex
	seen    []string
	bodies  []string
	answers [][]byte
	err     error
}

func open(t *testing.T, answers ...events.LambdaFunctionURLResponse) *stack {
	t.Helper()
	s := &stack{}
	for _, a := range answers {
		body, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		s.answers = append(s.answers, body)
	}
	s.Submit, s.Read, s.Operate, s.Complete = s.door(t, "submit"), s.door(t, "read"), s.door(t, "operate"), s.door(t, "complete")
	return s
}

func (s *stack) door(t *testing.T, name string) string {
	server := httptest.NewServer(&functionurl.URL{
		Region: region, Public: name == "complete",
		Keys: map[string]functionurl.Key{"ADA": {Secret: "secret", ARN: "arn:ada"}, "READER": {Secret: "r", ARN: "arn:reader", Denied: name != "read"}},
		Invoke: func(_ context.Context, event []byte) ([]byte, error) {
			var e events.LambdaFunctionURLRequest
			if err := json.Unmarshal(event, &e); err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen = append(s.seen, name+" "+e.RequestContext.HTTP.Method+" "+e.RawPath)
			s.bodies = append(s.bodies, e.Body)
			if s.err != nil {
				return nil, s.err
			}
			next := s.answers[0]
			if len(s.answers) > 1 {
				s.answers = s.answers[1:]
			}
			return next, nil
		},
	})
	t.Cleanup(server.Close)
	return server.URL + "/" // As CloudFormation gives it.
}

func (s *stack) client(t *testing.T, c aws.Config, options ...client.Option) *client.Client {
	t.Helper()
	asks, err := doors.New(doors.Config{AWS: c, Stack: "shop", Addresses: s.Addresses}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return asks
}

func answered(status int, body string) events.LambdaFunctionURLResponse {
	return events.LambdaFunctionURLResponse{StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: body}
}

// Each call is signed and goes to its door; the API's answers are read as everywhere. The doors are those of the
// API, by its own table.
func TestEachCallGoesToItsDoor(t *testing.T) {
	s := open(t, answered(200, `{"id":"j","processState":"Processed","jobs":[],"workflows":[]}`))
	c := s.client(t, account("ADA", "secret"))
	ctx := t.Context()
	want := []string{"submit POST /api/jobs", "read GET /api/jobs/a:b", "read GET /api/jobs", "read GET /api/workflows", "operate POST /api/workflows"}
	_, err := c.Submit(ctx, makegood.Submission{Workflow: "order", ID: "a:b"})
	for range c.List(ctx, api.Filter{State: makegood.JobError}) {
	}
	_, getErr := c.Get(ctx, "a:b")
	_, listErr := c.Workflows(ctx)
	_, publishErr := c.Publish(ctx, []byte("name: x"))
	errs := []error{err, getErr, listErr, publishErr}
	for _, verb := range domain.Verbs() {
		_, err := c.Request(ctx, "a:b", api.Request{Verb: verb, Reason: "why"}) // The server here knows no rule, so no time is needed.
		errs = append(errs, err)
		want = append(want, "operate POST /api/jobs/a:b/"+string(verb))
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(s.seen, "\n")+"\n", w+"\n") {
			t.Errorf("got %q, want %q among them", s.seen, w)
		}
	}
	for _, d := range httpapi.Doors() {
		if !strings.Contains(strings.Join(want, "\n"), string(d)+" ") {
			t.Errorf("no call goes to the door %s", d)
		}
	}
}

// A principal with a reader's policy reads, and is told at the other doors what it lacks, once.
func TestWhoIsNotLetInIsToldWhatIsMissing(t *testing.T) {
	s := open(t, answered(200, `{"id":"j"}`))
	c := s.client(t, account("READER", "r"))
	if _, err := c.Get(t.Context(), "j"); err != nil {
		t.Errorf("a reader reads: got %v", err)
	}
	_, err := c.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: "j"})
	_, cancelErr := c.Request(t.Context(), "j", api.Request{Verb: makegood.VerbCancel})
	for door, err := range map[string]error{"submit": err, "operate": cancelErr} {
		var invalid *api.InvalidError
		if !errors.As(err, &invalid) || invalid.Status != http.StatusForbidden {
			t.Fatalf("%s: got %T %v, want that it is forbidden", door, err, err)
		}
		for _, want := range []string{"door " + door + " of stack shop", "lambda:InvokeFunctionUrl", "shop-" + door, "docs/doors.md"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want it to say %q", door, err, want)
			}
		}
	}
	if len(s.seen) != 1 {
		t.Errorf("got %q, want that of the reader alone", s.seen)
	}
	if _, err := s.client(t, account("ADA", "guess")).Get(t.Context(), "j"); err == nil || !strings.Contains(err.Error(), "does not match") || !strings.Contains(err.Error(), "clock") {
		t.Errorf("a wrong secret: got %v, want what Lambda said, and what it comes of", err)
	}
	// What the door itself refuses is said in its own words.
	own := open(t, answered(403, `{"error":"belongs to another"}`))
	if _, err := own.client(t, account("ADA", "secret")).Get(t.Context(), "j"); err == nil || !strings.HasSuffix(err.Error(), ": belongs to another") {
		t.Errorf("got %v, want the door's own words", err)
	}
}

// A throttled or failing function is asked again with the same request; for ever it is said to be unreachable, and
// why.
func TestAThrottledDoorIsKnockedAtAgain(t *testing.T) {
	s := open(t, answered(502, `{"Message":"Internal Server Error"}`), answered(429, `{"Message":"Rate Exceeded."}`), answered(503, `{"error":"busy"}`), answered(201, `{"id":"j"}`))
	if job, err := s.client(t, account("ADA", "secret")).Submit(t.Context(), makegood.Submission{Workflow: "order"}); err != nil || job.Existed {
		t.Fatalf("got %v", err)
	}
	if len(s.bodies) != 4 || s.bodies[0] != s.bodies[3] || !strings.Contains(s.bodies[0], `"id":"`) {
		t.Errorf("got the bodies %q, want the same four times", s.bodies)
	}
	for err, want := range map[error]string{functionurl.ErrThrottled: "throttled", context.DeadlineExceeded: "/aws/lambda/shop-read"} {
		s.err = err
		var unreachable *api.UnreachableError
		_, got := s.client(t, account("ADA", "secret"), client.WithPatience(0)).Get(t.Context(), "j")
		if !errors.As(got, &unreachable) || unreachable.URL != "https://shop"+protocol.HostSuffix || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: got %v, want that it cannot be reached, with %q", err, got, want)
		}
	}
	gone := &stack{Addresses: doors.Addresses{Read: "http://127.0.0.1:1"}}
	if _, err := gone.client(t, account("ADA", "secret"), client.WithPatience(0)).Get(t.Context(), "j"); err == nil || !strings.Contains(err.Error(), "door read of stack shop: dial") {
		t.Errorf("nobody listens: got %v", err)
	}
	if _, err := gone.client(t, account("ADA", "secret")).Submit(t.Context(), makegood.Submission{}); err == nil || !strings.Contains(err.Error(), "the address of its door submit is unknown") {
		t.Errorf("no address: got %v", err)
	}
}

// Whoever may submit is led to where a payload is written, and whoever may read to where it is. The signature of the request to the
// door stays behind.
func TestPayloadsGoPastTheDoorsUnsigned(t *testing.T) {
	bucket := payloadtest.NewBucket(t)
	handler := httpapi.New(httpapi.Config{Doors: bucket, Logger: slog.New(slog.DiscardHandler)})
	through := func(method, path, body string) events.LambdaFunctionURLResponse {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return answered(w.Code, w.Body.String())
	}
	const hash = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	write := through("POST", "/api/jobs/j/payloads", `{"sha256":"`+hash+`","bytes":4}`)
	s := open(t, write)
	p, err := s.client(t, account("ADA", "secret")).WritePayload(t.Context(), "j", "", strings.NewReader("text"))
	if err != nil || p != (makegood.Payload{SHA256: hash, Bytes: 4}) {
		t.Fatalf("got %+v, %v", p, err)
	}
	again := open(t, through("GET", "/api/jobs/j/payloads/"+hash+"?bytes=4", ""))
	r, err := again.client(t, account("READER", "r")).OpenPayload(t.Context(), "j", p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); string(text) != "text" || err != nil {
		t.Errorf("got %q, %v, want text", text, err)
	}
	if got, want := strings.Join(append(s.seen, again.seen...), ", "), "submit POST /api/jobs/j/payloads, read GET /api/jobs/j/payloads/"+hash; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if found := bucket.Credentials(); len(found) > 0 {
		t.Errorf("the bucket was sent %v", found)
	}
	// Who may only read writes nothing.
	var invalid *api.InvalidError
	if _, err := s.client(t, account("READER", "r")).WritePayload(t.Context(), "j", "", strings.NewReader("x")); !errors.As(err, &invalid) || invalid.Status != http.StatusForbidden {
		t.Errorf("a reader writes: got %v, want it refused", err)
	}
}

// A job whose payloads do not fit through a door is waited for all the same.
func TestAJobThatDoesNotFitIsGivenWithoutPayloads(t *testing.T) {
	large := answered(413, `{"error":"the answer has 9 bytes"}`)
	job := answered(200, `{"id":"j","processState":"Processed"}`)
	c := open(t, job, large, job).client(t, account("ADA", "secret"))
	if got, err := c.Wait(t.Context(), "j"); err != nil || got.ID != "j" {
		t.Errorf("got %+v, %v", got, err)
	}
	c = open(t, large).client(t, account("ADA", "secret"))
	var invalid *api.InvalidError
	if _, err := c.Get(t.Context(), "j"); !errors.As(err, &invalid) || invalid.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("got %v, want that it is too large", err)
	}
}

func TestAConfigurationThatCannotKnockIsRefused(t *testing.T) {
	for _, c := range []doors.Config{
		{AWS: aws.Config{Region: region}},
		{AWS: aws.Config{Credentials: account("a", "b").Credentials}},
		{AWS: account("a", "b"), Stack: "s", Addresses: doors.Addresses{Read: "not a URL"}},
		{AWS: account("a", "b"), Stack: "s", Addresses: doors.Addresses{Submit: "ftp://x"}},
	} {
		if _, err := doors.New(c); err == nil {
			t.Errorf("%+v: got a client", c.Addresses)
		}
	}
}

// The doors are found in the outputs of the stack; one without them says so.
func TestTheDoorsAreFoundInTheOutputs(t *testing.T) {
	outputs := map[string]string{protocol.SubmitOutput: "https://s/", protocol.ReadOutput: "https://r/", protocol.OperateOutput: "https://o/", "TableName": "jobs"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprint(w, `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>shop</StackName><Outputs>`)
		for key, value := range outputs {
			fmt.Fprintf(w, "<member><OutputKey>%s</OutputKey><OutputValue>%s</OutputValue></member>", key, value)
		}
		fmt.Fprint(w, `</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`)
	}))
	t.Cleanup(server.Close)
	c := account("a", "b")
	c.BaseEndpoint = aws.String(server.URL)
	at, err := doors.Find(t.Context(), c, "shop")
	if want := (doors.Addresses{Submit: "https://s/", Read: "https://r/", Operate: "https://o/"}); err != nil || at != want {
		t.Errorf("got %+v, %v, want %+v", at, err, want)
	}
	delete(outputs, protocol.ReadOutput)
	if _, err := doors.Find(t.Context(), c, "shop"); !errors.Is(err, doors.ErrNoDoors) {
		t.Errorf("got %v, want %v", err, doors.ErrNoDoors)
	}
}

// By their address steps are completed by operators; by a completion token, by whoever has it, at a door that asks for no
// signature and gets none.
func TestCompletionsGoToTheirDoors(t *testing.T) {
	s := open(t, events.LambdaFunctionURLResponse{StatusCode: http.StatusOK, Body: `{"state":"done","id":"j"}`})
	c, err := doors.New(doors.Config{AWS: account("ADA", "secret"), Stack: "shop", Addresses: s.Addresses}, client.WithPatience(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Complete(t.Context(), "j", api.StepRef{Step: "charge"}, nil); err != nil {
		t.Error(err)
	}
	if _, err := c.Completion("c1.x.y").Fail(t.Context(), makegood.StepError{Message: "closed"}); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(s.seen, ", "), "operate POST /api/jobs/j/steps/charge/complete, complete POST /api/completions/fail"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Complete = ""
	none, err := doors.New(doors.Config{AWS: account("ADA", "secret"), Stack: "shop", Addresses: s.Addresses}, client.WithPatience(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Completion("c1.x.y").Complete(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "its parameter CompletionLinks makes one") {
		t.Errorf("a stack without links: got %v, want what to do", err)
	}
}
