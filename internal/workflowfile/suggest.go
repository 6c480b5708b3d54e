package workflowfile

import (
	"fmt"
	"strings"
)

// suggest names the one of names that was probably meant, or all of them.
func suggest(name string, names []string) string {
	if meant := near(name, names); meant != "" {
		return meant
	}
	return ": known are " + strings.Join(names, ", ")
}

// near names the one of names that was probably meant; empty: none is near.
func near(name string, names []string) string {
	best, least := "", 3
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least && d < len(candidate) {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance counts the characters that must be put in, taken out or changed to make b of a. Names of more
// than 40 characters are nobody's typing error.
func distance(a, b string) int {
	const longest = 40
	if len(a) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
