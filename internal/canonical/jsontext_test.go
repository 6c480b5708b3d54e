//go:build goexperiment.jsonv2

package canonical

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
)

// The standard library's own strict reader, which Go 1.26 has behind an experiment, refuses what JSON refuses and reads
// what it reads: GOEXPERIMENT=jsonv2 go test ./internal/canonical -fuzz Strict -fuzztime 30s. Once it is there without,
// theirs can be JSON (docs/decisions/0016-what-a-library-does.md).
func FuzzStrictIsWhatTheStandardLibraryCallsStrict(f *testing.F) {
	for _, text := range []string{
		`{"b":[1,2.0,1e400,"x\u0041\n\ud83d\ude00"],"a":null}`, ` 12345678901234567890 `, `-0.0E-10`, `[1,]`, `01`, `{"a":1,"a":2}`,
		`{"😀":1,"ﬀ":2}`, `"\b\f\u0001"`, `"\uFFFE"`, `"\ud83d"`, "\"\xff\"", `[] []`, `{"a"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, gotErr := JSON(text)
		want, wantErr := theirs(text)
		if (gotErr == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Errorf("%q: got %q, %v; want %q, %v", text, got, gotErr, want, wantErr)
		}
	})
}

func theirs(text []byte) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	value, err := read(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text follows the value")
	}
	return value, nil
}

func read(d *jsontext.Decoder) ([]byte, error) {
	token, err := d.ReadToken()
	switch {
	case err != nil:
		return nil, err
	case d.StackDepth() > MaxDepth:
		return nil, errors.New("nested too deep")
	case token.Kind() == '"':
		return AppendString(nil, token.String()), nil
	case token.Kind() != '{' && token.Kind() != '[':
		return []byte(token.String()), nil
	}
	object, end := token.Kind() == '{', jsontext.Kind(token.Kind()+2)
	members := map[string][]byte{}
	var parts [][]byte
	for d.PeekKind() != end {
		part, err := read(d)
		if err != nil {
			return nil, err
		}
		if object {
			value, err := read(d)
			if err != nil {
				return nil, err
			}
			// Sorted by the key itself, whose spelling begins with a quotation mark.
			var key string
			if key, err = unquoted(part); err != nil {
				return nil, err
			}
			members[key] = slices.Concat(part, []byte(":"), value)
			continue
		}
		parts = append(parts, part)
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, members[key])
	}
	_, err = d.ReadToken()
	return slices.Concat([]byte{byte(end - 2)}, bytes.Join(parts, []byte(",")), []byte{byte(end)}), err
}

func unquoted(key []byte) (string, error) {
	text, err := jsontext.AppendUnquote(nil, key)
	return string(text), err
}
