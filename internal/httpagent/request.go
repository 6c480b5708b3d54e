package httpagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/httpagent/httprules"
)

const (
	// maxURLBytes is how long an address may be.
	maxURLBytes = 8 << 10
	// maxHeaderBytes is how large the headers of a workflow may be together.
	maxHeaderBytes = 16 << 10
)

// The headers that are sent with every request, and those of an undo.
const (
	headerKey        = "Idempotency-Key"
	headerAttempt    = "Makegood-Attempt"
	headerCompleteBy = "Makegood-Complete-By"
	headerForwardKey = "Makegood-Forward-Key"
	headerOutcome    = "Makegood-Outcome"
	headerTrace      = "Traceparent"
	ourHeaders       = "Makegood-"
	userAgent        = "makegood"
)

// input is the with of an http step, evaluated.
type input struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// newRequest makes the one request of an attempt. Its errors name the fault of the input.
func newRequest(task makegood.Task, completeBy time.Time) (*http.Request, error) {
	var in input
	if err := agent.DecodeStrict(task.Input, &in); err != nil {
		return nil, err
	}
	if in.Method == "" {
		in.Method = http.MethodPost
	}
	if !slices.Contains(httprules.Methods(), in.Method) {
		return nil, fmt.Errorf("method %q: want one of %s", in.Method, strings.Join(httprules.Methods(), ", "))
	}
	u, err := parseURL(in.URL)
	if err != nil {
		return nil, err
	}
	header, err := callerHeader(in.Headers)
	if err != nil {
		return nil, err
	}
	request := &http.Request{Method: in.Method, URL: u, Host: u.Host, Header: header}
	setBody(request, in.Body)
	setOurHeaders(request, task, completeBy)
	return request, nil
}

func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURLBytes {
		return nil, fmt.Errorf("url: %d bytes, the limit is %d", len(text), maxURLBytes)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// Without the error, which quotes the text: any part may hold secrets.
		return nil, errors.New("url: it cannot be read, and is not shown")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url: scheme %q, want http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("url: names no host")
	case u.User != nil:
		return nil, errors.New("url: holds a user; send an Authorization header instead")
	}
	return u, nil
}

// callerHeader checks the headers that a workflow asks for.
func callerHeader(headers map[string]string) (http.Header, error) {
	header, size := make(http.Header), 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		size += len(name) + len(value)
		key := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !isToken(name):
			return nil, fmt.Errorf("header %q: not a name that HTTP allows", name)
		case !isFieldValue(value):
			return nil, fmt.Errorf("header %s: its value has a control character, such as a line break", key)
		case isOurs(key):
			return nil, fmt.Errorf("header %s: a workflow may not set it, the agent does", key)
		case header[key] != nil:
			return nil, fmt.Errorf("header %s: there twice", key)
		case size > maxHeaderBytes:
			return nil, fmt.Errorf("headers: more than %d bytes", maxHeaderBytes)
		}
		header[key] = []string{value}
	}
	return header, nil
}

// isOurs reports whether a header frames the message, or tells the remote which attempt this is: for safety only this
// package may set it.
func isOurs(key string) bool {
	switch key {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Connection", "Keep-Alive",
		"Te", "Trailer", "Upgrade", "Expect", headerKey, "X-Idempotency-Key":
		return true
	}
	return strings.HasPrefix(key, ourHeaders)
}

// isToken reports whether name is a token of RFC 9110.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

func isFieldValue(value string) bool {
	return !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7F })
}

// setBody gives the request its body: none where it is null or missing. The evaluation of a step's with already
// decided that a step without a body sends the job's input.
//
// Go's transport sends a request again by itself when a kept-alive connection breaks, if it has no body, or a body
// that it can get once more, and an Idempotency-Key. One attempt is one request, so every request here has a body, be
// it empty, and none that can be got again.
func setBody(request *http.Request, body json.RawMessage) {
	if string(body) == "null" {
		body = nil
	}
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if _, set := request.Header["Content-Type"]; !set && len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
}

func setOurHeaders(request *http.Request, task makegood.Task, completeBy time.Time) {
	h := request.Header
	if _, set := h["User-Agent"]; !set {
		h.Set("User-Agent", userAgent)
	}
	h.Set(headerKey, task.Key)
	h.Set(headerAttempt, strconv.Itoa(task.Attempt))
	if !completeBy.IsZero() {
		h.Set(headerCompleteBy, completeBy.UTC().Format(time.RFC3339Nano))
	}
	if _, set := h[headerTrace]; !set && task.Traceparent != "" {
		h.Set(headerTrace, task.Traceparent)
	}
	if task.Undo != nil {
		h.Set(headerForwardKey, task.Undo.ForwardKey)
		h.Set(headerOutcome, string(task.Undo.Outcome))
	}
}
