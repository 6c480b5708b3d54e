package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cenkalti/backoff/v5"

	"github.com/makegood-dev/makegood"
)

// Payloads writes and reads what is too large for an input or an output itself, up to makegood.MaxLargePayloadBytes. An
// engine, a Client of one, and doors.Payloads of a stack are one; a folder reads.
type Payloads interface {
	// WritePayload stores what from gives up to its end, for a job that will be submitted, or is there: its id must be known
	// before. It returns the reference, which an input can hold, anywhere. mediaType says what it is, such as
	// application/pdf; empty: nothing. When it returns the bytes are durable; they go with the job, or, if none refers to
	// them, after makegood.KeepPayload. After an error nothing is stored, or the whole, and it can be written again.
	WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (makegood.Payload, error)
	// OpenPayload reads what a payload of a job refers to. Its last Read returns io.EOF only if all was read and is what was
	// written, by its hash. It is to be closed. ErrNoPayload.
	OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error)
}

var _ Payloads = (*Client)(nil)

// errAltered: the bytes are not those that a reference says.
var errAltered = errors.New("the payload is not what was written")

// WritePayload is what Payloads says. It streams: from is read once, so that a try which fails is not made again.
func (c *Client) WritePayload(ctx context.Context, id, mediaType string, from io.Reader) (p makegood.Payload, err error) {
	sum := &summing{from: from, hash: sha256.New()}
	answer, err := c.stream(ctx, http.MethodPut, pathOf(id)+"/payloads", cmp.Or(mediaType, "application/octet-stream"), sum)
	if err == nil {
		defer answer.Body.Close()
		if err = json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(&p); err != nil {
			err = c.unreachable(fmt.Errorf("read the answer: %w", err))
		} else if p.SHA256 != hex.EncodeToString(sum.hash.Sum(nil)) {
			err = errAltered
		}
	}
	switch {
	case sum.failed != nil:
		return makegood.Payload{}, fmt.Errorf("write a payload of job %s: read it: %w", id, sum.failed)
	case err != nil:
		return makegood.Payload{}, fmt.Errorf("write a payload of job %s: %w", id, err)
	}
	return p, nil
}

// OpenPayload is what Payloads says.
func (c *Client) OpenPayload(ctx context.Context, id string, p makegood.Payload) (io.ReadCloser, error) {
	query := url.Values{"bytes": {strconv.FormatInt(p.Bytes, 10)}}
	if p.By != "" {
		query.Set("by", p.By)
	}
	answer, err := c.stream(ctx, http.MethodGet, pathOf(id)+"/payloads/"+url.PathEscape(p.SHA256)+"?"+query.Encode(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("open a payload of job %s: %w", id, err)
	}
	return &verified{ReadCloser: answer.Body, want: p, hash: sha256.New()}, nil
}

// stream asks once, for as long as it takes until ctx ends: how long 100 MB take nobody knows.
func (c *Client) stream(ctx context.Context, method, path, contentType string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		return nil, &InvalidError{Message: err.Error()}
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if who := Who(ctx); who != "" {
		r.Header.Set(WhoHeader, who)
	}
	patient := *c.http
	patient.Timeout = 0
	answer, err := patient.Do(r)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, c.unreachable(err)
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusCreated {
		return answer, nil
	}
	defer answer.Body.Close()
	err = c.problemOf(answer)
	var permanent *backoff.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Err
	}
	return nil, err
}

// summing hashes what is read, and keeps why that failed.
type summing struct {
	from   io.Reader
	hash   hash.Hash
	failed error
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	_, _ = s.hash.Write(p[:n]) // never fails, says its documentation
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// verified ends in an error where what was read is not what the reference says.
type verified struct {
	io.ReadCloser
	want makegood.Payload
	hash hash.Hash
	n    int64
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	_, _ = v.hash.Write(p[:n]) // never fails, says its documentation
	v.n += int64(n)
	if errors.Is(err, io.EOF) && (v.n != v.want.Bytes || hex.EncodeToString(v.hash.Sum(nil)) != v.want.SHA256) {
		return n, fmt.Errorf("%w: %d of %d bytes came", errAltered, v.n, v.want.Bytes)
	}
	return n, err
}
