package httpagent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/httpagent/httprules"
)

// seen is a request as a server saw it.
type seen struct {
	*http.Request
	body string
}

// recorder answers 204, and hands on what it saw.
func recorder(t *testing.T) (url string, requests chan seen) {
	requests = make(chan seen, 100)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r, string(body)}
		w.WriteHeader(http.StatusNoContent)
	}), requests
}

func TestARequestSaysWhichAttemptItIs(t *testing.T) {
	url, requests := recorder(t)
	output, err := call(t, newAgent(t), taskOf(t, fields{"url": url + "/send?a=b%20c", "headers": fields{"x-tenant": "Zoë"}, "body": fields{"to": "<you>"}}))
	if output != "" || err != nil {
		t.Fatalf("got %q, %v, want null", output, err)
	}
	got := <-requests
	if got.Method != "POST" || got.RequestURI != "/send?a=b%20c" || got.body != `{"to":"\u003cyou\u003e"}` || got.ContentLength != int64(len(got.body)) {
		t.Errorf("got %s %s %s of %d bytes", got.Method, got.RequestURI, got.body, got.ContentLength)
	}
	for name, want := range map[string]string{
		"Idempotency-Key":       "j/call/1",
		"Makegood-Attempt":      "4",
		"Makegood-Complete-By":  "2026-11-20T08:30:00.25Z",
		"Content-Type":          "application/json",
		"User-Agent":            "makegood",
		"X-Tenant":              "Zoë",
		"Makegood-Forward-Key":  "",
		"Makegood-Outcome":      "",
		"Accept-Encoding":       "",
		"Transfer-Encoding":     "",
		"X-Forwarded-For":       "",
		"Authorization":         "",
		"Makegood-Anything-Els": "",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
}

func TestAnUndoSaysWhatItUndoes(t *testing.T) {
	url, requests := recorder(t)
	a := newAgent(t)
	for _, outcome := range []makegood.Outcome{makegood.OutcomeDone, makegood.OutcomeUnknown} {
		if _, err := call(t, a, undoOf(t, fields{"url": url, "method": "DELETE"}, outcome)); err != nil {
			t.Fatal(err)
		}
		got := (<-requests).Header
		if got.Get("Idempotency-Key") != "j/call/1/undo" || got.Get("Makegood-Forward-Key") != "j/call/1" || got.Get("Makegood-Outcome") != string(outcome) {
			t.Errorf("got %v, want the keys of the undo and of its step, and %s", got, outcome)
		}
	}
}

// Whatever the method, the body is what with says, and none where it is null.
func TestTheBodyIsWhatWithSays(t *testing.T) {
	url, requests := recorder(t)
	a := newAgent(t)
	for _, c := range []struct {
		method string
		body   any
		want   string
	}{
		{"POST", []int{1, 2}, "[1,2]"},
		{"PUT", "text", `"text"`},
		{"PATCH", false, "false"},
		{"DELETE", fields{}, "{}"},
		{"POST", nil, ""},
		{"PUT", nil, ""},
		{"DELETE", nil, ""},
		{"GET", fields{"a": 1}, `{"a":1}`},
		{"HEAD", 1, "1"},
		{"GET", nil, ""},
		{"HEAD", nil, ""},
	} {
		if _, err := call(t, a, taskOf(t, fields{"url": url, "method": c.method, "body": c.body})); err != nil {
			t.Fatal(err)
		}
		got := <-requests
		if got.Method != c.method || got.body != c.want || (got.Header.Get("Content-Type") != "") != (c.want != "") {
			t.Errorf("%s %v: got %s with %q as %q, want %q", c.method, c.body, got.Method, got.body, got.Header.Get("Content-Type"), c.want)
		}
	}
}

func TestAWorkflowMaySayWhatItsBodyIs(t *testing.T) {
	url, requests := recorder(t)
	if _, err := call(t, newAgent(t), taskOf(t, fields{"url": url, "body": 1, "headers": fields{"content-type": "application/vnd.x+json", "user-agent": "shop"}})); err != nil {
		t.Fatal(err)
	}
	if got := (<-requests).Header; got.Get("Content-Type") != "application/vnd.x+json" || got.Get("User-Agent") != "shop" {
		t.Errorf("got %v, want the workflow's type and agent", got)
	}
}

func TestAnInputThatIsNoRequestIsRefusedAndNothingIsSent(t *testing.T) {
	var requests counter
	url := serve(t, requests.handler(http.StatusOK))
	with := func(name string, value any) fields { return fields{"url": url, name: value} }
	header := func(name, value string) fields { return with("headers", fields{name: value}) }
	a := newAgent(t)
	for _, c := range []struct {
		with fields
		want string
	}{
		{fields{}, "url: scheme \"\", want http or https"},
		{fields{"url": "ftp://a/"}, `url: scheme "ftp", want http or https`},
		{fields{"url": "file:///etc/passwd"}, `url: scheme "file", want http or https`},
		{fields{"url": "http:///path"}, "url: names no host"},
		{fields{"url": "http://:80/"}, "url: names no host"},
		{fields{"url": "http:opaque"}, "url: names no host"},
		{fields{"url": "http://user:word@a/"}, "url: holds a user"},
		{fields{"url": "http://a/\r\nHost: b"}, "url: it cannot be read"},
		{fields{"url": url + "/" + strings.Repeat("a", maxURLBytes)}, "the limit is 8192"},
		{fields{"url": 7}, "input.url: is a JSON number, want a string"},
		{with("method", "post"), `method "post": want one of GET, HEAD, POST, PUT, PATCH, DELETE`},
		{with("method", "CONNECT"), `method "CONNECT"`},
		{with("method", "GET / HTTP/1.1\r\nX: y"), "method"},
		{with("verb", "GET"), `input: unknown field "verb"`},
		{with("headers", "X: y"), "input.headers: is a JSON string, want an object"},
		{with("headers", fields{"X": 1}), "is a JSON number, want a string"},
		{header("X", "a\r\nY: b"), "header X: its value has a control character"},
		{header("X", "a\x00"), "header X: its value has a control character"},
		{header("X\r\nY", "a"), "not a name that HTTP allows"},
		{header("X Y", "a"), "not a name that HTTP allows"},
		{header("", "a"), "not a name that HTTP allows"},
		{header("X:", "a"), "not a name that HTTP allows"},
		{header("X", strings.Repeat("a", maxHeaderBytes)), "headers: more than 16384 bytes"},
		{with("headers", fields{"x-a": "1", "X-A": "2"}), "header X-A: there twice"},
		{header("Host", "b"), "header Host: a workflow may not set it, the agent does"},
		{header("content-length", "5"), "header Content-Length: a workflow may not"},
		{header("Transfer-Encoding", "chunked"), "header Transfer-Encoding: a workflow may not"},
		{header("connection", "close"), "header Connection: a workflow may not"},
		{header("expect", "100-continue"), "header Expect: a workflow may not"},
		{header("upgrade", "h2c"), "header Upgrade: a workflow may not"},
		{header("idempotency-key", "mine"), "header Idempotency-Key: a workflow may not"},
		{header("makegood-attempt", "1"), "header Makegood-Attempt: a workflow may not"},
		{header("MAKEGOOD-NEW", "1"), "header Makegood-New: a workflow may not"},
	} {
		_, err := call(t, a, taskOf(t, c.with))
		wantKind(t, err, "final no")
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %q, want it to say %q", c.with, err, c.want)
		}
	}
	if got := requests.Load(); got != 0 {
		t.Errorf("got %d requests, want none", got)
	}
}

