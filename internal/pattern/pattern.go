// Package pattern says what it may take to match a regular expression of package regexp, before anything is matched. It matches
// nothing, and says nothing of what is no regular expression.
package pattern

import (
	"fmt"
	"regexp/syntax"
)

const (
	// MaxBytes is how long an expression may be that somebody brings.
	MaxBytes = 16 << 10
	// MaxStates is how many states it may have, about one for each of its characters, repeated ones counted.
	MaxStates = 10_000
)

// Size is how large an expression is.
type Size struct {
	// States is how many states it has, about; MaxStates+1, if there are more. A search takes at most so many steps for each
	// character that it reads.
	States int
	// Groups is how many groups are captured.
	Groups int
}

// Of returns the size of an expression. What is no expression has none, and package regexp says why. The error is for one that is larger
// than one may be.
func Of(source string) (Size, error) {
	if len(source) > MaxBytes {
		return Size{}, fmt.Errorf("a regular expression of %d bytes, the limit is %d", len(source), MaxBytes)
	}
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return Size{}, nil
	}
	size := Size{states(re), re.MaxCap()}
	if size.States > MaxStates {
		return size, fmt.Errorf("a regular expression of more than %d states", MaxStates)
	}
	return size, nil
}

func states(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+states(sub), MaxStates+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, MaxStates+1)
}
