package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// spoolInMemory is how much of what cannot be read twice is kept in memory, and not in a file.
const spoolInMemory = 1 << 20

// rereadable is what can be read again from where it began.
type rereadable struct {
	from  io.ReadSeeker
	start int64
	// close lets go of what was made for it; nil: nothing was.
	close func()
}

// rewindable reports whether a reader can be read again. Some have the method, and cannot: a pipe that is an *os.File.
func rewindable(from io.Reader) (*rereadable, bool) {
	seeker, is := from.(io.ReadSeeker)
	if !is {
		return nil, false
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	return &rereadable{from: seeker, start: start}, err == nil
}

// spool keeps what a reader gives, so that it can be read again.
func spool(from io.Reader) (*rereadable, error) {
	limited := payload.Limit(from)
	var head bytes.Buffer
	_, err := io.CopyN(&head, limited, spoolInMemory)
	switch {
	case errors.Is(err, io.EOF):
		return &rereadable{from: bytes.NewReader(head.Bytes()), close: func() {}}, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	file, err := os.CreateTemp("", "makegood-payload-*")
	if err != nil {
		return nil, fmt.Errorf("keep it until it was sent: %w", err)
	}
	// Where a file that is open has a name to lose, nothing is left even of a process that is killed; elsewhere it goes at the end.
	_ = os.Remove(file.Name())
	kept := &rereadable{from: file, close: func() {
		_ = file.Close() // Nobody wants it any more.
		_ = os.Remove(file.Name())
	}}
	read := &failing{from: limited}
	_, err = io.Copy(file, io.MultiReader(&head, read))
	switch {
	case read.failed != nil:
		err = fmt.Errorf("read it: %w", read.failed)
	case err != nil:
		err = fmt.Errorf("keep it until it was sent: %w", err)
	}
	if err != nil {
		kept.close()
		return nil, err
	}
	return kept, nil
}

// measure reads it through.
func (r *rereadable) measure() (payload.Written, error) {
	limited := payload.Limit(r.from)
	_, err := r.from.Seek(r.start, io.SeekStart)
	if err == nil {
		_, err = io.Copy(io.Discard, limited)
	}
	if err != nil {
		return payload.Written{}, fmt.Errorf("read it: %w", err)
	}
	return limited.Written(), nil
}

// open begins to read it again.
func (r *rereadable) open(want makegood.Payload) (*reading, error) {
	if _, err := r.from.Seek(r.start, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read it again: %w", err)
	}
	return &reading{limited: payload.Limit(io.LimitReader(r.from, want.Bytes)), want: want}, nil
}

// reading is one time that it is read. net/http may read a body after it has returned an answer; never after Close.
type reading struct {
	mu      sync.Mutex
	limited *payload.Limited
	want    makegood.Payload
	n       int64
	closed  bool
	failed  error
}

func (r *reading) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errors.New("read of a payload whose sending has ended")
	}
	n, err := r.limited.Read(p)
	r.n += int64(n)
	switch {
	case errors.Is(err, io.EOF) && r.n < r.want.Bytes:
		err = errChanged // It is shorter than it was.
		fallthrough
	case err != nil && !errors.Is(err, io.EOF):
		r.failed = err
	}
	return n, err
}

// Close ends it, when what reads from it is done.
func (r *reading) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

// changed closes it, and says what was wrong with what was read, which no other try sets right.
func (r *reading) changed() error {
	_ = r.Close() // It never fails.
	switch {
	case errors.Is(r.failed, errChanged), r.n == r.want.Bytes && r.limited.Written().SHA256 != r.want.SHA256:
		return errChanged
	case r.failed != nil:
		return fmt.Errorf("read it again: %w", r.failed)
	}
	return nil
}

// errChanged: what is written is no longer what was hashed.
var errChanged error = &InvalidError{Message: "it has changed while it was written: write it again"}
