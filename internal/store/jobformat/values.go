package jobformat

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/makegood-dev/makegood/internal/job"
)

// int is a number that is hardly ever negative, in which case it takes ten bytes. Zero values are not written, as
// proto3 has it. A field that is not there costs no call, here and where a method below has a second one beside it.
func (c *codec) int(num protowire.Number, v *int) {
	if c.num == num || *v != 0 && c.writing {
		c.number(num, v)
	}
}

// small is a number of one byte: a larger one is damaged.
func (c *codec) small(num protowire.Number, v *uint8) {
	if c.writing && *v != 0 {
		c.put(num, uint64(*v))
	}
	if c.num != num || c.writing {
		return
	}
	n := c.varint()
	if *v = uint8(n); n > math.MaxUint8 {
		c.fail("field %d is %d, want at most %d", num, n, math.MaxUint8)
	}
}

func (c *codec) number(num protowire.Number, v *int) {
	if c.writing {
		c.put(num, uint64(*v))
	} else {
		*v = int(c.varint())
	}
}

func (c *codec) int64(num protowire.Number, v *int64) {
	if c.num == num {
		*v = int64(c.varint())
	} else if c.writing && *v != 0 {
		c.put(num, uint64(*v))
	}
}

// level is a number that is compared with Level. One above the largest int is a newer release's, and not negative.
func (c *codec) level(num protowire.Number, v *int) {
	if c.num == num {
		*v = int(min(c.varint(), math.MaxInt))
	} else if c.writing && *v != 0 {
		c.put(num, uint64(*v))
	}
}

// share is a number between 0 and 1, as its shortest text.
func (c *codec) share(num protowire.Number, v *float64) {
	if c.num == num {
		share, err := strconv.ParseFloat(string(c.bytes()), 64)
		if *v = share; err != nil || !(share >= 0 && share < 1) {
			c.fail("field %d is no share", num)
		}
	} else if c.writing && *v != 0 {
		c.putText(num, strconv.FormatFloat(*v, 'g', -1, 64))
	}
}

func (c *codec) flag(num protowire.Number, v *bool) {
	if c.num == num || *v && c.writing {
		c.set(num, v)
	}
}

func (c *codec) set(num protowire.Number, v *bool) {
	if c.writing {
		c.put(num, 1)
	} else {
		*v = c.varint() != 0
	}
}

func (c *codec) text(num protowire.Number, v *string) {
	if c.num == num || *v != "" && c.writing {
		c.string(num, v)
	}
}

func (c *codec) string(num protowire.Number, v *string) {
	if c.writing {
		c.putText(num, *v)
	} else {
		*v = string(c.bytes())
	}
}

func (c *codec) texts(num protowire.Number, v *[]string) {
	for c.num == num {
		*v = append(*v, string(c.bytes()))
	}
	if c.writing {
		for _, s := range *v {
			c.putText(num, s)
		}
	}
}

func (c *codec) data(num protowire.Number, v *[]byte) {
	if c.num == num {
		*v = c.copied()
	} else if c.writing && len(*v) > 0 {
		c.putBytes(num, *v)
	}
}

// hex is a string that is a hash of ours, in half its length; plain is one that is not. Of the two fields that a string
// has, one is written.
func (c *codec) hex(num protowire.Number, v *string) {
	if c.num == num {
		var room [2 * sha256.Size]byte
		*v = string(hex.AppendEncode(room[:0], c.bytes()))
	} else if c.writing && isHex(*v) {
		var room [2 * sha256.Size]byte
		m := c.open(num)
		c.out, _ = hex.AppendDecode(c.out, append(room[:0], *v...)) // It is hex, so it can be decoded.
		c.close(m.start)
	}
}

func (c *codec) plain(num protowire.Number, v *string) {
	if c.num == num || c.writing && !isHex(*v) {
		c.text(num, v)
	}
}

// isHex reports whether a string is lower-case hex digits of whole bytes.
func isHex(s string) bool {
	for i := range len(s) {
		if digit := s[i]; (digit < '0' || digit > '9') && (digit < 'a' || digit > 'f') {
			return false
		}
	}
	return s != "" && len(s)%2 == 0
}

// difference is a number that may as well be negative.
func (c *codec) difference(num protowire.Number, v *int) {
	if c.num == num {
		*v = int(protowire.DecodeZigZag(c.varint()))
	} else if c.writing && *v != 0 {
		c.put(num, protowire.EncodeZigZag(int64(*v)))
	}
}

