package transfer

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

// spoolInMemory is how many bytes that cannot be read twice are kept in memory, and not in a file.
const spoolInMemory = 1 << 20

// Source is data that can be read again from its beginning.
type Source struct {
	from  io.ReadSeeker
	start int64
	// letGo frees the resources of the source; nil: there are none.
	letGo func()
}

// Rewindable reports whether a reader can be read again. Some have the method, and cannot: a pipe that is an *os.File.
func Rewindable(from io.Reader) (*Source, bool) {
	seeker, is := from.(io.ReadSeeker)
	if !is {
		return nil, false
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	return &Source{from: seeker, start: start}, err == nil
}

// Spool copies a reader, so that it can be read again: to a temporary file, above a megabyte. The caller must close it.
func Spool(from io.Reader) (*Source, error) {
	limited := payload.Limit(from)
	var head bytes.Buffer
	_, err := io.CopyN(&head, limited, spoolInMemory)
	switch {
	case errors.Is(err, io.EOF):
		return &Source{from: bytes.NewReader(head.Bytes())}, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	file, err := os.CreateTemp("", "makegood-payload-*")
	if err != nil {
		return nil, fmt.Errorf("keep it until it was sent: %w", err)
	}
	// Where an open file can be unlinked, even a killed process leaves none; elsewhere it goes at the end.
	_ = os.Remove(file.Name())
	kept := &Source{from: file, letGo: func() {
		_ = file.Close() // The data is not needed any more.
		_ = os.Remove(file.Name())
	}}
	read := NewOnce(limited)
	_, err = io.Copy(file, io.MultiReader(&head, read))
	switch failed := read.Failed(); {
	case failed != nil:
		err = fmt.Errorf("read it: %w", failed)
	case err != nil:
		err = fmt.Errorf("keep it until it was sent: %w", err)
	}
	if err != nil {
		kept.Close()
		return nil, err
	}
	return kept, nil
}

// Close frees the copy.
func (s *Source) Close() {
	if s.letGo != nil {
		s.letGo()
	}
}

// Measure reads it through.
func (s *Source) Measure() (payload.Written, error) {
	limited := payload.Limit(s.from)
	_, err := s.from.Seek(s.start, io.SeekStart)
	if err == nil {
		_, err = io.Copy(io.Discard, limited)
	}
	if err != nil {
		return payload.Written{}, fmt.Errorf("read it: %w", err)
	}
	return limited.Written(), nil
}

// Open begins to read it again, and expects the bytes measured before.
func (s *Source) Open(want payload.Written) (*Sending, error) {
	if _, err := s.from.Seek(s.start, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read it again: %w", err)
	}
	return &Sending{limited: payload.Limit(io.LimitReader(s.from, want.Bytes)), want: want}, nil
}

// Sending is one read of a Source. net/http may read a body after it has returned an answer; never after Close.
type Sending struct {
	mu      sync.Mutex
	limited *payload.Limited
	want    payload.Written
	n       int64
	closed  bool
	failed  error
}

// Read reads on.
func (s *Sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errSent
	}
	n, err := s.limited.Read(p)
	s.n += int64(n)
	switch {
	case errors.Is(err, io.EOF) && s.n < s.want.Bytes:
		err = ErrChanged // It is shorter than it was.
		fallthrough
	case err != nil && !errors.Is(err, io.EOF):
		s.failed = err
	}
	return n, err
}

// Close ends it, when its reader is done.
func (s *Sending) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Changed closes it, and returns the mismatch in the bytes read, which a retry does not cure.
func (s *Sending) Changed() error {
	_ = s.Close() // It never fails.
	switch {
	case errors.Is(s.failed, ErrChanged), s.n == s.want.Bytes && s.limited.Written() != s.want:
		return ErrChanged
	case s.failed != nil:
		return fmt.Errorf("read it again: %w", s.failed)
	}
	return nil
}

var errSent = errors.New("read of a payload that is no longer being sent")

// ErrChanged: the bytes differ from those measured before.
var ErrChanged = errors.New("it has changed while it was written: write it again")

// Once is data that can be read only once. It keeps the error of a failed read, and reads no more once it is closed,
// even if net/http goes on for a while. A read that is under way may last: Close does not wait.
type Once struct {
	from io.Reader

	mu            sync.Mutex
	begun, closed bool
	failed        error
}

// NewOnce makes a Once of a reader.
func NewOnce(from io.Reader) *Once { return &Once{from: from} }

// Read reads on.
func (o *Once) Read(p []byte) (int, error) {
	if !o.begin() {
		return 0, errSent
	}
	n, err := o.from.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil && !errors.Is(err, io.EOF) {
		o.failed = err
	}
	return n, err
}

// begin reports whether it may be read on.
func (o *Once) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = o.begun || !o.closed
	return !o.closed
}

// Begun reports whether reading has begun. If it has not, and Once is closed, the reader below is still whole.
func (o *Once) Begun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}

// Close ends it.
func (o *Once) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return nil
}

// Failed closes it, and returns why it could not be read to its end; nil: that was not its own fault.
func (o *Once) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.failed
}

// Same checks that a reference matches the sent bytes.
func Same(p makegood.Payload, sent payload.Written) error {
	if p.SHA256 != sent.SHA256 || p.Bytes != sent.Bytes {
		return fmt.Errorf("%w: %d bytes were sent, and the reference says %v", payload.ErrAltered, sent.Bytes, p)
	}
	return nil
}
