// Package canonical reads JSON strictly and writes it in one way only, so that equal values have equal bytes and a
// hash can distinguish them.
//
// Keys are sorted, there is no white space, a string has one spelling, and a number stays as it was written: 1.0 and
// 1 are different here, and 12345678901234567890 keeps all digits. The package judges no meaning and knows no words
// of Makegood.
package canonical

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxDepth is how deep arrays and objects may be nested.
	MaxDepth = 500
	// HashChars is how long a Hash is.
	HashChars = 32
)

// JSON returns the canonical form of value. It refuses input other than exactly one JSON value in UTF-8, an object
// with the same key twice, half a surrogate pair, and nesting deeper than MaxDepth; the error names the fault and its
// byte, counted from 1. It keeps no reference to value.
func JSON(value json.RawMessage) ([]byte, error) {
	r := reader{in: value, out: make([]byte, 0, len(value))}
	if err := r.document(); err != nil {
		return nil, err
	}
	return r.out, nil
}

// CheckDepth refuses JSON that is nested deeper than MaxDepth: a message with a few levels around it can still be
// written and read everywhere. It does not check that the text is JSON.
func CheckDepth(value []byte) error {
	depth, inText := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return fmt.Errorf("nested deeper than %d (byte %d)", MaxDepth, i+1)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// Hash returns the first HashChars hex digits of the SHA-256 of bytes, which are canonical JSON.
func Hash(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return string(hex.AppendEncode(make([]byte, 0, 2*len(sum)), sum[:])[:HashChars])
}

// AppendString appends text to out as a JSON string in its canonical spelling: it escapes only the characters that
// must be, and U+FFFE and U+FFFF, which a queue does not take. Bytes that are not UTF-8 become U+FFFD.
func AppendString(out []byte, text string) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(text); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(text[i:])
		}
		broken := c == utf8.RuneError && size == 1
		if c >= ' ' && c != '"' && c != '\\' && c != 0xFFFE && c != 0xFFFF && !broken {
			i += size
			continue
		}
		out = append(out, text[start:i]...)
		i += size
		start = i
		switch {
		case broken:
			out = utf8.AppendRune(out, utf8.RuneError)
		case c == '"' || c == '\\':
			out = append(out, '\\', byte(c))
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		default:
			out = append(out, '\\', 'u', digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		}
	}
	out = append(out, text[start:]...)
	return append(out, '"')
}

// reader goes through in once, from at on, and appends the canonical form to out.
type reader struct {
	in  []byte
	at  int
	out []byte
}

