package plain

import (
	"fmt"
	"regexp/syntax"
)

const (
	// MaxPatternBytes is how long an expression may be that somebody brings.
	MaxPatternBytes = 16 << 10
	// MaxPatternStates is how many states it may have, about one for each of its characters, repeated ones counted.
	MaxPatternStates = 10_000
)

// PatternSize is the size of a regular expression of package regexp.
type PatternSize struct {
	// States is how many states it has, about; MaxPatternStates+1, if there are more. A search takes at most so many
	// steps for each character that it reads.
	States int
	// Groups is how many groups are captured.
	Groups int
}

// SizeOf returns the size of an expression. A text that is no expression has none, and package regexp says why. The
// error is for an expression above the limits.
func SizeOf(source string) (PatternSize, error) {
	if len(source) > MaxPatternBytes {
		return PatternSize{}, fmt.Errorf("a regular expression of %d bytes, the limit is %d", len(source), MaxPatternBytes)
	}
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return PatternSize{}, nil
	}
	size := PatternSize{states(re), re.MaxCap()}
	if size.States > MaxPatternStates {
		return size, fmt.Errorf("a regular expression of more than %d states", MaxPatternStates)
	}
	return size, nil
}

func states(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+states(sub), MaxPatternStates+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, MaxPatternStates+1)
}
