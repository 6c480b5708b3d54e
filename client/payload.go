package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/transfer"
	"github.com/makegood-dev/makegood/internal/protocol"
)

var _ api.Payloads = (*remote)(nil)

const (
	// maxTransfers is how often in a row a payload is sent, or read on, without a byte that came through.
	maxTransfers = 4
	// anyType is the Content-Type of what nobody has said the type of.
	anyType = "application/octet-stream"
)

// payloadDoor is one request to make, as the API says it.
type payloadDoor struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Payload *makegood.Payload `json:"payload"`
}

// upload is what the API is told of what is to be written.
type upload struct {
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Type   string `json:"type,omitempty"`
}

// WritePayload is what Payloads says. What can be read again from its beginning (an io.Seeker) is hashed first, and sent again
// where a line broke. An engine takes anything else as it comes, once; for a stack it is kept in a temporary file until it was
// sent, above a megabyte.
func (c *remote) WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error) {
	p, err := c.writePayload(ctx, id, mediaType, from)
	switch {
	case errors.Is(err, payload.ErrTooLarge):
		err = &api.InvalidError{Message: payload.ErrTooLarge.Error(), Status: http.StatusRequestEntityTooLarge}
	case errors.Is(err, transfer.ErrChanged):
		err = &api.InvalidError{Message: transfer.ErrChanged.Error()}
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		return makegood.Payload{}, fmt.Errorf("write a payload of job %s: %w", id, err)
	}
	return p, nil
}

func (c *remote) writePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error) {
	if err := errors.Join(payload.Place{Job: id}.Check(), limits.CheckPayloadType(mediaType)); err != nil {
		return makegood.Payload{}, &api.InvalidError{Message: err.Error()}
	}
	if kind, _, err := mime.ParseMediaType(mediaType); err == nil && kind == anyType {
		mediaType = ""
	}
	source, seekable := transfer.Rewindable(from)
	if !seekable {
		_, err := c.askToWrite(ctx, id, upload{Type: mediaType})
		switch {
		case err == nil:
			return c.sendOnce(ctx, id, mediaType, from)
		case !lengthRequired(err):
			return makegood.Payload{}, err
		}
		kept, err := transfer.Spool(from)
		if err != nil {
			return makegood.Payload{}, err
		}
		defer kept.Close()
		source = kept
	}
	written, err := source.Measure()
	if err != nil {
		return makegood.Payload{}, err
	}
	return c.send(ctx, id, upload{SHA256: written.SHA256, Bytes: written.Bytes, Type: mediaType}, source)
}

// lengthRequired reports whether the API wants to know the hash of what is written.
func lengthRequired(err error) bool {
	var invalid *api.InvalidError
	return errors.As(err, &invalid) && invalid.Status == http.StatusLengthRequired
}

// askToWrite asks where a payload is written.
func (c *remote) askToWrite(ctx context.Context, id string, u upload) (d payloadDoor, err error) {
	_, err = c.call(ctx, http.MethodPost, pathOf(id)+"/payloads", nil, u, &d)
	return d, err
}

// sendOnce sends the API itself what cannot be read twice.
func (c *remote) sendOnce(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error) {
	limited := payload.Limit(from)
	read := transfer.NewOnce(limited)
	p, err := c.put(ctx, id, mediaType, read, -1)
	switch failed := read.Failed(); {
	case errors.Is(failed, payload.ErrTooLarge):
		return p, payload.ErrTooLarge
	case failed != nil:
		return p, fmt.Errorf("read it: %w", failed)
	case err != nil:
		return p, final(err)
	}
	return p, transfer.Same(p, limited.Written())
}

// put sends the API itself the bytes of a payload.
func (c *remote) put(ctx context.Context, id, mediaType string, body io.Reader, length int64) (p makegood.Payload, err error) {
	r, err := c.request(ctx, http.MethodPut, pathOf(id)+"/payloads", body)
	if err != nil {
		return p, err
	}
	r.ContentLength = length
	r.Header.Set("Content-Type", cmp.Or(mediaType, anyType))
	answer, err := c.stream(r)
	if err != nil {
		return p, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated {
		return p, c.problemOf(answer)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(&p); err != nil {
		return p, c.unreachable(fmt.Errorf("read the answer: %w", err))
	}
	return p, nil
}

// send sends what can be read again, until it is there.
func (c *remote) send(ctx context.Context, id string, u upload, source *transfer.Source) (makegood.Payload, error) {
	want := payload.Written{SHA256: u.SHA256, Bytes: u.Bytes}
	err := c.again(ctx, func() error {
		door, err := c.askToWrite(ctx, id, u)
		if err != nil || door.Method == "" {
			return backoff.Permanent(err) // askToWrite was patient itself.
		}
		body, err := source.Open(want)
		if err != nil {
			return backoff.Permanent(err)
		}
		defer body.Close()
		if door.URL == "" {
			var p makegood.Payload
			if p, err = c.put(ctx, id, u.Type, body, u.Bytes); err == nil {
				err = transfer.Same(p, want)
			}
		} else {
			err = c.putAway(ctx, door, body, u.Bytes)
		}
		// Nobody reads from it any more once it is closed.
		if changed := body.Changed(); changed != nil {
			return backoff.Permanent(changed)
		}
		return err
	})
	return makegood.Payload{SHA256: u.SHA256, Bytes: u.Bytes, Type: u.Type}, err
}

// again does something until it is done, fails for good, or has failed maxTransfers times.
func (c *remote) again(ctx context.Context, do func() error) error {
	tries := uint(maxTransfers)
	if c.patience == 0 {
		tries = 1
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, do() },
		backoff.WithBackOff(pauses()), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
	return final(err)
}

// final is an error without what says when to try again.
func final(err error) error {
	var permanent *backoff.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Err
	}
	var unreachable *api.UnreachableError
	if errors.As(err, &unreachable) {
		return unreachable
	}
	return err
}

// request makes a request to the API, for as long as it takes until ctx ends: how long 100 MB take nobody knows.
func (c *remote) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		return nil, &api.InvalidError{Message: err.Error()}
	}
	if who := api.Who(ctx); who != "" {
		r.Header.Set(protocol.WhoHeader, who)
	}
	return r, nil
}

