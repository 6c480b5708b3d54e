// Package payload defines a payload store: bytes that are too large for a message, written once by their content for
// one job, and read by any holder of a reference (makegood.Payload). It holds the contract; adapters and their test
// suite stand beside it. Of jobs it uses only the ids.
//
// # By content, within a job
//
// A payload is found by job, writer and SHA-256. The same bytes written again by the same writer for the same job are
// stored once. Other jobs have their own copies: a guessed hash gives no access to another job's bytes, and one job
// that expires takes none from another.
//
// # A reference never dangles
//
// A payload is durable when Write returns, so before any message or job with a reference to it. It is not deleted
// within limits.KeepPayload of the last Write or Keep; the Scheduler calls Keep for every reference before the save
// that makes it the job's, and again as long as the job lives.
package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

var (
	// ErrNotFound: there is no such payload, for this job and by this writer.
	ErrNotFound = errors.New("the payload is not there")
	// ErrTooLarge: more than makegood.MaxLargePayloadBytes came. Nothing was stored, and little beyond the limit was read.
	ErrTooLarge = fmt.Errorf("there are more than %d bytes, the limit of a payload", makegood.MaxLargePayloadBytes)
	// ErrDenied: the caller lacks the right. Asking again has the same result.
	ErrDenied = errors.New("access to the payload store is denied")
	// ErrAltered: the stored bytes differ from the written ones, or are incomplete.
	ErrAltered = errors.New("the bytes of the payload are not those written")
	// ErrNone: there is no payload store here.
	ErrNone = errors.New("there is no payload store here")
)

// Hopeless reports whether an error of a Store would come again with every attempt: a person must see it, without
// twenty attempts first.
func Hopeless(err error) bool {
	for _, final := range []error{ErrNotFound, ErrTooLarge, ErrDenied, ErrAltered, ErrNone} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// Place is the job of a payload, and the agent that writes it; By is empty for the submitter of the job.
type Place struct {
	Job, By string
}

// Check returns the mistake in a place; nil: none. A valid place can be part of a file name, and of a key.
func (p Place) Check() error {
	if err := domain.CheckJobID(p.Job); err != nil {
		return fmt.Errorf("the job's id %w", err)
	}
	if p.By == "" {
		return nil
	}
	return limits.AgentName.Check(p.By)
}

// Written describes written bytes: their hash as makegood.Payload has it, and their number.
type Written struct {
	SHA256 string
	Bytes  int64
}

// Bytes is the part of a Store that writers and readers of payloads need. Its methods are safe for concurrent use.
// After an error that is none of the above the outcome is unknown; every method can be called again without harm.
type Bytes interface {
	// Write stores the bytes of from up to its end, and returns when they are durable. If from fails, or ctx ends, or the
	// process dies, nothing is stored, and the remains of the upload are deleted later. It holds only a bounded part in
	// memory. ErrTooLarge, ErrDenied.
	Write(ctx context.Context, at Place, from io.Reader) (Written, error)
	// Open reads n bytes from offset on, or all the rest with a negative n. A read of the whole is checked: its last Read
	// gives io.EOF only if the bytes match p, and else ErrAltered. A part is checked as far as the store can; see the
	// adapters. ErrNotFound, ErrDenied.
	Open(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

// Store keeps payloads. The rules of Bytes hold for all its methods.
type Store interface {
	Bytes
	// Keep makes sure that a payload is there with as many bytes as p says, and stays for limits.KeepPayload from now
	// at least. ErrNotFound; ErrAltered if its length is another; ErrDenied.
	Keep(ctx context.Context, job string, p makegood.Payload) error
}

// Keeper is the part of a Store that the Scheduler needs.
type Keeper interface {
	// Keep is Store's, and Open.
	Keep(ctx context.Context, job string, p makegood.Payload) error
	Open(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

// Limited hashes the bytes of another reader, and fails with ErrTooLarge beyond makegood.MaxLargePayloadBytes.
type Limited struct {
	from io.Reader
	hash hash.Hash
	n    int64
}

// Limit makes a Limited.
func Limit(from io.Reader) *Limited { return &Limited{from: from, hash: sha256.New()} }

// Read reads, hashes and counts.
func (l *Limited) Read(p []byte) (int, error) {
	if most := makegood.MaxLargePayloadBytes + 1 - l.n; int64(len(p)) > most {
		p = p[:most] // One more than the limit shows that there is more.
	}
	n, err := l.from.Read(p)
	l.n += int64(n)
	_, _ = l.hash.Write(p[:n]) // never fails, says its documentation
	if l.n > makegood.MaxLargePayloadBytes {
		return n, ErrTooLarge
	}
	return n, err
}

// Written describes the bytes read so far.
func (l *Limited) Written() Written {
	return Written{SHA256: hex.EncodeToString(l.hash.Sum(nil)), Bytes: l.n}
}

// Checked reads the whole of a payload from a store's reader, and ends in ErrAltered if the bytes do not match p.
func Checked(p makegood.Payload, from io.ReadCloser) io.ReadCloser {
	return &checked{ReadCloser: from, want: p, hash: sha256.New()}
}

type checked struct {
	io.ReadCloser
	want makegood.Payload
	hash hash.Hash
	n    int64
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	_, _ = c.hash.Write(p[:n]) // never fails, says its documentation
	switch {
	case c.n > c.want.Bytes:
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrAltered, c.want.Bytes)
	case errors.Is(err, io.EOF) && c.n < c.want.Bytes:
		return n, fmt.Errorf("%w: it ends after %d of %d bytes", ErrAltered, c.n, c.want.Bytes)
	case errors.Is(err, io.EOF) && hex.EncodeToString(c.hash.Sum(nil)) != c.want.SHA256:
		return n, fmt.Errorf("%w: its hash is another", ErrAltered)
	}
	return n, err
}

// CheckRange refuses a part that no payload has.
func CheckRange(p makegood.Payload, offset, n int64) error {
	if offset < 0 || offset > p.Bytes || n > p.Bytes-offset {
		return fmt.Errorf("bytes %d to %d of a payload of %d", offset, offset+max(n, 0), p.Bytes)
	}
	return nil
}
