package plain

import "strings"

// maxDistance is how many characters a name may differ by and still be meant; maxName the longest one compared, in
// bytes.
const maxDistance, maxName = 2, 40

// Nearest returns the one of names that is nearest to name, whatever the case; empty: none is near enough.
func Nearest(name string, names []string) string {
	best, least := "", maxDistance+1
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least && d < len(candidate) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the characters that must be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	if len(a) > maxName {
		return maxName
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
