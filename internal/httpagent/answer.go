package httpagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// maxErrorBytes is how much of the body of an error is read; a connection on which there is more
	// is not kept.
	maxErrorBytes = 4 << 10
	// maxExcerptBytes is how much of the body is quoted in the message.
	maxExcerptBytes = 300
)

// answer is a response, and its request.
type answer struct {
	task     makegood.Task
	request  *http.Request
	response *http.Response
}

// read says what the answer means. The rules are in design.md, section 4.
func (a answer) read() (json.RawMessage, error) {
	status := a.response.StatusCode
	switch {
	case 200 <= status && status <= 299:
		return a.output()
	case a.task.Undo != nil && (status == http.StatusNotFound || status == http.StatusGone):
		// There is no effect to undo.
		return nil, nil
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		500 <= status && status <= 599:
		after, err := retryAfter(a.response.Header, time.Now()), a.kind(a.failure())
		if after > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
			return nil, agent.SlowDown(after, err)
		}
		return nil, agent.RetryAfter(after, err)
	case 400 <= status && status <= 499:
		return nil, agent.Final(agent.NotApplied(a.kind(a.failure())))
	case 300 <= status && status <= 399:
		// Not NotApplied: a See Other is how many services say that it is done.
		return nil, agent.Final(a.kind(a.about(fmt.Errorf("%s, and redirects are not followed", statusLine(status)))))
	default:
		return nil, agent.Final(a.kind(a.about(fmt.Errorf("%s is no answer to a request", statusLine(status)))))
	}
}

// kind says that an error is of the kind of its status: http_404.
func (a answer) kind(err error) error {
	return agent.Kind(fmt.Sprintf("http_%d", a.response.StatusCode), err)
}

// output reads the body of a success: JSON as it is, an empty body as null, all else as a string.
func (a answer) output() (json.RawMessage, error) {
	body, err := io.ReadAll(io.LimitReader(a.response.Body, makegood.MaxPayloadBytes+1))
	switch {
	case err != nil:
		return nil, a.about(fmt.Errorf("%s, and then: %w", statusLine(a.response.StatusCode), err))
	case len(body) > makegood.MaxPayloadBytes:
		return nil, agent.Final(a.about(fmt.Errorf("the answer has more than %d bytes", makegood.MaxPayloadBytes)))
	case len(bytes.TrimSpace(body)) == 0:
		return nil, nil
	case json.Valid(body) && utf8.Valid(body):
		return body, nil
	}
	text, err := json.Marshal(strings.ToValidUTF8(string(body), "\uFFFD"))
	if err != nil {
		return nil, agent.Final(a.about(fmt.Errorf("write the answer as JSON: %w", err)))
	}
	return text, nil
}

// failure quotes the status, and the beginning of the body, which often says why.
func (a answer) failure() error {
	line := statusLine(a.response.StatusCode)
	// An error here is one about the reason only.
	body, _ := io.ReadAll(io.LimitReader(a.response.Body, maxErrorBytes))
	body = bytes.TrimSpace(withoutAddress(body, a.request.URL))
	if excerpt := body[:min(len(body), maxExcerptBytes)]; len(excerpt) > 0 {
		line += ": " + strings.ToValidUTF8(string(excerpt), "")
	}
	return a.about(errors.New(line))
}

// withoutAddress removes the requested address from a body, since many servers quote it ("Cannot POST /path").
func withoutAddress(body []byte, u *url.URL) []byte {
	for _, part := range []string{u.RequestURI(), html.EscapeString(u.RequestURI()), u.EscapedPath(), u.Path, u.RawQuery} {
		if part != "" && part != "/" {
			body = bytes.ReplaceAll(body, []byte(part), []byte("[not shown]"))
		}
	}
	return body
}

func (a answer) about(err error) error { return about(a.request, err) }

// statusLine is the status in our words: the remote's may be anything.
func statusLine(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// retryAfter reads how long the remote asks to be left alone: seconds, or a date. It is at most
// limits.MaxBackoff; the step's retry.max shortens it further.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	seconds, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err == nil:
		return min(time.Duration(seconds)*time.Second, limits.MaxBackoff)
	case errors.Is(err, strconv.ErrRange):
		return limits.MaxBackoff
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(0, date.Sub(now)), limits.MaxBackoff)
}
