package jq

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
)

// The costs of values, beside the bytes of their text: about the memory that a copy takes.
const (
	elementBytes = 16
	memberBytes  = 32
)

// meter counts what an evaluation takes. It is a context that gojq asks at each step of its machine
// whether it is done, and the functions that the rewriter puts in count values in it. It never looks at
// a clock: an expression must give the same on a busy computer as on an idle one.
type meter struct {
	context.Context
	steps, bytes int
	// most is how many bytes there may be: MaxBytes, but in tests that have no time for so many.
	most int
	err  error
	done chan struct{}
	// expressions are the regular expressions that it has come by.
	expressions map[[2]string]expression
	// plus is jq's own +.
	plus func(a, b, c any) any
}

// reset begins to count for another evaluation.
func (m *meter) reset(ctx context.Context) { *m = meter{Context: ctx, most: MaxBytes, plus: m.plus} }

// Done is closed when an evaluation has had its steps or its bytes, or when its caller's context ended.
func (m *meter) Done() <-chan struct{} {
	m.steps++
	const lookEvery = 256
	switch {
	case m.err != nil:
	case m.steps > MaxSteps:
		m.stop(fmt.Errorf("takes more than %d steps", MaxSteps))
	case m.steps%lookEvery == 1 && m.Context.Err() != nil:
		m.stop(m.Context.Err())
	}
	return m.done
}

func (m *meter) stop(err error) {
	m.err, m.done = err, make(chan struct{})
	close(m.done)
}

// Err returns the reason why the meter is done.
func (m *meter) Err() error { return m.err }

// count adds bytes that are read or made. The error is for the function that asked; an expression that
// catches it ends all the same, at its next step.
func (m *meter) count(bytes int) error {
	m.bytes += bytes
	if m.err == nil && m.bytes > m.most {
		m.stop(fmt.Errorf("reads and makes more than %d bytes", m.most))
	}
	return m.err
}

// shallow counts a value without its contents.
func (m *meter) shallow(v any) error { return m.count(shallowBytes(v)) }

func shallowBytes(v any) int {
	switch v := v.(type) {
	case string:
		return elementBytes + len(v)
	case json.Number:
		return elementBytes + len(v)
	case *big.Int:
		return elementBytes + v.BitLen() // which takes longer to divide by than to read
	case []any:
		return elementBytes + elementBytes*len(v)
	case map[string]any:
		return elementBytes + memberBytes*len(v)
	default:
		return elementBytes
	}
}

// parts counts a value that is gone through once. The members of an object are sorted for that.
func (m *meter) parts(v any) error {
	if object, ok := v.(map[string]any); ok {
		return m.count(elementBytes + 2*memberBytes*len(object))
	}
	return m.shallow(v)
}

// textual counts a text: finding a part of a text goes through it, unlike in a list.
func (m *meter) textual(v any) error {
	if s, ok := v.(string); ok {
		return m.count(len(s))
	}
	return nil
}

// deep counts a value with all that is in it.
func (m *meter) deep(v any) error {
	left := max(0, m.most-m.bytes)
	// How far it is over would depend on the order in which an object was gone through.
	return m.count(left - max(-1, lighten(v, left, 0)))
}

// copies are the lists and objects that one assignment has copied. gojq copies each once.
type copies struct {
	root any
	seen map[uintptr]bool
}

// along counts the lists and objects that setting a path in root copies, but for those in seen.
func (m *meter) along(root any, path []any, seen map[uintptr]bool) error {
	v := root
	for _, part := range path {
		if seen == nil || !known(seen, v) {
			if err := m.shallow(v); err != nil {
				return err
			}
		}
		switch container := v.(type) {
		case map[string]any:
			key, _ := part.(string)
			v = container[key]
		case []any:
			v = element(container, part)
		default:
			return nil
		}
	}
	return nil
}

// known reports whether v was noted in seen, and notes it.
func known(seen map[uintptr]bool, v any) bool {
	switch v.(type) {
	case map[string]any, []any:
	default:
		return false
	}
	at := reflect.ValueOf(v).Pointer()
	was := seen[at]
	seen[at] = true
	return was
}

// element returns the element at an index of a list. nil for a slice, whose elements are copied with it.
func element(list []any, index any) any {
	i, ok := index.(int)
	if i < 0 {
		i += len(list)
	}
	if !ok || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}