// WRK-5. The server answers the first request of a connection, and breaks the connection when the
// second has arrived, as one does that is stopped. Go's transport would send a request with an
// Idempotency-Key again by itself, or a GET with none.
func TestOneAttemptIsOneRequestWhenAKeptConnectionBreaks(t *testing.T) {
	for _, method := range httprules.Methods() {
		for _, body := range []any{nil, fields{"a": 1}} {
			t.Run(fmt.Sprint(method, body), func(t *testing.T) {
				var requests, connections atomic.Int64
				address := listen(t, func(c net.Conn) {
					connections.Add(1)
					r := bufio.NewReader(c)
					for n := 1; readRequest(r); n++ {
						requests.Add(1)
						if n == 2 {
							return
						}
						_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
					}
				})
				a := newAgent(t)
				task := taskOf(t, fields{"url": "http://" + address, "method": method, "body": body})
				_, err := call(t, a, task)
				wantKind(t, err, "success")
				_, err = call(t, a, task)
				wantKind(t, err, "retryable unknown")
				if requests.Load() != 2 || connections.Load() != 1 {
					t.Errorf("got %d requests on %d connections, want two attempts to be two requests on one", requests.Load(), connections.Load())
				}
			})
		}
	}
}

// Many jobs call one service at once; their connections are there for the next calls.
func TestConnectionsToOneHostAreKept(t *testing.T) {
	const many = 50
	var together sync.WaitGroup
	var connections atomic.Int64
	server := http.Server{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			// Nobody is answered before all are here, so that each needs a connection.
			together.Done()
			together.Wait()
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer func() { _ = server.Shutdown(context.Background()) }()

	a := newAgent(t)
	defer a.Close()
	for range 2 {
		together.Add(many)
		var calls sync.WaitGroup
		for range many {
			calls.Go(func() {
				if _, err := call(t, a, taskOf(t, fields{"url": "http://" + listener.Addr().String()})); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	if got := connections.Load(); got != many {
		t.Errorf("got %d connections for 2 x %d calls, want %d", got, many, many)
	}
}
