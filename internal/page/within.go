package page

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/protocol"
)

// withinURL names an API in this process; nobody resolves it.
const withinURL = "http://localhost"

// Within returns a client of an API in this process: its requests are calls, and reach no network.
func Within(api http.Handler) (*client.Client, error) {
	return client.New(withinURL, client.WithHTTPClient(&http.Client{Transport: within{api}}), client.WithPatience(0))
}

// within carries a request to a handler.
type within struct{ api http.Handler }

// RoundTrip is one request, answered whole.
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r = r.WithContext(context.WithValue(r.Context(), insideKey{}, true))
	r.RequestURI, r.Host = r.URL.RequestURI(), r.URL.Host
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	w.api.ServeHTTP(answer, r)
	_ = r.Body.Close() // It is in memory.
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *recorder) WriteHeader(status int) { r.status = status }

type (
	incomingKey struct{}
	insideKey   struct{}
)

// incoming returns the context of a request that knows the request itself.
func incoming(r *http.Request) context.Context {
	return context.WithValue(r.Context(), incomingKey{}, r)
}

// Callers returns a function that names the caller of a request, also of the requests that the page makes: a request for a
// browser has the browser's caller, a request of a repair the person who began the repair, or unknown.
func Callers(of func(*http.Request) string, unknown string) func(*http.Request) string {
	return func(r *http.Request) string {
		outer, inside := Incoming(r)
		if inside && outer == nil {
			return cmp.Or(r.Header.Get(protocol.WhoHeader), unknown)
		}
		return of(cmp.Or(outer, r))
	}
}

// Incoming returns the request of a browser for which this one, of a client of Within, was made; nil: it is no such request.
// Who knows the callers of a page by their requests looks there. inside says whether it was made by such a client at all: it may
// be of a repair, which goes on when its browser has gone, and then only protocol.WhoHeader says who began that.
func Incoming(r *http.Request) (outer *http.Request, inside bool) {
	outer, _ = r.Context().Value(incomingKey{}).(*http.Request)
	inside, _ = r.Context().Value(insideKey{}).(bool)
	return outer, inside
}
