// Package httpagent is the built-in agent "http": one attempt is exactly one HTTP request, and its
// answer is read as success, a failure that may pass, or a final one.
//
// It follows no redirect, repeats no request, keeps no cookies, and uses no proxy; to try again is
// the Scheduler's. Where it may connect to is a Policy, checked on the address after DNS.
package httpagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/agentctx"
)

const (
	// maxResponseHeaderBytes is how large the header of an answer may be.
	maxResponseHeaderBytes = 64 << 10
	// maxIdlePerHost is how many connections to one host are kept for the next requests: steps of
	// many jobs often go to the same service at once.
	maxIdlePerHost = 256
	// idleTimeout is how long a connection is kept unused. It is shorter than that of common servers
	// (5 s and more): a request on a connection that its server has just closed is a failed attempt.
	idleTimeout = 4 * time.Second
	// handshakeTimeout limits TLS, which the transport does not stop when the request's context ends.
	handshakeTimeout = 10 * time.Second
)

// kindConnection is the error kind of a request that could not be sent.
const kindConnection = "connection"

var _ agent.Handler = (*Agent)(nil)

// Agent is the http agent. It has no actions of its own: whatever a step calls its action, with says
// what to do. Many goroutines may use it at once.
type Agent struct {
	guard     *guard
	transport http.RoundTripper
	quiet     quiet
}

// New makes the http agent. It fails where the policy cannot be understood.
func New(policy Policy) (*Agent, error) {
	g, err := newGuard(policy)
	if err != nil {
		return nil, fmt.Errorf("http agent: %w", err)
	}
	a := &Agent{guard: g}
	// No Proxy: it would make the address that is checked another one than that of the request.
	a.transport = &http.Transport{
		DialContext:            a.dial,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		DisableCompression:     true,
	}
	return a, nil
}

// NewOver makes an http agent that sends through a transport of the caller's, for tests with services in the same
// process. There is no policy: the transport alone decides where it connects to. It must make one request of one, and
// tell an httptrace of the context when it has a connection, before it sends any data: a failure before that counts
// as surely not applied.
func NewOver(transport http.RoundTripper) *Agent { return &Agent{transport: transport} }

// Close closes the connections that wait for the next request. The agent can still be used.
func (a *Agent) Close() {
	if t, keeps := a.transport.(interface{ CloseIdleConnections() }); keeps {
		t.CloseIdleConnections()
	}
}

// Name is "http".
func (a *Agent) Name() string { return makegood.HTTPAgent }

// Handle sends the request that the task's input describes, once, and reads the answer. It ends when ctx does. An
// invalid input, or a forbidden address, is a final error and surely not applied; so is a 4xx, but for 408, 425 and
// 429. A connection that could not be made is retryable and surely not applied. All other failures may have had their
// effect. While a service wants no requests, by a 429 or 503 with Retry-After, none is sent to it from this process,
// and then one goes first.
func (a *Agent) Handle(ctx context.Context, task makegood.Task) (json.RawMessage, error) {
	request, err := newRequest(task, agentctx.CompleteBy(ctx))
	if err != nil {
		return nil, agent.Final(agent.NotApplied(err))
	}
	if err := a.quiet.refuse(ctx, request); err != nil {
		return nil, err
	}
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	ctx = context.WithValue(ctx, requestKey{}, ctx)
	request = request.WithContext(httptrace.WithClientTrace(ctx, trace))

	// RoundTrip and not a Client: a client would follow redirects, and put the whole address with
	// its query into its errors.
	response, err := a.transport.RoundTrip(request)
	if err != nil {
		err = unanswered(request, err, connected.Load())
		a.quiet.hear(request, err, time.Now())
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	output, err := answer{task: task, request: request, response: response}.read()
	a.quiet.hear(request, err, time.Now())
	return output, err
}

// unanswered reads the error of a request that got no answer.
func unanswered(request *http.Request, err error, connected bool) error {
	refused := new(addressError)
	switch {
	case errors.As(err, &refused):
		return agent.Final(agent.NotApplied(about(request, refused)))
	case !connected:
		// Refused, no such name, no TLS, or out of time before any of that: no request was sent.
		return agent.Kind(kindConnection, agent.NotApplied(about(request, err)))
	default:
		return about(request, err)
	}
}

// about says which request an error is about, without the path and the query, which may hold secrets: the
// job keeps what an agent says, and announces it.
func about(request *http.Request, err error) error {
	return fmt.Errorf("%s %s://%s: %w", request.Method, request.URL.Scheme, request.URL.Host, err)
}

// requestKey is the key under which a request's context finds itself.
type requestKey struct{}

// dial connects to an address that the policy allows.
func (a *Agent) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	// The transport lets a dial go on after its request has ended, in the hope of another one. Here no dial should go on.
	if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
		if request.Err() != nil {
			return nil, context.Cause(request) // AfterFunc would end the dial in a while, and one on this machine is quicker
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(request, cancel)()
	}
	dialer := net.Dialer{
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return a.guard.check(host, address)
		},
	}
	return dialer.DialContext(ctx, network, address)
}
