package httpagent

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

// through is a transport made of one function.
type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whatever carries it, the request is the one that the agent makes, and the answer is read by its rules.
func TestARequestOverAnotherTransportIsTheSameRequest(t *testing.T) {
	var got *http.Request
	a := NewOver(through(func(r *http.Request) (*http.Response, error) {
		got = r
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("later"))}, nil
	}))
	defer a.Close()
	_, err := call(t, a, undoOf(t, fields{"url": "http://nowhere.invalid/refund"}, "done"))
	wantKind(t, err, "retryable unknown")
	for header, want := range map[string]string{headerKey: "j/call/1/undo", headerForwardKey: "j/call/1", headerAttempt: "4", headerOutcome: "done"} {
		if got.Header.Get(header) != want {
			t.Errorf("%s: got %q, want %q", header, got.Header.Get(header), want)
		}
	}
}

// What fails before there is a connection was surely not applied; after that nobody knows.
func TestAnotherTransportSaysWhenItIsConnected(t *testing.T) {
	for _, test := range []struct {
		connects bool
		want     string
	}{{false, "retryable no"}, {true, "retryable unknown"}} {
		a := NewOver(through(func(r *http.Request) (*http.Response, error) {
			if test.connects {
				httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
			}
			return nil, errors.New("reset")
		}))
		_, err := call(t, a, taskOf(t, fields{"url": "http://nowhere.invalid/charge"}))
		wantKind(t, err, test.want)
	}
}
