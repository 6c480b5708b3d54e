package jobformat

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/store"
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", store.ErrDamaged, fmt.Sprintf(format, args...))
}

// field is one field of a message as it was read.
type field struct {
	num protowire.Number
	typ protowire.Type
	n   uint64 // of a varint
	b   []byte // the value of a field with a length; a part of raw
	raw []byte // the whole field
	bad bool   // it was read as a type that it does not have
}

// next reads the field that data begins with.
func (f *field) next(data []byte) error {
	num, typ, tag := protowire.ConsumeTag(data)
	if tag < 0 {
		return damaged("%v", protowire.ParseError(tag))
	}
	*f = field{num: num, typ: typ}
	var size int
	switch typ {
	case protowire.VarintType:
		f.n, size = protowire.ConsumeVarint(data[tag:])
	case protowire.BytesType:
		f.b, size = protowire.ConsumeBytes(data[tag:])
	default:
		size = protowire.ConsumeFieldValue(num, typ, data[tag:])
	}
	if size < 0 {
		return damaged("field %d: %v", num, protowire.ParseError(size))
	}
	f.raw = data[:tag+size]
	return nil
}

// readFields hands every field of a message to known, which keeps none, and returns what known did not know.
func readFields(data []byte, known func(f *field) bool) (kept string, err error) {
	var unknown []byte
	var f field
	for len(data) > 0 {
		if err := f.next(data); err != nil {
			return "", err
		}
		data = data[len(f.raw):]
		switch is := known(&f); {
		case f.bad:
			return "", damaged("field %d is not what its number says", f.num)
		case !is:
			unknown = append(unknown, f.raw...)
		}
	}
	return string(unknown), nil
}

func (f *field) uint() uint64 {
	f.bad = f.bad || f.typ != protowire.VarintType
	return f.n
}

func (f *field) int() int { return int(f.uint()) }

func (f *field) flag() bool { return f.uint() != 0 }

func (f *field) signed() int64 { return protowire.DecodeZigZag(f.uint()) }

// time returns a time that was counted from another one.
func (f *field) time(from int64) time.Time {
	t, ok := moment(from, f.signed())
	f.bad = f.bad || !ok
	return t
}

// moment returns the time so many milliseconds after another, and whether it is in a year that JSON can write: no
// release stores another, but a program that may put new jobs into the table could, and would break every list that
// shows them.
func moment(from, ms int64) (time.Time, bool) {
	t := time.UnixMilli(from + ms).UTC()
	return t, t.Year() >= 0 && t.Year() <= 9999
}

// level returns a number that is compared with Level. One above the largest int is a newer release's, and not negative.
func (f *field) level() int { return int(min(f.uint(), math.MaxInt)) }

// bytes returns a part of the data, for callers that copy it.
func (f *field) bytes() []byte {
	f.bad = f.bad || f.typ != protowire.BytesType
	return f.b
}

// copied returns bytes of their own; none at all is nil.
func (f *field) copied() []byte { return append([]byte(nil), f.bytes()...) }

func (f *field) text() string { return string(f.bytes()) }

func (f *field) hash() string { return hex.EncodeToString(f.bytes()) }

// column is a packed field of numbers, read one after the other.
type column struct {
	in  []byte
	err error
}

func (c *column) next() uint64 {
	n, size := protowire.ConsumeVarint(c.in)
	if size < 0 {
		c.in, c.err = nil, errors.Join(c.err, damaged("numbers that end too early"))
		return 0
	}
	c.in = c.in[size:]
	return n
}

func (c *column) int() int { return int(c.next()) }

// counts reads numbers that stand side by side, none negative.
func (f *field) counts(into ...*int64) {
	c := column{in: f.bytes()}
	for _, n := range into {
		*n = int64(c.next())
		f.bad = f.bad || *n < 0
	}
	f.bad = f.bad || c.err != nil || len(c.in) > 0
}

// message reads the fields of a message within another one, and returns what known did not know.
func (f *field) message(known func(f *field) bool) (kept string) {
	kept, err := readFields(f.bytes(), known)
	f.bad = f.bad || err != nil
	return kept
}
