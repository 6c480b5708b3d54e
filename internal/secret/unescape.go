package secret

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLayers is how many times a text is unescaped: JSON within JSON, in a URL, in HTML.
const maxLayers = 4

// maxEntity is how many bytes the longest entity of HTML has.
const maxEntity = 33

// view is a text with its escapes undone, and the place of each byte in the original text: from its first byte to
// before its last. A view without places is the text itself.
type view struct {
	text     string
	from, to []int
}

// at says which bytes of the text as it was a part of the view stands for.
func (v view) at(begin, end int) (from, to int) {
	if v.from == nil {
		return begin, end
	}
	return v.from[begin], v.to[end-1]
}

// unescaped returns the view with one more layer of escapes undone: those of URLs, of HTML, and those with a
// backslash of JSON, JavaScript, PHP, .NET, Python, Go and C. There are none where ok is false.
func (v view) unescaped() (next view, ok bool) {
	if !strings.ContainsAny(v.text, `\%&`) {
		return v, false
	}
	var text strings.Builder
	from, to := make([]int, 0, len(v.text)), make([]int, 0, len(v.text))
	for i := 0; i < len(v.text); {
		means, n := unescape(v.text[i:])
		if n == 0 {
			means, n = v.text[i:i+1], 1
		} else {
			ok = true
		}
		first, last := v.at(i, i+n)
		for range len(means) {
			from, to = append(from, first), append(to, last)
		}
		text.WriteString(means)
		i += n
	}
	return view{text.String(), from, to}, ok
}

// unescape returns the meaning of the escape at the beginning of a text, and how many bytes it has; none, if there is
// none, or if it may have been cut off.
func unescape(text string) (means string, n int) {
	switch text[0] {
	case '%':
		if means, n := aByte(text, "%", 2, 16); n > 0 {
			return means, n
		}
		return character(text, "%u", 4)
	case '&':
		end := strings.IndexByte(text[:min(len(text), maxEntity)], ';') + 1
		if means := html.UnescapeString(text[:end]); means != text[:end] {
			return means, end
		}
	case '\\':
		if len(text) > 1 {
			return backslash(text)
		}
	}
	return "", 0
}

// controls are the meanings of a backslash and one of these.
var controls = map[byte]string{'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

func backslash(text string) (means string, n int) {
	switch c := text[1]; {
	case c == 'u' && strings.HasPrefix(text, `\u{`):
		end := strings.IndexByte(text, '}')
		if end < 0 || end > len(`\u{10ffff`) {
			return "", 0
		}
		means, n = character(text, `\u{`, end-len(`\u{`))
		return means, n + min(n, 1)
	case c == 'u':
		return character(text, `\u`, 4)
	case c == 'U':
		return character(text, `\U`, 8)
	case c == 'x':
		return aByte(text, `\x`, 2, 16)
	case c >= '0' && c <= '7':
		return aByte(text, `\`, 3, 8)
	case controls[c] != "":
		return controls[c], 2
	default:
		return text[1:2], 2
	}
}

// code reads the digits behind a prefix.
func code(text, prefix string, digits, base int) (code uint64, n int) {
	n = len(prefix) + digits
	if !strings.HasPrefix(text, prefix) || len(text) < n {
		return 0, 0
	}
	code, err := strconv.ParseUint(text[len(prefix):n], base, 32)
	if err != nil {
		return 0, 0
	}
	return code, n
}

// aByte is a byte by its number.
func aByte(text, prefix string, digits, base int) (means string, n int) {
	c, n := code(text, prefix, digits, base)
	if n == 0 || c > 0xff {
		return "", 0
	}
	return string([]byte{byte(c)}), n
}

// character is a character by its number, or by the two numbers of a surrogate pair.
func character(text, prefix string, digits int) (means string, n int) {
	c, n := code(text, prefix, digits, 16)
	if n == 0 {
		return "", 0
	}
	if !utf16.IsSurrogate(rune(c)) {
		return string(rune(c)), n
	}
	low, more := code(text[n:], prefix, digits, 16)
	both := utf16.DecodeRune(rune(c), rune(low))
	if more == 0 || both == utf8.RuneError {
		return "", 0
	}
	return string(both), n + more
}
