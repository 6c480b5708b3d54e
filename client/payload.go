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
	// maxTransfers is the maximum number of consecutive transfers of a payload that move no byte.
	maxTransfers = 4
	// anyType is the Content-Type of a payload without a media type.
	anyType = "application/octet-stream"
)

// payloadDoor is a request for the client to make, as the API describes it.
type payloadDoor struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Payload *makegood.Payload `json:"payload"`
}

// upload describes a payload to be written, for the API.
type upload struct {
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Type   string `json:"type,omitempty"`
}

// WritePayload implements api.Payloads. A source that can be read again from its beginning (an io.Seeker) is hashed
// first, and sent again after a broken connection. An engine takes any other source as it comes, once; for a stack
// such a source is kept in a temporary file until it was sent, above a megabyte.
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

// lengthRequired reports whether the API requires the hash of the payload.
func lengthRequired(err error) bool {
	invalid, is := errors.AsType[*api.InvalidError](err)
	return is && invalid.Status == http.StatusLengthRequired
}

// askToWrite asks the API for the request that writes a payload.
func (c *remote) askToWrite(ctx context.Context, id string, u upload) (d payloadDoor, err error) {
	_, err = c.call(ctx, http.MethodPost, pathOf(id)+"/payloads", nil, u, &d)
	return d, err
}

// sendOnce sends to the API itself a source that cannot be read twice.
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

// put sends the bytes of a payload to the API itself.
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

// send sends a source that can be read again, until the payload is stored.
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
		// Once closed, the body has no reader any more.
		if changed := body.Changed(); changed != nil {
			return backoff.Permanent(changed)
		}
		return err
	})
	return makegood.Payload{SHA256: u.SHA256, Bytes: u.Bytes, Type: u.Type}, err
}

// again calls do until it succeeds, fails for good, or has failed maxTransfers times.
func (c *remote) again(ctx context.Context, do func() error) error {
	tries := uint(maxTransfers)
	if c.patience == 0 {
		tries = 1
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, do() },
		backoff.WithBackOff(pauses()), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
	return final(err)
}

// final strips from an error the time of the next try.
func final(err error) error {
	if permanent, is := errors.AsType[*backoff.PermanentError](err); is {
		err = permanent.Err
	}
	if unreachable, is := errors.AsType[*api.UnreachableError](err); is {
		return unreachable
	}
	return err
}

// request makes a request to the API, for as long as ctx allows: the time that 100 MB take is unknown.
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

// stream makes one request to the API. It follows no redirect, because the header has credentials of the API.
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

// OpenPayload implements api.Payloads. A transfer that breaks off continues from the same byte.
func (c *remote) OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error) {
	r, err := c.open(ctx, id, p, 0, p.Bytes)
	if err != nil {
		return nil, err
	}
	return payload.Checked(p, r), nil
}

// OpenPayloadRange implements api.Payloads.
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

// download is a request for a payload of a job.
type download struct {
	c   *remote
	ctx context.Context
	id  string
	p   makegood.Payload
}

// ask asks for the bytes from at to end, until the patience ends.
func (d download) ask(at, end int64) (body io.ReadCloser, err error) {
	err = d.c.again(d.ctx, func() (err error) {
		body, err = d.askOnce(at, end)
		return err
	})
	return body, err
}

// askOnce asks the API, and follows it to the store.
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

// goAway reads from the store that the API names.
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

// taken returns the body of an answer from the requested byte on.
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