func (r *reader) document() error {
	if at := invalidUTF8(r.in); at >= 0 {
		r.at = at
		return r.fail("not UTF-8")
	}
	if err := r.value(0); err != nil {
		return err
	}
	if r.next() != 0 || r.at < len(r.in) {
		return r.fail("more text follows the value")
	}
	return nil
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func (r *reader) fail(format string, args ...any) error {
	return fmt.Errorf("%s (byte %d)", fmt.Sprintf(format, args...), r.at+1)
}

// unexpected names the text at a place that wanted another.
func (r *reader) unexpected(want string) error {
	if r.at >= len(r.in) {
		return r.fail("it ends where %s should be", want)
	}
	c, _ := utf8.DecodeRune(r.in[r.at:])
	return r.fail("%q where %s should be", c, want)
}

// next skips white space and returns the byte that follows, 0 at the end.
func (r *reader) next() byte {
	for ; r.at < len(r.in); r.at++ {
		switch c := r.in[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *reader) value(depth int) error {
	switch c := r.next(); {
	case c == '{':
		return r.object(depth + 1)
	case c == '[':
		return r.array(depth + 1)
	case c == '"':
		text, err := r.text()
		r.out = AppendString(r.out, text)
		return err
	case c == '-' || isDigit(c):
		return r.number()
	default:
		return r.word()
	}
}

func (r *reader) word() error {
	for _, word := range []string{"null", "true", "false"} {
		if len(r.in)-r.at >= len(word) && string(r.in[r.at:r.at+len(word)]) == word {
			r.at += len(word)
			r.out = append(r.out, word...)
			return nil
		}
	}
	return r.unexpected("a value")
}

func (r *reader) enter(depth int) error {
	if depth > MaxDepth {
		return r.fail("nested deeper than %d", MaxDepth)
	}
	r.at++
	return nil
}

func (r *reader) array(depth int) error {
	if err := r.enter(depth); err != nil {
		return err
	}
	r.out = append(r.out, '[')
	for first := true; ; first = false {
		if r.next() == ']' && first {
			break
		}
		if err := r.value(depth); err != nil {
			return err
		}
		if c := r.next(); c == ']' {
			break
		} else if c != ',' {
			return r.unexpected("a comma or ]")
		}
		r.at++
		r.out = append(r.out, ',')
	}
	r.at++
	r.out = append(r.out, ']')
	return nil
}

// object writes its members behind out as they come, each sorted into place afterwards: members
// that are in order already, as most are, are never copied.
func (r *reader) object(depth int) error {
	if err := r.enter(depth); err != nil {
		return err
	}
	r.out = append(r.out, '{')
	start := len(r.out)
	members := map[string]span{}
	last, sorted := "", true
	for first := true; ; first = false {
		if r.next() == '}' && first {
			break
		}
		key, at, err := r.member(depth, members)
		if err != nil {
			return err
		}
		sorted = sorted && (first || last < key)
		last = key
		members[key] = span{at, len(r.out)}
		if c := r.next(); c == '}' {
			break
		} else if c != ',' {
			return r.unexpected("a comma or }")
		}
		r.at++
		r.out = append(r.out, ',')
	}
	r.at++
	if !sorted {
		r.sort(start, members)
	}
	r.out = append(r.out, '}')
	return nil
}

type span struct{ from, to int }

// member reads and writes "key":value, and returns the key and where it was written.
func (r *reader) member(depth int, members map[string]span) (key string, at int, err error) {
	if r.next() != '"' {
		return "", 0, r.unexpected("a key in quotes")
	}
	before := r.at
	if key, err = r.text(); err != nil {
		return "", 0, err
	}
	if _, twice := members[key]; twice {
		r.at = before
		return "", 0, r.fail("the key %q twice in one object", clip(key))
	}
	at = len(r.out)
	r.out = AppendString(r.out, key)
	if r.next() != ':' {
		return "", 0, r.unexpected("a colon")
	}
	r.at++
	r.out = append(r.out, ':')
	return key, at, r.value(depth)
}

func (r *reader) sort(start int, members map[string]span) {
	written := slices.Clone(r.out[start:])
	r.out = r.out[:start]
	keys := slices.AppendSeq(make([]string, 0, len(members)), maps.Keys(members))
	slices.Sort(keys)
	for i, key := range keys {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		at := members[key]
		r.out = append(r.out, written[at.from-start:at.to-start]...)
	}
}

func clip(key string) string {
	if len(key) > 40 {
		return key[:40] + "..."
	}
	return key
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (r *reader) digits() bool {
	start := r.at
	for r.at < len(r.in) && isDigit(r.in[r.at]) {
		r.at++
	}
	return r.at > start
}

func (r *reader) skip(any string) bool {
	if r.at >= len(r.in) || !slices.Contains([]byte(any), r.in[r.at]) {
		return false
	}
	r.at++
	return true
}

func (r *reader) number() error {
	start := r.at
	r.skip("-")
	if !r.skip("0") && !r.digits() {
		return r.unexpected("a digit")
	}
	if r.skip(".") && !r.digits() {
		return r.unexpected("a digit")
	}
	if r.skip("eE") {
		r.skip("+-")
		if !r.digits() {
			return r.unexpected("a digit")
		}
	}
	r.out = append(r.out, r.in[start:r.at]...)
	return nil
}

// text reads a string, which begins at the next byte.
func (r *reader) text() (string, error) {
	r.at++
	start := r.at
	for r.at < len(r.in) {
		switch c := r.in[r.at]; {
		case c == '"':
			r.at++
			return string(r.in[start : r.at-1]), nil
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			return "", r.fail("a control character in a string")
		}
		r.at++
	}
	return "", r.unexpected("the end of a string")
}

// escaped goes on with a string from its first backslash.
func (r *reader) escaped(start int) (string, error) {
	text := slices.Clone(r.in[start:r.at])
	for r.at < len(r.in) {
		c := r.in[r.at]
		switch {
		case c == '"':
			r.at++
			return string(text), nil
		case c < ' ':
			return "", r.fail("a control character in a string")
		case c != '\\':
			text = append(text, c)
			r.at++
			continue
		}
		char, err := r.escape()
		if err != nil {
			return "", err
		}
		text = utf8.AppendRune(text, char)
	}
	return "", r.unexpected("the end of a string")
}

func (r *reader) escape() (rune, error) {
	r.at++
	if r.at >= len(r.in) {
		return 0, r.unexpected("an escape")
	}
	switch c := r.in[r.at]; c {
	case '"', '\\', '/':
		r.at++
		return rune(c), nil
	case 'b', 'f', 'n', 'r', 't':
		r.at++
		return map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[c], nil
	case 'u':
		return r.unicode()
	default:
		return 0, r.unexpected("an escape")
	}
}

// unicode reads uXXXX, or both halves of a surrogate pair.
func (r *reader) unicode() (rune, error) {
	before := r.at - 1
	char, err := r.hex()
	if err != nil || !utf16.IsSurrogate(char) {
		return char, err
	}
	if r.skip(`\`) && r.at < len(r.in) && r.in[r.at] == 'u' {
		second, err := r.hex()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(char, second); pair != utf8.RuneError {
			return pair, nil
		}
	}
	r.at = before
	return 0, r.fail("half a surrogate pair in a string")
}

func (r *reader) hex() (rune, error) {
	r.at++
	var char rune
	for range 4 {
		if r.at >= len(r.in) {
			return 0, r.unexpected("a hex digit")
		}
		c := r.in[r.at]
		switch {
		case isDigit(c):
			char = char<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			char = char<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, r.unexpected("a hex digit")
		}
		r.at++
	}
	return char, nil
}