// stream asks the API once. It follows nobody elsewhere, with what belongs to the API in its header.
func (c *remote) stream(r *http.Request) (*http.Response, error) {
	patient := *c.http
	patient.Timeout = 0
	patient.CheckRedirect = followNobody
	answer, err := patient.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return answer, nil
}

func followNobody(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// OpenPayload is what Payloads says. What breaks off is read on from where it did.
func (c *remote) OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error) {
	r, err := c.open(ctx, id, p, 0, p.Bytes)
	if err != nil {
		return nil, err
	}
	return payload.Checked(p, r), nil
}

// OpenPayloadRange is what Payloads says.
func (c *remote) OpenPayloadRange(ctx context.Context, id string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	if err := payload.CheckRange(p, offset, n); err != nil {
		return nil, fmt.Errorf("open a payload of job %s: %w", id, &api.InvalidError{Message: err.Error()})
	}
	if n < 0 {
		n = p.Bytes - offset
	}
	return c.open(ctx, id, p, offset, n)
}

func (c *remote) open(ctx context.Context, id string, p makegood.Payload, offset, n int64) (io.ReadCloser, error) {
	d := download{c: c, ctx: ctx, id: id, p: p}
	how := transfer.Asking{Ask: d.ask, Broken: func(err error) error { return c.unreachable(err) }, Tries: maxTransfers}
	if c.patience == 0 {
		how.Tries = 1
	}
	r, err := transfer.Open(ctx, p, offset, n, how)
	if err != nil {
		return nil, fmt.Errorf("open a payload of job %s: %w", id, err)
	}
	return r, nil
}

// download asks for a payload of a job.
type download struct {
	c   *remote
	ctx context.Context
	id  string
	p   makegood.Payload
}

// ask asks for its bytes from at to end, as often as there is patience for.
func (d download) ask(at, end int64) (body io.ReadCloser, err error) {
	err = d.c.again(d.ctx, func() (err error) {
		body, err = d.askOnce(at, end)
		return err
	})
	return body, err
}

// askOnce asks the API, and goes where it leads.
func (d download) askOnce(at, end int64) (io.ReadCloser, error) {
	query := url.Values{"bytes": {strconv.FormatInt(d.p.Bytes, 10)}}
	if d.p.By != "" {
		query.Set("by", d.p.By)
	}
	r, err := d.c.request(d.ctx, http.MethodGet, pathOf(d.id)+"/payloads/"+url.PathEscape(d.p.SHA256)+"?"+query.Encode(), nil)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	transfer.SetRange(r, d.p, at, end)
	answer, err := d.c.stream(r)
	if err != nil {
		return nil, err
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		return d.taken(answer, at, end)
	case http.StatusSeeOther:
		defer answer.Body.Close()
		var door payloadDoor
		if json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(&door) != nil || door.Method != http.MethodGet {
			return nil, backoff.Permanent(d.c.unreachable(errors.New(d.c.stranger(answer))))
		}
		return d.goAway(door, at, end)
	}
	defer answer.Body.Close()
	return nil, d.c.problemOf(answer)
}

// goAway reads from the store to which the API leads.
func (d download) goAway(door payloadDoor, at, end int64) (io.ReadCloser, error) {
	r, err := d.c.awayRequest(d.ctx, door, nil)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	transfer.SetRange(r, d.p, at, end)
	answer, err := d.c.goAway(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusPartialContent {
		return d.taken(answer, at, end)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, backoff.Permanent(api.ErrNoPayload)
	}
	return nil, d.c.refusedAway(r, answer)
}

// taken is the body of an answer from the byte on that was asked for.
func (d download) taken(answer *http.Response, at, end int64) (io.ReadCloser, error) {
	body, err := transfer.Body(answer, d.p, at, end)
	switch {
	case errors.Is(err, payload.ErrAltered):
		return nil, backoff.Permanent(err)
	case err != nil:
		return nil, d.c.unreachable(err)
	}
	return body, nil
}
