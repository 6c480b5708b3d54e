//go:build linux

// Package lambdahost runs Lambda functions for tests as Lambda runs them: the real bootstrap binaries as
// processes behind the Runtime API, several environments for each function, fed from SQS queues with the
// semantics of an event source mapping, by a schedule, and behind a URL that asks for a signature (URL).
// Only tests import it.
//
// It has no queues and no table of its own: those are a stand-in's, and so are visibility, receive counts
// and the redrive policy that takes a message to its dead-letter queue. It does not freeze an environment
// between invocations, knows no permissions, and does not scale pollers: a mapping polls with all of its
// MaximumConcurrency from the start.
package lambdahost

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Host is the machine that environments run on: one listener on loopback, at which each of them finds the
// Runtime API under a path of its own.
type Host struct {
	server  *http.Server
	proxies []*http.Server
	address string

	mu           sync.Mutex
	environments map[string]*environment
	made         int
	functions    []*Function
}

// New starts a host on a free port of loopback. Close ends it, with every process that it started.
func New() (*Host, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the Runtime API: %w", err)
	}
	h := &Host{address: listener.Addr().String(), environments: map[string]*environment{}}
	h.server = &http.Server{Handler: http.HandlerFunc(h.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.server.Serve(listener) }() // It ends with Close.
	return h, nil
}

// Close kills all processes, waits until they are gone, and stops listening. Mappings and schedules must
// have been stopped before: an invocation that is under way ends with ErrDied.
func (h *Host) Close() error {
	h.mu.Lock()
	functions, proxies := h.functions, h.proxies
	h.mu.Unlock()
	for _, f := range functions {
		f.close()
	}
	err := h.server.Close()
	for _, p := range proxies {
		err = errors.Join(err, p.Close())
	}
	return err
}

// register gives an environment its name, and the address of its Runtime API.
func (h *Host) register(e *environment) (api string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made++
	e.name = strconv.Itoa(h.made)
	h.environments[e.name] = e
	return h.address + "/env/" + e.name
}

func (h *Host) forget(e *environment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.environments, e.name)
}

// serve is the Runtime API: /env/N/2018-06-01/runtime/..., N being the environment.
func (h *Host) serve(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/env/"), "/")
	h.mu.Lock()
	e := h.environments[name]
	h.mu.Unlock()
	if e == nil {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(rest, "/runtime/invocation/next") {
		e.serveNext(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The process died while it answered.
	}
	// .../invocation/ID/response, .../invocation/ID/error, .../init/error
	kind := path.Base(rest)
	id := path.Base(path.Dir(rest))
	if id == "init" {
		return // The process ends by itself, and that is noticed.
	}
	e.answer(id, Answer{Failed: kind != "response", Body: body})
	w.WriteHeader(http.StatusAccepted)
}

// serveNext waits for the next invocation and hands it over.
func (e *environment) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case i := <-e.next:
		header := w.Header()
		header.Set("Lambda-Runtime-Aws-Request-Id", i.id)
		header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(i.timeout).UnixMilli(), 10))
		header.Set("Lambda-Runtime-Trace-Id", i.trace)
		header.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:000000000000:function:"+url.PathEscape(e.function))
		header.Set("Content-Type", "application/json")
		_, _ = w.Write(i.event) // Whether it arrived, the answer or the process's end says.
	case <-e.ended:
	case <-r.Context().Done():
	}
}

// What Invoke returns, beside functionurl.ErrThrottled, when a function did not answer. Its messages are left to their
// visibility timeout.
var (
	// ErrRecursive: no code was run, since the function is already in the chain MaxHops times.
	ErrRecursive = errors.New("a recursive loop was broken")
	// ErrTimeout: the process was killed at its timeout. What it did is unknown.
	ErrTimeout = errors.New("the function ran into its timeout")
	// ErrDied: the process ended before it answered. What it did is unknown.
	ErrDied = errors.New("the process ended")
)
