package jobformat

import (
	"encoding/hex"
	"time"

	"github.com/makegood-dev/makegood/internal/job"

	"google.golang.org/protobuf/encoding/protowire"
)

// writer appends the fields of a message. Zero values are left out, as proto3 has it.
type writer struct{ out []byte }

func (w *writer) uint(num protowire.Number, n uint64) {
	if n != 0 {
		w.out = protowire.AppendVarint(protowire.AppendTag(w.out, num, protowire.VarintType), n)
	}
}

// int writes a number that is hardly ever negative, in which case it takes ten bytes.
func (w *writer) int(num protowire.Number, n int) { w.uint(num, uint64(n)) }

func (w *writer) flag(num protowire.Number, b bool) {
	if b {
		w.uint(num, 1)
	}
}

func (w *writer) text(num protowire.Number, s string) {
	if s != "" {
		w.out = protowire.AppendString(protowire.AppendTag(w.out, num, protowire.BytesType), s)
	}
}

func (w *writer) bytes(num protowire.Number, b []byte) {
	if len(b) > 0 {
		w.message(num, b)
	}
}

// message writes b even if it is empty: a message, or a string among others.
func (w *writer) message(num protowire.Number, b []byte) {
	w.out = protowire.AppendBytes(protowire.AppendTag(w.out, num, protowire.BytesType), b)
}

// hex writes a string that is a hash of ours, in half its length; plain writes one that is not. Of the two fields that
// a string has, one is written.
func (w *writer) hex(num protowire.Number, s string) {
	if !isHex(s) {
		return
	}
	w.out = protowire.AppendVarint(protowire.AppendTag(w.out, num, protowire.BytesType), uint64(len(s)/2))
	w.out, _ = hex.AppendDecode(w.out, []byte(s)) // It is hex, so it can be decoded.
}

func (w *writer) plain(num protowire.Number, s string) {
	if !isHex(s) {
		w.text(num, s)
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

// signed writes a number that is there even if it is zero, and may as well be negative.
func (w *writer) signed(num protowire.Number, n int64) {
	w.out = protowire.AppendTag(w.out, num, protowire.VarintType)
	w.out = protowire.AppendVarint(w.out, protowire.EncodeZigZag(n))
}

// time writes a time, counted from another one, unless it is not yet.
func (w *writer) time(num protowire.Number, t time.Time, from int64) {
	if !t.IsZero() {
		w.signed(num, t.UnixMilli()-from)
	}
}

// size writes the size of a payload, unless its inline value says it.
func (w *writer) size(num protowire.Number, p job.Payload) {
	if p.Bytes != len(p.Inline) {
		w.out = protowire.AppendVarint(protowire.AppendTag(w.out, num, protowire.VarintType), uint64(p.Bytes))
	}
}

// counts writes numbers side by side, unless all are zero.
func (w *writer) counts(num protowire.Number, all ...int64) {
	var packed []byte
	some := false
	for _, n := range all {
		some = some || n != 0
		packed = protowire.AppendVarint(packed, uint64(n))
	}
	if some {
		w.message(num, packed)
	}
}

// kept writes the unknown fields as they were read.
func (w *writer) kept(raw string) { w.out = append(w.out, raw...) }

// epochOf is what times are counted from.
func epochOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
