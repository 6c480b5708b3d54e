package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/itchyny/gojq"

	"github.com/makegood-dev/makegood/internal/canonical"
)

// Decode reads one JSON value for Run. Numbers stay as they are written, so that large ones keep all digits.
func Decode(value json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: more text follows the value")
	}
	return v, nil
}

// Append appends a value that Run gave to out, as compact JSON with sorted keys, as long as out does
// not grow beyond limit bytes. It refuses NaN and infinity, which JSON cannot hold.
func Append(out []byte, value any, limit int) ([]byte, error) {
	e := encoder{out: out, limit: limit}
	if err := e.value(value, 0); err != nil {
		return nil, err
	}
	return e.out, nil
}

// encoder checks the limit as it goes: a value may refer to the same part many times over, and be
// far larger as text than in memory.
type encoder struct {
	out   []byte
	limit int
}

func (e *encoder) value(v any, depth int) error {
	if depth > canonical.MaxDepth {
		return fmt.Errorf("a value nested deeper than %d", canonical.MaxDepth)
	}
	switch v := v.(type) {
	case string:
		if len(v) > e.limit {
			return e.tooLarge()
		}
		e.out = canonical.AppendString(e.out, v)
	case []any:
		return e.array(v, depth)
	case map[string]any:
		return e.object(v, depth)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("gives %v, which JSON cannot hold", v)
		}
		return e.scalar(v)
	case nil, bool, int, *big.Int, json.Number:
		return e.scalar(v)
	default:
		return fmt.Errorf("gives a %T, which JSON cannot hold", v)
	}
	return e.check()
}

func (e *encoder) scalar(v any) error {
	text, err := gojq.Marshal(v)
	if err != nil {
		return err
	}
	e.out = append(e.out, text...)
	return e.check()
}

func (e *encoder) check() error {
	if len(e.out) > e.limit {
		return e.tooLarge()
	}
	return nil
}

func (e *encoder) tooLarge() error {
	return fmt.Errorf("gives more than %d bytes of JSON", e.limit)
}

func (e *encoder) array(items []any, depth int) error {
	e.out = append(e.out, '[')
	for i, item := range items {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(item, depth+1); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	return e.check()
}

func (e *encoder) object(members map[string]any, depth int) error {
	e.out = append(e.out, '{')
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if len(key) > e.limit {
			return e.tooLarge()
		}
		e.out = append(canonical.AppendString(e.out, key), ':')
		if err := e.value(members[key], depth+1); err != nil {
			return err
		}
	}
	e.out = append(e.out, '}')
	return e.check()
}
