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
	// awayPatience is how long a store may take to answer when all was sent.
	awayPatience = time.Minute
	// awayContinue is how long a store may take to say that it wants the body at all: one that refuses is not sent 100 MB.
	awayContinue = 2 * time.Second
)

// newAway makes the client of stores that the API leads to. It is another than that of the API, whatever that one was given: no
// credential that belongs to the API goes along, and nobody leads on from there.
func newAway() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout, t.ExpectContinueTimeout = awayPatience, awayContinue
	// What is read is what was hashed.
	t.DisableCompression = true
	return &http.Client{Transport: t, CheckRedirect: followNobody}
}

// awayRequest makes the request that a door is. No error has its URL: whoever reads that may make the request.
func (c *remote) awayRequest(ctx context.Context, door payloadDoor, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, door.Method, door.URL, body)
	if err != nil {
		return nil, c.unreachable(errors.New("it leads to a payload store at what is no URL"))
	}
	if !safe(r.URL) {
		return nil, c.unreachable(fmt.Errorf("it leads to a payload store at %s://%s: want https", r.URL.Scheme, r.URL.Host))
	}
	for name, value := range door.Headers {
		r.Header.Set(name, value)
	}
	return r, nil
}

// safe reports whether bytes may go to a URL: nobody on the way reads them.
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
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // The URL is in what wraps it.
		}
		return nil, c.unreachable(fmt.Errorf("the payload store at %s: %w", r.URL.Host, err))
	}
	return answer, nil
}

// refusedAway says what a store answered. Of its text only the code is said: S3 quotes the signature in it. A door that has
// closed, or that something was there already behind, is worth another one, and so is what a store says of itself.
func (c *remote) refusedAway(r *http.Request, answer *http.Response) error {
	var said struct{ Code string }
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil || xml.Unmarshal(text, &said) != nil || len(said.Code) > maxCode {
		said.Code = http.StatusText(answer.StatusCode)
	}
	advice := ""
	if answer.StatusCode == http.StatusForbidden {
		advice = ": the request that it was led to is not allowed. May the role of whoever made it use the bucket and its key?"
	}
	err = c.unreachable(fmt.Errorf("the payload store at %s answered %d (%s)%s", r.URL.Host, answer.StatusCode, said.Code, advice))
	switch status := answer.StatusCode; {
	case status == http.StatusBadRequest, status == http.StatusForbidden, status == http.StatusRequestTimeout, status == http.StatusConflict,
		status == http.StatusPreconditionFailed, status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return err
	}
	return backoff.Permanent(err)
}

// maxCode is how long the code of an answer of a store is.
const maxCode = 80
