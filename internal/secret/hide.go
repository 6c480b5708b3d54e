package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// minHidden is how long a value must be to be taken out of texts: a shorter one stands in them by chance.
const minHidden = 4

// Hider removes the values of secrets from texts and outputs, however escaped. The zero value hides none.
type Hider struct {
	// forms are the values, also as base64 and other codes have them; the longest first.
	forms []form
}

type form struct{ text, instead string }

func newHider(values map[string]string) Hider {
	var h Hider
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) < minHidden {
			continue
		}
		for _, text := range writings(values[name]) {
			if len(text) >= minHidden {
				h.forms = append(h.forms, form{text, "[secret " + name + "]"})
			}
		}
	}
	// One may be a part of another, which must go first.
	slices.SortStableFunc(h.forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	return h
}

// writings are a value as it is, as it reads if its own text is taken for escapes, with the + of a form for a space,
// in Latin-1, and in codes that do not contain its text. Escapes are undone before a text is compared with them.
func writings(value string) []string {
	digits := hex.EncodeToString([]byte(value))
	all := []string{value, strings.ReplaceAll(value, " ", "+"), latin1(value), digits, strings.ToUpper(digits)}
	v, ok := view{text: value}, true
	for range maxLayers {
		if v, ok = v.unescaped(); !ok {
			break
		}
		all = append(all, v.text)
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, e.EncodeToString([]byte(value)), e.WithPadding(base64.NoPadding).EncodeToString([]byte(value)))
		for before := range 3 {
			all = append(all, within(e, before, value))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// latin1 is a value with a byte for each character that Latin-1 has.
func latin1(value string) string {
	var b []byte
	for _, r := range value {
		if r <= 0xff {
			b = append(b, byte(r))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// minWithin is how long that part of a code must be.
const minWithin = 8

// within is the part of a base64 code that encodes only the value, if so many bytes modulo 3 stand before it, as a
// name does in a Basic header.
func within(e *base64.Encoding, before int, value string) string {
	code := e.EncodeToString(append(make([]byte, before), value...))
	code = code[(before*8+5)/6 : (before+len(value))*8/6]
	if len(code) < minWithin {
		return ""
	}
	return code
}

// span is a part of a text that is not to be said.
type span struct {
	from, to int
	instead  string
}

// Text returns a text with the values replaced by their names. A text that was cut off may end with only the
// beginning of a value; that is removed, too.
func (h Hider) Text(text string) string {
	spans := h.find(text)
	if len(spans) == 0 {
		return text
	}
	// Where two overlap, the first of those that begin there, and the longest, names both.
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out strings.Builder
	done := 0
	for _, s := range spans {
		if s.from >= done {
			out.WriteString(text[done:s.from] + s.instead)
		}
		done = max(done, s.to)
	}
	out.WriteString(text[done:])
	return out.String()
}

// find looks for the values in a text as it is, and as it reads with one layer of escapes after the other undone.
func (h Hider) find(text string) (spans []span) {
	if len(h.forms) == 0 {
		return nil
	}
	v, ok := view{text: text}, true
	for layer := 0; ok && layer <= maxLayers; layer++ {
		for _, f := range h.forms {
			for begin := strings.Index(v.text, f.text); begin >= 0; {
				end := begin + len(f.text)
				from, to := v.at(begin, end)
				spans = append(spans, span{from, to, f.instead})
				next := strings.Index(v.text[end:], f.text)
				if begin = end + next; next < 0 {
					break
				}
			}
			if begin := cutOff(v.text, f.text); begin >= 0 {
				from, _ := v.at(begin, len(v.text))
				spans = append(spans, span{from, len(text), f.instead})
			}
		}
		v, ok = v.unescaped()
	}
	return spans
}

// maxCut is how many bytes the beginning of an escape has that was cut off, at most.
const maxCut = len(`\ud83d\ude0`)

// cutOff says where at the end of a text a value begins that was cut off, perhaps within an escape; -1: nowhere.
func cutOff(text, value string) (begin int) {
	if n := overlap(text, value); n >= minHidden {
		return len(text) - n
	}
	for end := len(text) - 1; end >= max(0, len(text)-maxCut); end-- {
		if n := overlap(text[:end], value); n >= minHidden && isCut(text[end:]) {
			return end - n
		}
	}
	return -1
}

// isCut reports whether a text may be an escape that was cut off.
func isCut(text string) bool {
	_, n := unescape(text)
	return n == 0 && strings.IndexByte(`\%&`, text[0]) >= 0 && strings.Trim(text, `\%&#{0123456789abcdefABCDEFuUxX`) == ""
}

// overlap is how many bytes at the end of text begin value.
func overlap(text, value string) int {
	for n := min(len(text), len(value)-1); n >= minHidden; n-- {
		if strings.HasSuffix(text, value[:n]) {
			return n
		}
	}
	return 0
}

// Error returns an error without the values in its text, and otherwise the same to errors.Is and errors.As.
func (h Hider) Error(err error) error {
	if err == nil || len(h.forms) == 0 {
		return err
	}
	text := err.Error()
	hidden := h.Text(text)
	if hidden == text {
		return err
	}
	return hiddenError{err, hidden}
}

type hiddenError struct {
	error
	text string
}

func (e hiddenError) Error() string { return e.text }
func (e hiddenError) Unwrap() error { return e.error }

// Output returns an output without the values: they must not be kept if a service echoes its request. An output
// without values stays as it is, byte for byte.
func (h Hider) Output(output json.RawMessage) json.RawMessage {
	if !h.mayHave(output) {
		return output
	}
	root, err := decode(output)
	if err != nil {
		return output // which is refused as it is
	}
	before := encode(root)
	hidden := encode(h.value(root))
	if bytes.Equal(hidden, before) {
		return output
	}
	return hidden
}

// encode writes a value that was read from JSON.
func encode(root any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(root); err != nil {
		return nil
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// mayHave reports whether a value may be in an output: an output without escapes can be searched as it is.
func (h Hider) mayHave(output json.RawMessage) bool {
	if len(h.forms) > 0 && bytes.ContainsAny(output, `\%&`) {
		return true
	}
	return slices.ContainsFunc(h.forms, func(f form) bool { return bytes.Contains(output, []byte(f.text)) })
}

// value takes the values out of the texts within a value, and out of its keys.
func (h Hider) value(value any) any {
	switch v := value.(type) {
	case string:
		return h.Text(v)
	case json.Number:
		return h.number(v)
	case []any:
		for i := range v {
			v[i] = h.value(v[i])
		}
		return v
	case map[string]any:
		hidden := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			hidden[h.Text(key)] = h.value(v[key])
		}
		return hidden
	default:
		return v
	}
}

// number takes a number out that is the value of a secret; one that has it among its digits has it by chance.
func (h Hider) number(n json.Number) any {
	for _, f := range h.forms {
		if n.String() == f.text {
			return f.instead
		}
	}
	return n
}
