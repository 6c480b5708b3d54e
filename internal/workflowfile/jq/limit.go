package jq

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/itchyny/gojq"
)

// The limits on what a builtin function is given. A job's input has at most 256 KB, so that honest
// work stays far below them.
const (
	// maxText is how many bytes a text may have that is made larger, maxList how many elements a list.
	maxText = 1 << 20
	maxList = 1 << 18
	// maxDigits is how many digits a number may have that is reckoned with.
	maxDigits = 10_000
	// maxWeight is how much a value may weigh that is gone through: a byte of text, or an eighth of an element. A part that
	// is referred to twice weighs twice.
	maxWeight = 4 << 20
	maxNested = 1000
	// maxMatched is how many bytes a regular expression is matched against. Package pattern limits its own size.
	maxMatched = 16 << 10
	// maxIndex is the highest index of a list that may be made.
	maxIndex = 1 << 18
	// maxPairs is how many comparisons a function may make.
	maxPairs = 1 << 26
)

// The functions that the rewriter puts in. Those that check or count return their input, or an error when it is over a
// limit; bounded ones do the same as jq's own.
const (
	lookShallow  = "_look_shallow"
	lookSplit    = "_look_split"
	lookDeep     = "_look_deep"
	lookOnce     = "_look_once"
	lookEach     = "_look_each"
	lookAll      = "_look_all"
	lookSlices   = "_look_slices"
	lookIndex    = "_look_index"
	lookPath     = "_look_path"
	lookTable    = "_look_table"
	lookPair     = "_look_pair"
	countText    = "_count_text"
	countShallow = "_count_shallow"
	countParts   = "_count_parts"
	countDeep    = "_count_deep"
	copying      = "_copying"
	copied       = "_copied"
	multiply     = "_multiply_bounded"
	subtract     = "_subtract_bounded"
	setPath      = "_setpath_bounded"
	replaced     = "_replaced_bounded"
)

// limits makes the functions above known to the compiler.
func (m *meter) limits() ([]gojq.CompilerOption, error) {
	operators, err := m.operators()
	if err != nil {
		return nil, err
	}
	seeking, err := m.seeking()
	if err != nil {
		return nil, err
	}
	look := func(name string, check func(any) error) gojq.CompilerOption {
		return gojq.WithFunction(name, 0, 0, func(v any, _ []any) any { return passed(v, check(v)) })
	}
	return append(slices.Concat(operators, seeking, m.matchings()),
		look(lookShallow, m.lookShallow),
		look(lookSplit, m.lookSplit),
		look(lookDeep, m.lookDeep),
		look(lookIndex, m.indexed),
		look(lookPath, m.pathed),
		look(lookTable, m.lookTable),
		look(countText, m.textual),
		look(countShallow, m.shallow),
		look(countParts, m.parts),
		look(countDeep, m.deep),
		gojq.WithFunction(lookPair, 1, 1, func(v any, args []any) any { return passed(v, m.lookPair(v, args[0])) }),
		gojq.WithFunction(copying, 0, 0, func(v any, _ []any) any { return &copies{v, map[uintptr]bool{}} }),
		gojq.WithFunction(copied, 1, 1, func(v any, args []any) any {
			c := args[0].(*copies)
			return passed(v, m.along(c.root, v.([]any), c.seen))
		}),
	), nil
}

// passed returns v, or the error.
func passed(v any, err error) any {
	if err != nil {
		return err
	}
	return v
}

// operators are functions that do the same as jq's own, within limits.
func (m *meter) operators() ([]gojq.CompilerOption, error) {
	product, err := native("$a * $b")
	if err != nil {
		return nil, err
	}
	difference, err := native("$a - $b")
	if err != nil {
		return nil, err
	}
	set, err := native("$a | setpath($b; $c)")
	if err != nil {
		return nil, err
	}
	if m.plus, err = native("$a + $b"); err != nil {
		return nil, err
	}
	return []gojq.CompilerOption{
		gojq.WithFunction(multiply, 2, 2, func(_ any, args []any) any {
			if err := m.repeated(args[0], args[1]); err != nil {
				return err
			}
			v := product(args[0], args[1], nil)
			return passed(v, m.shallow(v))
		}),
		gojq.WithFunction(subtract, 2, 2, func(_ any, args []any) any {
			if err := m.lookPair(args[0], args[1]); err != nil {
				return err
			}
			return difference(args[0], args[1], nil)
		}),
		gojq.WithFunction(setPath, 2, 2, func(v any, args []any) any {
			if path, ok := args[0].([]any); ok {
				if err := m.along(v, path, nil); err != nil {
					return err
				}
			}
			return set(v, args[0], args[1])
		}),
	}, nil
}

// native returns an expression of gojq over $a, $b and $c as a function.
func native(source string) (func(a, b, c any) any, error) {
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query, gojq.WithVariables([]string{"$a", "$b", "$c"}))
	if err != nil {
		return nil, err
	}
	return func(a, b, c any) any {
		v, _ := code.Run(nil, a, b, c).Next()
		return v
	}, nil
}

