package jobformat

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", store.ErrDamaged, fmt.Sprintf(format, args...))
}

// codec writes the fields of a message, or reads them. A function names the fields of a message once, in the order of
// their numbers, which is the order of their bytes. Each method that takes a number writes that field, or reads it if
// it is the next one; else it does nothing. So one pass through the function reads all fields of a message of ours, and
// each field that is unknown or out of order takes further passes.
type codec struct {
	// epoch is the time that most times are counted from, the birth of the job.
	epoch int64

	writing bool
	out     []byte

	// field is the next field to read, and in comes after it. The number 0 is the end of a message.
	field
	in  []byte
	err error
}

// field is one field of a message as it was read.
type field struct {
	num protowire.Number
	typ protowire.Type
	n   uint64 // of a varint
	b   []byte // the value of a field with a length; a part of raw
	raw []byte // the whole field
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

// writer returns a codec that writes a job.
func writer(j job.Job) codec { return codec{epoch: epochOf(j.CreatedAt), writing: true} }

// frame is a message whose fields are written or read, between enter or open and the end of its loop:
//
//	for m := c.open(7); c.more(&m); c.kept(&m, &w.Kept) {
//		c.int(1, &w.Round)
//		c.text(2, &w.Answer)
//	}
type frame struct {
	passes int
	// start is where a message within another begins in out; 0 of one that stands by itself.
	start int
	// outer and after are what is read next when the message has ended.
	outer field
	after []byte
	// left is how much was to be read when the pass began, unknown are the fields that no pass has read.
	left    int
	unknown []byte
}

// enter begins a message that stands by itself. data is what is read.
func (c *codec) enter(data []byte) frame {
	m := frame{outer: c.field, after: c.in}
	if !c.writing {
		c.in = data
		c.next()
	}
	return m
}

// open begins a message within another one. A reader has seen that it is the next field.
func (c *codec) open(num protowire.Number) frame {
	if !c.writing {
		return c.enter(c.bytes())
	}
	c.out = append(protowire.AppendTag(c.out, num, protowire.BytesType), 0)
	return frame{start: len(c.out)}
}

// more reports whether another pass through the fields of a message is needed; else it ends the message.
func (c *codec) more(m *frame) bool {
	if c.writing && m.passes == 0 || c.num != 0 {
		m.passes++
		m.left = len(c.in)
		return true
	}
	if c.writing {
		c.close(m.start)
		return false
	}
	if c.field, c.in = m.outer, m.after; c.err != nil {
		c.field, c.in = field{}, nil
	}
	return false
}

// close writes the length of a message before it, where open left one byte for it.
func (c *codec) close(start int) {
	if start == 0 {
		return
	}
	size := len(c.out) - start
	if more := protowire.SizeVarint(uint64(size)) - 1; more > 0 {
		c.out = append(c.out, make([]byte, more)...)
		copy(c.out[start+more:], c.out[start:start+size])
	}
	protowire.AppendVarint(c.out[:start-1], uint64(size))
}

// kept ends a pass: it writes the unknown fields as they were read, or takes the next field as unknown if the pass has
// read none.
func (c *codec) kept(m *frame, raw *string) {
	if c.writing {
		c.out = append(c.out, *raw...)
		return
	}
	if c.num != 0 && len(c.in) == m.left {
		m.unknown = append(m.unknown, c.raw...)
		c.next()
	}
	if c.num == 0 {
		*raw = string(m.unknown)
	}
}

// fail ends the reading of all messages.
func (c *codec) fail(format string, args ...any) {
	if c.err == nil {
		c.err = damaged(format, args...)
	}
	c.field, c.in = field{}, nil
}

func (c *codec) next() {
	if len(c.in) == 0 {
		c.field = field{}
		return
	}
	if err := c.field.next(c.in); err != nil {
		c.fail("%v", err)
		return
	}
	c.in = c.in[len(c.raw):]
}

// varint reads the number of the next field.
func (c *codec) varint() uint64 {
	if c.typ != protowire.VarintType {
		c.fail("field %d is not what its number says", c.num)
		return 0
	}
	n := c.n
	c.next()
	return n
}

// bytes reads the bytes of the next field. They are a part of the data, for callers that copy them.
func (c *codec) bytes() []byte {
	if c.typ != protowire.BytesType {
		c.fail("field %d is not what its number says", c.num)
		return nil
	}
	b := c.b
	c.next()
	return b
}

// copied reads bytes of their own; none at all is nil.
func (c *codec) copied() []byte { return append([]byte(nil), c.bytes()...) }

func (c *codec) put(num protowire.Number, n uint64) {
	c.out = protowire.AppendVarint(protowire.AppendTag(c.out, num, protowire.VarintType), n)
}

func (c *codec) putBytes(num protowire.Number, b []byte) {
	c.out = protowire.AppendBytes(protowire.AppendTag(c.out, num, protowire.BytesType), b)
}

func (c *codec) putText(num protowire.Number, s string) {
	c.out = protowire.AppendString(protowire.AppendTag(c.out, num, protowire.BytesType), s)
}
