package scheduler

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
)

// stored is a payload store with one text.
type stored struct{ from io.Reader }

func (s stored) Keep(context.Context, string, makegood.Payload) error { return nil }

func (s stored) Open(context.Context, string, makegood.Payload, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(s.from), nil
}

func TestTheValuesOfAPayloadAreReadOrItIsSaidWhyNot(t *testing.T) {
	large := `"` + strings.Repeat("x", makegood.MaxPayloadBytes-2) + `"`
	broken := errors.New("the connection is gone")
	const list, jsonl = "application/json", "application/jsonl"
	for _, c := range []struct {
		about, kind string
		from        io.Reader
		values      int
		final       string
		passes      error
	}{
		{"no line", jsonl, strings.NewReader(""), 0, "", nil},
		{"a line without an end", jsonl, strings.NewReader("1\r\n\n2"), 2, "", nil},
		{"a long line", jsonl, strings.NewReader("1\n" + large + "x\n"), 1, "a line has more than 262144 bytes", nil},
		{"an altered line", jsonl, io.MultiReader(strings.NewReader("1\n"), iotest.ErrReader(payload.ErrAltered)), 1, "not those written", nil},
		{"a lost line", jsonl, io.MultiReader(strings.NewReader("1\n"), iotest.ErrReader(broken)), 1, "", broken},
		{"no list at all", list, strings.NewReader(""), 0, "no list", nil},
		{"an object", list, strings.NewReader(`{"a":[1]}`), 0, "no list", nil},
		{"an empty list", list, strings.NewReader(" [ ]\n"), 0, "", nil},
		{"a list with a charset", list + "; charset=utf-8", strings.NewReader("[1,2,3]"), 3, "", nil},
		{"two lists", list, strings.NewReader("[1,2]\n[3]"), 2, "text follows the list", nil},
		{"the largest element", list, strings.NewReader("[" + large + "," + large + "]"), 2, "", nil},
		{"one that is larger", list, strings.NewReader("[1," + large[:9] + large[1:] + "]"), 1, "an element has more than 262144 bytes", nil},
		{"one without an end", list, io.MultiReader(strings.NewReader(`[1,"`), endless{}), 1, "an element has more than 262144 bytes", nil},
		{"space without an end", list, endless{' '}, 0, "an element has more than 262144 bytes", nil},
		{"a broken list", list, strings.NewReader("[1,2"), 2, "the list has no end", nil},
		{"a list with a comma", list, strings.NewReader("[1,]"), 1, "invalid character", nil},
		{"a list that is lost within", list, io.MultiReader(strings.NewReader("[1,2"), iotest.ErrReader(broken)), 1, "", broken},
		{"a list cut off on its way", list, io.MultiReader(strings.NewReader("[1,{"), iotest.ErrReader(io.ErrUnexpectedEOF)), 1, "", io.ErrUnexpectedEOF},
		{"a list that is lost before", list, iotest.ErrReader(broken), 0, "", broken},
		{"a list that is altered", list, io.MultiReader(strings.NewReader("[1,2]"), iotest.ErrReader(payload.ErrAltered)), 2, "not those written", nil},
	} {
		n := 0
		read := valuesIn(stored{c.from}, "j")
		final, passes := read(t.Context(), makegood.Payload{Type: c.kind}, func([]byte) error { n++; return nil })
		if n != c.values || (final == nil) != (c.final == "") || final != nil && !strings.Contains(final.Error(), c.final) || !errors.Is(passes, c.passes) {
			t.Errorf("%s: %d values, %v, %v; want %d, %q, %v", c.about, n, final, passes, c.values, c.final, c.passes)
		}
	}
}

// endless gives the same byte for ever.
type endless [1]byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = max(e[0], ' ')
	}
	return len(p), nil
}
