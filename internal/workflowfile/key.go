package workflowfile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/canonical"
	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/workflowfile/jq"
)

// Key is the key of a limit: an expression over the input of a job.
type Key struct{ expression *expression }

// keyInput is all that a key sees.
const keyInput = "input"

// CompileKey compiles a key: a text that is one ${ } over .input. The error describes the first mistake in it.
func CompileKey(text string) (*Key, error) {
	if len(text) > limits.MaxKeyBytes {
		return nil, fmt.Errorf("key: %d bytes, the limit is %d", len(text), limits.MaxKeyBytes)
	}
	c := newCheck(nil)
	t := compiler{c, view{fields: []string{keyInput}}}.text("key", text)
	switch {
	case len(c.found) > 0:
		return nil, fmt.Errorf("%s: %s", c.found[0].path, c.found[0].message)
	case t.whole == nil:
		return nil, fmt.Errorf("key: %q: want one expression over the job's input, as ${ .input.account }", clip(text))
	}
	return &Key{t.whole}, nil
}

// Of returns a hash of the value that the key has for an input: 32 hexadecimal digits. Where the expression gives none,
// the value is null. An error is that of ctx.
func (k *Key) Of(ctx context.Context, input json.RawMessage) (string, error) {
	value, err := k.value(ctx, input)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		value = []byte("null")
	}
	return canonical.Hash(value), nil
}

func (k *Key) value(ctx context.Context, input json.RawMessage) ([]byte, error) {
	decoded, err := jq.Decode(Data{Input: input}.input())
	if err != nil {
		return nil, err
	}
	value, err := k.expression.value(ctx, map[string]any{keyInput: decoded})
	if err != nil {
		return nil, err
	}
	text, err := jq.Append(nil, value, makegood.MaxPayloadBytes)
	if err != nil {
		return nil, err
	}
	text, err = canonical.JSON(text)
	return stringOrNumber.ReplaceAllFunc(text, oneSpelling), err
}

// stringOrNumber finds the strings of a JSON text, in which digits are no numbers, and its numbers.
var stringOrNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*`)

// oneSpelling writes a number in one way: 1, 1.0 and 10e-1 are one account. It keeps all digits.
func oneSpelling(part []byte) []byte {
	digits, exponent, _ := strings.Cut(strings.ToLower(string(part)), "e")
	e, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if part[0] == '"' || err != nil {
		return part
	}
	sign := digits[:len(digits)-len(strings.TrimPrefix(digits, "-"))]
	whole, fraction, _ := strings.Cut(digits[len(sign):], ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return []byte("0")
	}
	return []byte(sign + short + "e" + strconv.Itoa(e+len(digits)-len(short)-len(fraction)))
}