// time is a time, counted from another one, unless it is not yet. It is written even if the difference is zero.
func (c *codec) time(num protowire.Number, v *time.Time, from int64) {
	if c.num == num || c.writing && *v != (time.Time{}) {
		c.instant(num, v, from)
	}
}

func (c *codec) instant(num protowire.Number, v *time.Time, from int64) {
	if !c.writing {
		*v = c.moment(from, protowire.DecodeZigZag(c.varint()))
	} else if !v.IsZero() {
		c.put(num, protowire.EncodeZigZag(v.UnixMilli()-from))
	}
}

// The years that JSON can write, in milliseconds since 1970.
const (
	minMoment = -62_167_219_200_000 // the first of the year 0
	maxMoment = 253_402_300_799_999 // the last of the year 9999
)

// moment returns the time so many milliseconds after another. It must be one that JSON can write: no release stores
// another, but a program that may put new jobs into the table could, and would break every list that shows them.
func (c *codec) moment(from, ms int64) time.Time {
	if at := from + ms; at < minMoment || at > maxMoment {
		c.fail("a time %d ms after %d", ms, from)
	}
	return time.UnixMilli(from + ms).UTC()
}

// epochOf is what times are counted from.
func epochOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// inline is the value of a payload. Its length is the size of the payload, unless size says another.
func (c *codec) inline(num protowire.Number, p *job.Payload) {
	usual := p.Bytes == len(p.Inline)
	if c.data(num, (*[]byte)(&p.Inline)); usual && !c.writing {
		p.Bytes = len(p.Inline)
	}
}

func (c *codec) size(num protowire.Number, p *job.Payload) {
	if c.num == num {
		p.Bytes = int(c.varint())
	} else if c.writing && p.Bytes != len(p.Inline) {
		c.put(num, uint64(p.Bytes))
	}
}

// counts are numbers side by side, none negative, unless all are zero.
func (c *codec) counts(num protowire.Number, all ...*int64) {
	if c.num == num {
		from := column{in: c.bytes()}
		for _, n := range all {
			if *n = int64(from.next()); *n < 0 {
				c.fail("a count of %d", *n)
			}
		}
		if from.err != nil || len(from.in) > 0 {
			c.fail("field %d has not %d counts", num, len(all))
		}
		return
	}
	some := false
	for _, n := range all {
		some = some || *n != 0
	}
	if c.writing && some {
		m := c.open(num)
		for _, n := range all {
			c.out = protowire.AppendVarint(c.out, uint64(*n))
		}
		c.close(m.start)
	}
}

// packed are numbers side by side, as they are.
func (c *codec) packed(num protowire.Number, v *column) {
	for c.num == num {
		if b := c.bytes(); v.in == nil {
			v.in = b[:len(b):len(b)]
		} else {
			v.in = append(v.in, b...)
		}
	}
	if c.writing && len(v.in) > 0 {
		c.putBytes(num, v.in)
	}
}

// column is a packed field of numbers, read one after the other.
type column struct {
	in  []byte
	err error
}

func (c *column) next() uint64 {
	n, size := protowire.ConsumeVarint(c.in)
	if size < 0 {
		c.in = nil
		if c.err == nil {
			c.err = damaged("numbers that end too early")
		}
		return 0
	}
	c.in = c.in[size:]
	return n
}

func (c *column) int() int { return int(c.next()) }

func (c *column) add(n int) { c.in = protowire.AppendVarint(c.in, uint64(n)) }

// state is a state by its number.
func state[S ~string](c *codec, num protowire.Number, v *S, known []S) {
	if c.num == num {
		*v = stateOf(c.varint(), known)
	} else if c.writing {
		n := int(numberOf(*v, known))
		c.int(num, &n)
	}
}

// there reports whether a message is to be written, or is the next to be read. In the second case it makes the message.
func there[M any](c *codec, num protowire.Number, at **M) bool {
	if c.num == num {
		*at = new(M)
	}
	return c.num == num || c.writing && *at != nil
}

// each returns the messages of a list to write, or adds a message for each that is read.
func each[M any](c *codec, num protowire.Number, all *[]M) iter.Seq[*M] {
	return func(yield func(*M) bool) {
		for c.num == num {
			*all = append(*all, *new(M))
			yield(&(*all)[len(*all)-1])
		}
		for i := 0; c.writing && i < len(*all); i++ {
			yield(&(*all)[i])
		}
	}
}
