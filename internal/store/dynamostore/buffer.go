package dynamostore

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// writer appends to what a packed job is made of. Numbers are varints, so the small ones that jobs
// consist of take a byte.
type writer struct {
	out []byte
	// epoch is what times are counted from: those of a job lie near its birth.
	epoch int64
}

func (w *writer) uint(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

// int writes a number that is hardly ever negative, in which case it takes ten bytes.
func (w *writer) int(n int) { w.uint(uint64(n)) }

func (w *writer) bytes(b []byte) {
	w.uint(uint64(len(b)))
	w.out = append(w.out, b...)
}

// text writes a string; one of lower-case hex digits, as our hashes are, in half its length.
func (w *writer) text(s string) {
	if raw, err := hex.DecodeString(s); err == nil && s != "" && hex.EncodeToString(raw) == s {
		w.uint(uint64(len(raw))<<1 | 1)
		w.out = append(w.out, raw...)
		return
	}
	w.uint(uint64(len(s)) << 1)
	w.out = append(w.out, s...)
}

// time writes a time that is not zero.
func (w *writer) time(t time.Time) { w.out = binary.AppendVarint(w.out, t.UnixMilli()-w.epoch) }

// since writes a time that is not zero, and lies near from.
func (w *writer) since(from, t time.Time) {
	near := writer{out: w.out, epoch: epochOf(from)}
	near.time(t)
	w.out = near.out
}

// fields writes which of the fields that follow are there, and then those that are.
func (w *writer) fields(all ...field) {
	var present uint64
	for i, f := range all {
		if f.present {
			present |= 1 << i
		}
	}
	w.uint(present)
	for _, f := range all {
		if f.present {
			f.write()
		}
	}
}

// field is a part of a record that is often not there.
type field struct {
	present bool
	write   func()
}

// errShort: the bytes end before what they say they hold.
var errShort = errors.New("cut short")

// reader reads what a writer wrote. After the first error it gives zero values, so that a record is
// checked once, at its end; it never panics, whatever the bytes are.
type reader struct {
	in    []byte
	epoch int64
	err   error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.in = nil
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.in)
	if size <= 0 {
		r.fail(errShort)
		return 0
	}
	r.in = r.in[size:]
	return n
}

func (r *reader) int() int { return int(r.uint()) }

// signed reads a number that may as well be negative.
func (r *reader) signed() int64 {
	n, size := binary.Varint(r.in)
	if size <= 0 {
		r.fail(errShort)
		return 0
	}
	r.in = r.in[size:]
	return n
}

// small reads a number that counts something; no job has more than limit of it.
func (r *reader) small(limit uint64) int {
	n := r.uint()
	if n > limit {
		r.fail(fmt.Errorf("%d of something, the limit is %d", n, limit))
		return 0
	}
	return int(n)
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.in)) {
		r.fail(errShort)
		return nil
	}
	b := r.in[:n:n]
	r.in = r.in[n:]
	return b
}

// bytes reads a copy; none at all is nil.
func (r *reader) bytes() []byte { return append([]byte(nil), r.take(r.uint())...) }

func (r *reader) text() string {
	n := r.uint()
	b := r.take(n >> 1)
	if n&1 == 1 {
		return hex.EncodeToString(b)
	}
	return string(b)
}

func (r *reader) time() time.Time { return time.UnixMilli(r.epoch + r.signed()).UTC() }

// since reads what writer.since wrote.
func (r *reader) since(from time.Time) time.Time {
	return time.UnixMilli(epochOf(from) + r.signed()).UTC()
}

// fields reads what writer.fields wrote: read has a func for each field, in their order.
func (r *reader) fields(read ...func()) {
	present := r.uint()
	if present >= 1<<len(read) {
		r.fail(fmt.Errorf("fields %b of %d", present, len(read)))
		return
	}
	for i, f := range read {
		if present&(1<<i) != 0 {
			f()
		}
	}
}
