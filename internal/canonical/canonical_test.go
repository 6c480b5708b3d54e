package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestEqualValuesHaveEqualBytes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{` { "b" : 1 , "a" : [ 1 , 2.50, 1e3 ] } `, `{"a":[1,2.50,1e3],"b":1}`},
		{`{"a":{"d":1,"c":{"f":1,"e":2}},"A":0,"":null}`, `{"":null,"A":0,"a":{"c":{"e":2,"f":1},"d":1}}`},
		{`"\u0041\/\b\f\n\r\t\"\\é<>&"`, `"A/\u0008\u000c\n\r\t\"\\é<>&"`},
		{`"\ud83d\ude00 \u2028"`, "\"\U0001F600 \u2028\""},
		{`"\uFFFE\uffff\ufffd"`, "\"\\ufffe\\uffff\uFFFD\""},
		{`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{`12345678901234567890`, `12345678901234567890`},
		{`-0`, `-0`},
		{`-0.0E-10`, `-0.0E-10`},
		{"\t[\r\n]", `[]`},
		{`{}`, `{}`},
		{`true`, `true`},
		{` null`, `null`},
		{`false `, `false`},
	} {
		got, err := JSON(json.RawMessage(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("JSON(%s) = %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestWhatIsNotStrictJSONIsRefusedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `it ends where a value should be (byte 1)`},
		{`  `, `it ends where a value should be (byte 3)`},
		{`{"a":1,"b":2,"a":3}`, `the key "a" twice in one object (byte 14)`},
		{`{"a":1,"\u0061":3}`, `the key "a" twice in one object (byte 8)`},
		{
			`{"` + strings.Repeat("k", 60) + `":1,"` + strings.Repeat("k", 60) + `":1}`,
			`the key "` + strings.Repeat("k", 40) + `..." twice in one object (byte 67)`,
		},
		{`{} {}`, `more text follows the value (byte 4)`},
		{"{}\x00", `more text follows the value (byte 3)`},
		{`[1,]`, `']' where a value should be (byte 4)`},
		{`[1 2]`, `'2' where a comma or ] should be (byte 4)`},
		{`[1`, `it ends where a comma or ] should be (byte 3)`},
		{`{"a":1,}`, `'}' where a key in quotes should be (byte 8)`},
		{`{a:1}`, `'a' where a key in quotes should be (byte 2)`},
		{`{"a" 1}`, `'1' where a colon should be (byte 6)`},
		{`{"a":1 "b":2}`, `'"' where a comma or } should be (byte 8)`},
		{`nul`, `'n' where a value should be (byte 1)`},
		{`NaN`, `'N' where a value should be (byte 1)`},
		{`ünder`, `'ü' where a value should be (byte 1)`},
		{`01`, `more text follows the value (byte 2)`},
		{`-`, `it ends where a digit should be (byte 2)`},
		{`1.`, `it ends where a digit should be (byte 3)`},
		{`1e+x`, `'x' where a digit should be (byte 4)`},
		{`"abc`, `it ends where the end of a string should be (byte 5)`},
		{`"a\nbc`, `it ends where the end of a string should be (byte 7)`},
		{"\"a\tb\"", `a control character in a string (byte 3)`},
		{"\"\\n\t\"", `a control character in a string (byte 4)`},
		{`"\x"`, `'x' where an escape should be (byte 3)`},
		{`"\`, `it ends where an escape should be (byte 3)`},
		{`"\u12g4"`, `'g' where a hex digit should be (byte 6)`},
		{`"\u12`, `it ends where a hex digit should be (byte 6)`},
		{`"\ud83d"`, `half a surrogate pair in a string (byte 2)`},
		{`"\ud83d\u0041"`, `half a surrogate pair in a string (byte 2)`},
		{`"\ude00\ud83d"`, `half a surrogate pair in a string (byte 2)`},
		{"\"\xff\"", `not UTF-8 (byte 2)`},
		{strings.Repeat("[", MaxDepth+1), `nested deeper than 500 (byte 501)`},
	} {
		if got, err := JSON(json.RawMessage(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("JSON(%.50q) = %.50s, %v; want %s", c.in, got, err, c.want)
		}
	}
	deepest := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if _, err := JSON(json.RawMessage(deepest)); err != nil {
		t.Errorf("JSON of %d levels: %v; want no error", MaxDepth, err)
	}
}

func TestHashIsThirtyTwoHexDigits(t *testing.T) {
	got, want := Hash([]byte(`{"a":1}`)), "015abd7f5cc57a2dd94b7590f04ad808"
	if got != want || len(got) != HashChars {
		t.Errorf("Hash = %s (%d characters), want %s (%d)", got, len(got), want, HashChars)
	}
}

// What the standard library decodes must be the same before and after, or the hash would lie.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"b":[1,2.5e3,"\ud83d\ude00"],"a":null}`, `"\u0000"`, `[[],{}]`, `-0`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := JSON(in)
		if err != nil {
			return
		}
		again, err := JSON(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("JSON(%q) = %q, but JSON of that = %q, %v", in, got, again, err)
		}
		if before, after := decode(t, in), decode(t, got); !reflect.DeepEqual(before, after) {
			t.Fatalf("JSON(%q) = %q: %v became %v", in, got, before, after)
		}
	})
}

func decode(t *testing.T, in []byte) any {
	d := json.NewDecoder(bytes.NewReader(in))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("the standard library refuses %q: %v", in, err)
	}
	return v
}

func BenchmarkJSON(b *testing.B) {
	line := json.RawMessage(`{"id":"order-17","sku":"apple","quantity":3,"customer":{"name":"Ann","email":"ann@example.com"}}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := JSON(line); err != nil {
			b.Fatal(err)
		}
	}
}

func Example() {
	value, err := JSON(json.RawMessage(`{"b": 1.0, "a": "\u0041"}`))
	fmt.Println(string(value), err)
	// Output: {"a":"A","b":1.0} <nil>
}

// What CheckDepth refuses JSON does, and nothing else that it is made for.
func TestTheDepthOfAValueIsThatOfItsForm(t *testing.T) {
	open, text := strings.Repeat(`[{"[":`, MaxDepth/2), strings.Repeat("}]", MaxDepth/2)
	for _, c := range []struct {
		value string
		deep  bool
	}{
		{open + "1" + text, false},
		{open + "[]" + text, true},
		{open + "{}" + text, true},
		{open + `"[{\\\"[{"` + text, false},
		{open + `"[{\\"` + text, false},
		{"[" + strings.Repeat("[[]],", 600) + "[]]", false},
		{"[" + strings.Repeat("{},", 600) + "[]]", false},
		{"", false},
	} {
		_, err := JSON(json.RawMessage(c.value))
		if got := CheckDepth([]byte(c.value)); (got != nil) != c.deep || c.value != "" && (err != nil) != c.deep || c.deep && got.Error() != err.Error() {
			t.Errorf("%.20s...: got %v and %v, want refused: %v", c.value, got, err, c.deep)
		}
	}
}
