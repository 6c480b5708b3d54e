package client

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// awayPatience is how long a store may take to answer after all bytes were sent.
	awayPatience = time.Minute
	// awayContinue is how long a store may take to accept the body: a store that refuses is not sent 100 MB.
	awayContinue = 2 * time.Second
)

// newAway makes the client for stores that the API names. It is separate from the client of the API, whatever that was
// configured with: it carries no credential of the API, and follows no redirect.
func newAway() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout, t.ExpectContinueTimeout = awayPatience, awayContinue
	// The bytes read must be the bytes that were hashed.
	t.DisableCompression = true
	return &http.Client{Transport: t, CheckRedirect: followNobody}
}

// awayRequest makes the request of a door. No error contains its URL: any reader of the URL may make the request.
func (c *remote) awayRequest(ctx context.Context, door payloadDoor, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, door.Method, door.URL, body)
	if err != nil {
		return nil, c.unreachable(errors.New("it leads to a payload store at an address that is no URL"))
	}
	if !safe(r.URL) {
		return nil, c.unreachable(fmt.Errorf("it leads to a payload store at %s://%s: want https", r.URL.Scheme, r.URL.Host))
	}
	for name, value := range door.Headers {
		r.Header.Set(name, value)
	}
	return r, nil
}

// safe reports whether bytes may go to a URL: https, or this machine, so no host on the way can read them.
func safe(u *url.URL) bool {
	host := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || host != nil && host.IsLoopback()
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && loopback)
}

// putAway sends a payload through a door to a store.
func (c *remote) putAway(ctx context.Context, door payloadDoor, body io.Reader, length int64) error {
	r, err := c.awayRequest(ctx, door, body)
	if err != nil {
		return backoff.Permanent(err)
	}
	if r.ContentLength = length; length == 0 {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Expect", "100-continue")
	}
	answer, err := c.goAway(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		return nil
	}
	return c.refusedAway(r, answer)
}

// goAway makes a request to a store.
func (c *remote) goAway(r *http.Request) (*http.Response, error) {
	answer, err := c.away.Do(r)
	if err != nil {
		if wrapped, is := errors.AsType[*url.Error](err); is {
			err = wrapped.Err // The URL is in what wraps it.
		}
		return nil, c.unreachable(fmt.Errorf("the payload store at %s: %w", r.URL.Host, err))
	}
	return answer, nil
}

// refusedAway returns the error for a store's refusal. It quotes only the code: S3 repeats the signature in its text.
// A door that has closed, or that already has an object behind it, is worth another try, and so is an error of the
// store itself.
func (c *remote) refusedAway(r *http.Request, answer *http.Response) error {
	var said struct{ Code string }
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil || xml.Unmarshal(text, &said) != nil || len(said.Code) > maxCode {
		said.Code = http.StatusText(answer.StatusCode)
	}
	advice := ""
	if answer.StatusCode == http.StatusForbidden {
		advice = ": the request that it was led to is not allowed. May the role of its maker use the bucket and its key?"
	}
	err = c.unreachable(fmt.Errorf("the payload store at %s answered %d (%s)%s", r.URL.Host, answer.StatusCode, said.Code, advice))
	switch status := answer.StatusCode; {
	case status == http.StatusBadRequest, status == http.StatusForbidden, status == http.StatusRequestTimeout, status == http.StatusConflict,
		status == http.StatusPreconditionFailed, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return err
	}
	return backoff.Permanent(err)
}

// maxCode is the maximum length of a store's error code.
const maxCode = 80