// shallowly limits results that grow by their own size at most.
func shallowly(v any) error {
	switch v := v.(type) {
	case string:
		if len(v) > maxText {
			return fmt.Errorf("a text of %d bytes, the limit is %d", len(v), maxText)
		}
	case []any:
		if len(v) > maxList {
			return fmt.Errorf("a list of %d elements, the limit is %d", len(v), maxList)
		}
	case map[string]any:
		if len(v) > maxList {
			return fmt.Errorf("an object of %d members, the limit is %d", len(v), maxList)
		}
	case *big.Int:
		const bitsPerDigit = 4
		if v.BitLen() > maxDigits*bitsPerDigit {
			return fmt.Errorf("a number of more than %d digits", maxDigits)
		}
	case json.Number:
		if len(v) > maxDigits {
			return fmt.Errorf("a number of more than %d digits", maxDigits)
		}
	}
	return nil
}

func (m *meter) lookShallow(v any) error {
	if err := shallowly(v); err != nil {
		return err
	}
	return m.shallow(v)
}

// lookSplit checks a text that is split into a list, with an element for each byte at worst.
func (m *meter) lookSplit(v any) error {
	if err := m.lookShallow(v); err != nil {
		return err
	}
	if s, ok := v.(string); ok {
		return m.count(elementBytes * len(s))
	}
	return nil
}

// lookDeep limits a value that is gone through as a whole.
func (m *meter) lookDeep(v any) error {
	// Going through a value compares, sorts or writes it: more than reading it once.
	const through = 2
	left := lighten(v, maxWeight, 0)
	if err := m.count(through * (maxWeight - max(0, left))); err != nil {
		return err
	}
	if left < 0 {
		return fmt.Errorf("a value of more than %d bytes, or nested deeper than %d", maxWeight, maxNested)
	}
	return nil
}

const elementWeight = 8

// weigh is how much v weighs, up to maxWeight, and more than that where it is over.
func weigh(v any) int { return maxWeight - lighten(v, maxWeight, 0) }

// lighten subtracts the weight of v from left, and returns less than 0 as soon as left is used up.
func lighten(v any, left, depth int) int {
	if depth > maxNested {
		return -1
	}
	switch v := v.(type) {
	case string:
		return left - len(v) - elementWeight
	case json.Number:
		return left - len(v) - elementWeight
	case *big.Int:
		return left - v.BitLen() - elementWeight
	case []any:
		left -= elementWeight
		for _, item := range v {
			if left = lighten(item, left, depth+1); left < 0 {
				return left
			}
		}
		return left
	case map[string]any:
		left -= elementWeight
		for key, item := range v {
			if left = lighten(item, left-len(key), depth+1); left < 0 {
				return left
			}
		}
		return left
	default:
		return left - elementWeight
	}
}

// indexed limits an index. A list as one names where that list is found in another, of any length.
func (m *meter) indexed(v any) error {
	if list, ok := v.([]any); ok {
		return m.count(maxList * len(list))
	}
	if i, ok := gojq.ToInt(v); ok && i > maxIndex {
		return fmt.Errorf("an index of %d, the limit is %d", i, maxIndex)
	}
	return nil
}

func (m *meter) pathed(v any) error {
	path, ok := v.([]any)
	if !ok {
		return nil
	}
	if len(path) > maxNested {
		return fmt.Errorf("a path of %d parts, the limit is %d", len(path), maxNested)
	}
	for _, part := range path {
		if err := m.indexed(part); err != nil {
			return err
		}
	}
	return nil
}

// lookTable limits transpose, which fills up the shorter rows.
func (m *meter) lookTable(v any) error {
	rows, ok := v.([]any)
	if !ok {
		return nil
	}
	longest := 0
	for _, row := range rows {
		if row, ok := row.([]any); ok {
			longest = max(longest, len(row))
		}
	}
	if longest*len(rows) > maxList {
		return fmt.Errorf("a table of %d by %d, the limit is %d fields", len(rows), longest, maxList)
	}
	return m.count(elementBytes * (longest + 1) * (len(rows) + 1))
}

// lookPair limits functions that compare each part of a with each of b, or put b between the parts of a.
func (m *meter) lookPair(a, b any) error {
	for _, v := range []any{a, b} {
		if err := m.lookDeep(v); err != nil {
			return err
		}
	}
	if _, isText := a.(string); isText && weigh(b) < maxMatched {
		return nil
	}
	x, y := weigh(a)/elementWeight, weigh(b)/elementWeight
	if x*y > maxPairs {
		return fmt.Errorf("two values of %d and %d elements together, the limit is %d comparisons", x, y, maxPairs)
	}
	if text, isText := b.(string); isText {
		return m.count(x * len(text))
	}
	const comparison = 2 // takes as long as so many bytes do
	return m.count(comparison * x * y)
}

// repeated limits a product: a text repeated, a number that grows.
func (m *meter) repeated(a, b any) error {
	for _, v := range []any{a, b} {
		if err := m.lookShallow(v); err != nil {
			return err
		}
		if _, isObject := v.(map[string]any); isObject {
			if err := m.lookDeep(v); err != nil {
				return err
			}
		}
	}
	text, isText := a.(string)
	times := b
	if !isText {
		text, isText = b.(string)
		times = a
	}
	if n, isNumber := gojq.ToFloat64(times); isText && isNumber && n*float64(len(text)) > maxText {
		return fmt.Errorf("a text of %d bytes %v times, the limit is %d bytes", len(text), n, maxText)
	}
	return nil
}
