package plain_test

import (
	"encoding/json"
	"testing"

	"github.com/makegood-dev/makegood/internal/plain"
)

// What moves a cursor, repaints a terminal or turns text round is not shown as it is: C0, C1 (also as single bytes), DEL, the marks
// of bidirectional text, and the separators that some take for line breaks. All else stays.
func TestTextOfOthersDrawsNothing(t *testing.T) {
	for text, want := range map[string]struct{ line, text, escaped string }{
		"a\x1b[2Jb":                 {"a [2Jb", "a [2Jb", `a\u001b[2Jb`},
		"a\u009b2Jb":                {"a 2Jb", "a 2Jb", `a\u009b2Jb`},
		"a\x9b2Jb":                  {"a\ufffd2Jb", "a\ufffd2Jb", "a\x9b2Jb"},
		"a\nb\tc\rd\x7f":            {"a b c d ", "a\nb\tc d ", "a\nb\tc\rd\\u007f"},
		"exe.\u202egpj":             {"exe. gpj", "exe. gpj", `exe.\u202egpj`},
		"\u2066a\u2069\u200f\u061c": {" a   ", " a   ", `\u2066a\u2069\u200f\u061c`},
		"a\u2028b\u2029c":           {"a b c", "a b c", `a\u2028b\u2029c`},
		"żółć 変換 שלום 👩\u200d🚀 <&> ": {"żółć 変換 שלום 👩\u200d🚀 <&> ", "żółć 変換 שלום 👩\u200d🚀 <&> ", "żółć 変換 שלום 👩\u200d🚀 <&> "},
	} {
		if got := plain.Line(text); got != want.line {
			t.Errorf("line of %q: got %q, want %q", text, got, want.line)
		}
		if got := plain.Text(text); got != want.text {
			t.Errorf("text of %q: got %q, want %q", text, got, want.text)
		}
		if got := string(plain.Escaped([]byte(text))); got != want.escaped {
			t.Errorf("%q escaped: got %q, want %q", text, got, want.escaped)
		}
	}
}

// JSON that is escaped means what it meant.
func TestEscapedJSONMeansTheSame(t *testing.T) {
	const said = "a\u202eb\u0085c\u007f\u2066 \\u202e"
	body, _ := json.Marshal(said)
	var got string
	if err := json.Unmarshal(plain.Escaped(body), &got); err != nil || got != said {
		t.Errorf("got %q, %v, want %q", got, err, said)
	}
}
