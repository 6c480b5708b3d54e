package jq

import (
	"fmt"
	"regexp/syntax"
)

// lookPattern limits a regular expression and the text that it is matched against. once: the first match
// is enough. What it takes grows with the text and with the states of the expression, and where all
// matches are wanted with the square of the text, whose characters gojq counts anew at each.
func (m *meter) lookPattern(pattern, text any, once bool) error {
	if list, ok := pattern.([]any); ok && len(list) > 0 {
		pattern = list[0]
	}
	source, isPattern := pattern.(string)
	s, isText := text.(string)
	switch {
	case !isPattern || !isText:
		return nil // gojq will say so
	case len(s) > maxMatched:
		return fmt.Errorf("a regular expression on a text of %d bytes, the limit is %d", len(s), maxMatched)
	case len(source) > maxMatched:
		return fmt.Errorf("a regular expression of %d bytes, the limit is %d", len(source), maxMatched)
	}
	states := statesOf(source)
	if states > maxStates {
		return fmt.Errorf("a regular expression of more than %d states", maxStates)
	}
	const perByte, perState, countedAtOnce = 16, 2, 8
	cost := (len(s) + 1) * (perByte + perState*states)
	if !once {
		cost += len(s) * len(s) / countedAtOnce
	}
	return m.count(cost)
}

// statesOf is about how many states a regular expression has; what is none has none, and gojq says why.
func statesOf(source string) int {
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return 0
	}
	return statesIn(re)
}

func statesIn(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+statesIn(sub), maxStates+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxStates+1)
}
