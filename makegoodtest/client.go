package makegoodtest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
)

// Client returns an HTTP client that sends all requests to handler, whatever their address, in this process and
// without a network, so that they can be waited for in a bubble. Like one of Go's servers the handler runs in a
// goroutine of its own, also after the caller has given up, and breaks the connection by panicking with
// http.ErrAbortHandler. The client follows no redirects: each would be a second request.
func Client(handler http.Handler) *http.Client {
	return &http.Client{
		Transport:     inProcess{handler},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// inProcess is a transport to a handler.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	served, err := arriving(request)
	if err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	answers := make(chan *http.Response, 1)
	go p.serve(served, answers)
	select {
	case response, answered := <-answers:
		if !answered {
			return nil, fmt.Errorf("the connection broke: %w", io.ErrUnexpectedEOF)
		}
		response.Request = request
		return response, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// arriving returns the request as a server sees it.
func arriving(request *http.Request) (*http.Request, error) {
	var body []byte
	if request.Body != nil {
		var err error
		body, err = io.ReadAll(request.Body)
		_ = request.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read the body of the request: %w", err)
		}
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	served := request.Clone(request.Context())
	served.Body, served.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	served.RequestURI, served.RemoteAddr = request.URL.RequestURI(), "192.0.2.1:1234"
	served.Host = cmp.Or(served.Host, request.URL.Host)
	return served, nil
}

func (p inProcess) serve(request *http.Request, answers chan<- *http.Response) {
	defer close(answers)
	defer func() {
		if value := recover(); value != nil && value != http.ErrAbortHandler {
			panic(value)
		}
	}()
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, request)
	answers <- recorder.Result()
}
