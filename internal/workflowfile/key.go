package workflowfile

import (
	"context"
	"encoding/json"
	"fmt"

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
	return canonical.JSON(text)
}
