// Package payload says what Makegood needs of a payload store: bytes that are too large for a message, written once by
// their content for one job, and read by whoever has a reference (makegood.Payload). It holds the contract; adapters and
// the suite that holds them to it stand beside it. It knows nothing of jobs but their ids.
//
// # By content, within a job
//
// What is written is found by job, writer and SHA-256. The same bytes written again by the same writer for the same job are
// there once. Of another job they are another thing: whoever guesses a hash reads nothing of somebody else's, and one job
// that expires takes nothing from another.
//
// # A reference never dangles
//
// A payload is durable when Write returns, so before anything that refers to it is sent or saved. Nothing deletes it
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
	"github.com/makegood-dev/makegood/internal/limits"
)

var (
	// ErrNotFound: there is no such payload, for this job and by this writer.
	ErrNotFound = errors.New("the payload is not there")
	// ErrTooLarge: there are more than makegood.MaxLargePayloadBytes. Nothing was stored, and no more than a little of what
	// is beyond was read.
	ErrTooLarge = fmt.Errorf("there are more than %d bytes, the limit of a payload", makegood.MaxLargePayloadBytes)
	// ErrDenied: whoever asks has no right to. Asking again changes nothing.
	ErrDenied = errors.New("access to the payload store is denied")
	// ErrAltered: what is stored is not what was written, or not all of it.
	ErrAltered = errors.New("the payload is not what was written")
	// ErrNone: there is no payload store here.
	ErrNone = errors.New("there is no payload store here")
)

// Hopeless reports whether an error of a Store would come again with every attempt: a person is to see it, and not twenty
// attempts.
func Hopeless(err error) bool {
	for _, final := range []error{ErrNotFound, ErrTooLarge, ErrDenied, ErrAltered, ErrNone} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// Place is for which job something is written, and by which agent; By is empty for whoever submits the job.
type Place struct {
	Job, By string
}

// Check says what is wrong with a place; nil: nothing. What passes can stand in the name of a file, and in a key.
func (p Place) Check() error {
	if err := makegood.CheckJobID(p.Job); err != nil {
		return fmt.Errorf("the job's id %w", err)
	}
	if p.By == "" {
		return nil
	}
	return limits.AgentName.Check(p.By)
}

// Written is what was written: its hash as makegood.Payload has it, and how many bytes.
type Written struct {
	SHA256 string
	Bytes  int64
}

// Bytes is what whoever writes and reads payloads needs of a Store. Its methods may be called by many goroutines at once. Errors
// that are none of those above leave it unknown what happened; every method can be called again without harm.
type Bytes interface {
	// Write stores what from gives up to its end, and returns when that is durable. Where from fails, or ctx ends, or the
	// process dies, nothing is stored, and what was begun goes by itself. It holds no more than a named part of it in memory.
	// ErrTooLarge, ErrDenied.
	Write(ctx context.Context, at Place, from io.Reader) (Written, error)
	// Open reads n bytes from offset on, or all that follow with a negative n. What is read of the whole is checked: its last
	// Read gives io.EOF only if all was what p says, and else ErrAltered. A part is checked as far as the store can; see the
	// adapters. ErrNotFound, ErrDenied.
	Open(ctx context.Context, job string, p makegood.Payload, offset, n int64) (io.ReadCloser, error)
}

// Store keeps payloads. What is said of Bytes holds for all of it.
type Store interface {
	Bytes
	// Keep makes sure that a payload is there with as many bytes as p says, and stays for limits.KeepPayload from now
	// at least. ErrNotFound; ErrAltered if its length is another; ErrDenied.
	Keep(ctx context.Context, job string, p makegood.Payload) error
}

// Keeper is what the Scheduler needs of a Store.
type Keeper interface {
	// Keep is Store's.
	Keep(ctx context.Context, job string, p makegood.Payload) error
}

// Limited reads from another reader, hashes what comes, and fails with ErrTooLarge beyond makegood.MaxLargePayloadBytes.
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

// Written is what was read so far.
func (l *Limited) Written() Written {
	return Written{SHA256: hex.EncodeToString(l.hash.Sum(nil)), Bytes: l.n}
}

// Checked reads the whole of a payload from a store's reader, and ends in ErrAltered where it is not what p says.
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
