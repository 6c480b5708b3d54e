package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// maxProblem limits how much of an error's answer is read.
	maxProblem = 64 << 10
	// maxPause is the longest pause, in seconds, that an answer may impose before the next try.
	maxPause = 30
)

// encode writes JSON without escaping <, > and &, which would make six bytes of each: an input within its limit could
// become a body over its own.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// call tries a request until it is answered or the patience ends, and reads the answer into out.
func (c *remote) call(ctx context.Context, method, path string, query url.Values, in, out any) (status int, err error) {
	if err := limits.CheckWho(api.Who(ctx)); err != nil {
		return 0, &api.InvalidError{Message: fmt.Sprintf("name of the caller: %v", err)}
	}
	var body []byte
	if in != nil {
		if body, err = encode(in); err != nil {
			return 0, &api.InvalidError{Message: err.Error()}
		}
	}
	target := c.base.String() + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	try := func() (int, error) { return c.try(ctx, method, target, body, out) }
	if c.patience == 0 {
		status, err = try()
	} else {
		status, err = backoff.Retry(ctx, try, backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(c.patience))
	}
	return status, final(err)
}

// read returns the value at a path of the API. doing begins its error.
func read[T any](ctx context.Context, c *remote, doing, path string, query url.Values) (value T, err error) {
	_, err = c.call(ctx, http.MethodGet, path, query, nil, &value)
	return orFailed(value, doing, err)
}

// post sends a request to a path of the API, and returns its answer. doing begins its error.
func post[T any](ctx context.Context, c *remote, doing, path string, body any) (value T, err error) {
	_, err = c.call(ctx, http.MethodPost, path, nil, body, &value)
	return orFailed(value, doing, err)
}

func orFailed[T any](value T, doing string, err error) (T, error) {
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", doing, err)
	}
	return value, nil
}

// with adds a parameter to a query, unless its value is empty.
func with(query url.Values, name, value string) url.Values {
	if value != "" {
		query.Set(name, value)
	}
	return query
}

func pauses() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, 2*time.Second
	return b
}

// try makes one request. An error that is not permanent is an *UnreachableError.
func (c *remote) try(ctx context.Context, method, target string, body []byte, out any) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, backoff.Permanent(&api.InvalidError{Message: err.Error()})
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if who := api.Who(ctx); who != "" {
		r.Header.Set(protocol.WhoHeader, who)
	}
	answer, err := c.http.Do(r)
	if err != nil && ctx.Err() != nil {
		return 0, backoff.Permanent(context.Cause(ctx))
	}
	if err != nil {
		return 0, c.unreachable(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusCreated {
		err := json.NewDecoder(answer.Body).Decode(out)
		if _, noJSON := errors.AsType[*json.SyntaxError](err); noJSON && method == http.MethodGet {
			// The fate of a request that changes state is unknown, whatever server answered.
			return 0, backoff.Permanent(&api.InvalidError{Message: fmt.Sprintf("%s answers, and is no Makegood API: its answer is no JSON; an API that is mounted under a path has it in its address: %[1]s/makegood, for example", c.base)})
		}
		if err != nil {
			return 0, c.unreachable(fmt.Errorf("read the answer: %w", err))
		}
		return answer.StatusCode, nil
	}
	return answer.StatusCode, c.problemOf(answer)
}

// problemOf returns the error of an answer.
func (c *remote) problemOf(answer *http.Response) error {
	var p protocol.Problem
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil || json.Unmarshal(text, &p) != nil || p.Error == "" {
		p = protocol.Problem{Error: c.stranger(answer)}
	}
	switch status := answer.StatusCode; {
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		err := c.answered(status, p)
		if seconds, convErr := strconv.Atoi(answer.Header.Get("Retry-After")); convErr == nil && 0 < seconds && seconds <= maxPause {
			return errors.Join(err, backoff.RetryAfter(seconds))
		}
		return err
	case status >= http.StatusInternalServerError || status < http.StatusBadRequest:
		return backoff.Permanent(c.answered(status, p))
	default:
		if err := p.Err(status); err != nil {
			return backoff.Permanent(err)
		}
		return backoff.Permanent(&api.InvalidError{Message: p.Error, Status: status, Misfits: p.Misfits})
	}
}

// stranger describes an answer that is not the API's: the likely mistake in the address.
func (c *remote) stranger(answer *http.Response) string {
	if answer.StatusCode != http.StatusNotFound {
		return "it answered " + answer.Status + ", and is perhaps not a Makegood"
	}
	return fmt.Sprintf("%s answered %s, and is perhaps not a Makegood; an API that is mounted under a path has it in its address: %s/makegood, for example",
		c.base, answer.Status, c.base)
}

// answered returns the error for a problem of the API, not of its caller.
func (c *remote) answered(status int, p protocol.Problem) error {
	err := p.Err(status)
	if err == nil {
		err = errors.New(p.Error)
	}
	return &api.UnreachableError{URL: c.base.String(), Status: status, Err: err}
}

func (c *remote) unreachable(err error) error {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		err = wrapped.Err // The URL is named once; the cause matters.
	}
	return &api.UnreachableError{URL: c.base.String(), Err: err}
}
