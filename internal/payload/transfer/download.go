// Package transfer carries payloads over HTTP for clients of an API: it resumes a broken download, and resends an
// upload that can be read again. It makes no request, and knows no API: a client of jobs and an agent outside each make
// theirs.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// Asking is how a download makes requests, and its messages when it is given up.
type Asking struct {
	// Ask requests the bytes from at up to end, exclusive, with retries as it sees fit, and returns a reader for them. Its
	// error ends the download.
	Ask func(at, end int64) (io.ReadCloser, error)
	// Broken wraps the error of an answer that broke off; the download then asks no more.
	Broken func(error) error
	// Tries is how often in a row it may break off without a byte.
	Tries int
}

// Open reads n bytes of a payload from offset on, which it has, over as many requests as it takes.
func Open(ctx context.Context, p makegood.Payload, offset, n int64, how Asking) (io.ReadCloser, error) {
	d := &download{ctx: ctx, how: how, p: p, at: offset, end: offset + n}
	if err := d.open(); err != nil {
		return nil, err
	}
	return d, nil
}

// download reads a payload, over as many requests as it takes.
type download struct {
	ctx context.Context
	how Asking
	p   makegood.Payload
	// at is the next byte, end the one behind the last.
	at, end int64
	body    io.ReadCloser
	// broken is how often in a row it broke off without a byte.
	broken int
}

// Read reads on, and elsewhere where it breaks off.
func (d *download) Read(b []byte) (int, error) {
	switch {
	case d.body == nil:
		return 0, errors.New("read of a payload that was closed")
	case d.at == d.end:
		return 0, io.EOF
	}
	n, err := d.body.Read(b[:min(int64(len(b)), d.end-d.at)])
	d.at += int64(n)
	if n > 0 {
		d.broken = 0
	}
	if err == nil || d.at == d.end {
		return n, nil
	}
	if d.ctx.Err() != nil {
		return n, context.Cause(d.ctx)
	}
	if d.broken++; d.broken >= d.how.Tries {
		return n, d.how.Broken(fmt.Errorf("after %d of %d bytes: %w", d.at, d.p.Bytes, unexpected(err)))
	}
	_ = d.body.Close() // It is broken.
	return n, d.open()
}

// Close ends it.
func (d *download) Close() error {
	if d.body == nil {
		return nil
	}
	err := d.body.Close()
	d.body = nil
	return err
}

// open opens the payload from where it is to be read on.
func (d *download) open() error {
	if d.at == d.end && d.p.Bytes > 0 {
		d.body = http.NoBody // An empty range cannot be requested.
		return nil
	}
	// The broken body must not be closed twice.
	d.body = http.NoBody
	body, err := d.how.Ask(d.at, d.end)
	if err != nil && d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	if err == nil {
		d.body = body
	}
	return err
}

// isAsked returns nil if an answer claims to be the requested bytes. No hash checks a part.
func isAsked(answer *http.Response, p makegood.Payload, at, end int64) error {
	want := p.Bytes
	if answer.StatusCode == http.StatusPartialContent {
		want = end - at
		if got, part := answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-%d/%d", at, end-1, p.Bytes); got != part {
			return fmt.Errorf("%.70q came, want %s", got, part)
		}
	}
	switch how := answer.Header.Get("Content-Encoding"); how {
	case "", "identity", "aws-chunked": // The last is how it was sent to a bucket, where some keep the word and not the encoding.
	default:
		return fmt.Errorf("it came in the encoding %.70q", how)
	}
	if answer.ContentLength >= 0 && answer.ContentLength != want {
		return fmt.Errorf("%d bytes are there, want %d", answer.ContentLength, want)
	}
	return nil
}

// unexpected is an error; an end is one where there is more to come.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// SetRange asks for the bytes of a payload from at to end, where that is not all.
func SetRange(r *http.Request, p makegood.Payload, at, end int64) {
	if at > 0 || end < p.Bytes {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", at, end-1))
	}
}

// Body returns the body of a successful answer to such a request, from byte at on. payload.ErrAltered: it is not those
// bytes of a payload of that length, and was not read further. Any other error means that the answer broke off.
func Body(answer *http.Response, p makegood.Payload, at, end int64) (io.ReadCloser, error) {
	if err := isAsked(answer, p, at, end); err != nil {
		_ = answer.Body.Close() // The answer does not fit the request.
		return nil, fmt.Errorf("%w: %w", payload.ErrAltered, err)
	}
	if answer.StatusCode == http.StatusOK && at > 0 {
		if _, err := io.CopyN(io.Discard, answer.Body, at); err != nil {
			_ = answer.Body.Close() // It is broken.
			return nil, unexpected(err)
		}
	}
	return answer.Body, nil
}
