package scheduler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// valuesIn reads the JSON values in large payloads of a job: the elements of a list, which an action gave that returned
// a large one, or else the lines. Each has at most makegood.MaxPayloadBytes.
func valuesIn(from payload.Keeper, id string) func(context.Context, makegood.Payload, func([]byte) error) (final, err error) {
	if from == nil {
		return nil
	}
	return func(ctx context.Context, p makegood.Payload, each func([]byte) error) (final, err error) {
		r, err := from.Open(ctx, id, p, 0, -1)
		if err != nil {
			return finally(err)
		}
		defer func() { _ = r.Close() }() // All that counts was read, or refused.
		if kind, _, _ := strings.Cut(p.Type, ";"); strings.TrimSpace(kind) == "application/json" {
			return finally(elements(r, each))
		}
		return finally(lines(r, each))
	}
}

// wrongError is an error in the content of a payload.
type wrongError struct{ error }

func lines(r io.Reader, each func([]byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, makegood.MaxPayloadBytes)
	for s.Scan() {
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 {
			if err := each(line); err != nil {
				return wrongError{err}
			}
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return wrongError{fmt.Errorf("a line has more than %d bytes", makegood.MaxPayloadBytes)}
	}
	return s.Err()
}

func elements(r io.Reader, each func([]byte) error) error {
	from := &bounded{from: r, left: maxUnread}
	d := json.NewDecoder(from)
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return from.fault(errors.New("the payload is JSON, and no list"))
	}
	for d.More() {
		from.left = maxUnread
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return from.fault(err)
		}
		if len(value) > makegood.MaxPayloadBytes {
			return wrongError{errTooLong}
		}
		if err := each(value); err != nil {
			return wrongError{err}
		}
	}
	if _, err := d.Token(); errors.Is(err, io.EOF) {
		return from.fault(errors.New("the list has no end"))
	} else if err != nil {
		return from.fault(err)
	}
	from.left = maxUnread
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // To its end, where the whole is checked.
		return from.fault(errors.New("text follows the list"))
	}
	return nil
}

var errTooLong = fmt.Errorf("an element has more than %d bytes", makegood.MaxPayloadBytes)

// maxUnread is how much is read in search of the end of an element: the largest one, and space around it.
const maxUnread = makegood.MaxPayloadBytes + 4<<10

// bounded keeps a decoder from reading an element of any length into memory.
type bounded struct {
	from io.Reader
	left int
	err  error
}

func (b *bounded) Read(p []byte) (n int, err error) {
	if b.left <= 0 {
		b.err = wrongError{errTooLong}
		return 0, b.err
	}
	n, b.err = b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, b.err
}

// fault is the error of the reader, which may pass, or else that of the content.
func (b *bounded) fault(err error) error {
	if b.err != nil && !errors.Is(b.err, io.EOF) {
		return b.err
	}
	return wrongError{err}
}

// finally distinguishes what no time mends.
func finally(err error) (final, passes error) {
	wrong := wrongError{}
	switch {
	case errors.As(err, &wrong):
		return wrong.error, nil
	case errors.Is(err, payload.ErrNotFound), errors.Is(err, payload.ErrAltered), errors.Is(err, payload.ErrDenied):
		return err, nil
	default:
		return nil, err
	}
}
