package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// minHidden is how long a value must be to be taken out of texts: a shorter one stands in them by chance.
const minHidden = 4

// Hider takes the values of secrets out of what is said or kept. The zero value hides nothing.
type Hider struct {
	// forms are the values, also as a URL, HTML, JSON or a Basic header would have them; the longest first.
	forms []form
}

type form struct{ text, instead string }

func newHider(values map[string]string) Hider {
	var h Hider
	for _, name := range slices.Sorted(maps.Keys(values)) {
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

// writings are a value as it is, and as it is quoted.
func writings(value string) []string {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("secret: write a text as JSON: %v", err))
	}
	return []string{
		value, string(quoted[1 : len(quoted)-1]), url.QueryEscape(value), url.PathEscape(value), html.EscapeString(value),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
	}
}

// Text returns a text without the values: their names stand in their places. Of a text that was cut off, a value may have
// only its beginning at the end; that is taken out, too.
func (h Hider) Text(text string) string {
	for _, f := range h.forms {
		text = strings.ReplaceAll(text, f.text, f.instead)
	}
	for _, f := range h.forms {
		if n := overlap(text, f.text); n >= minHidden {
			text = text[:len(text)-n] + f.instead
		}
	}
	return text
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

// Error returns an error whose text has no values, and that is otherwise the same to errors.Is and errors.As.
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

// Output returns an output without the values: a service that answers with what it was asked must not have it kept. What
// has none of them stays as it is, byte for byte.
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

// mayHave reports whether a value may be in an output. Any character may be escaped in JSON, so only what has no escapes
// can be searched as it is.
func (h Hider) mayHave(output json.RawMessage) bool {
	if len(h.forms) > 0 && bytes.IndexByte(output, '\\') >= 0 {
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
