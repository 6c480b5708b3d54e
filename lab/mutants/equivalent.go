package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// equivalents is the file of the mutants that nobody could tell from the right code, below the root.
const equivalents = "lab/mutants/equivalent.txt"

// readEquivalents returns why each is equivalent, by the mutant's key. A line names a mutant, the indented lines below
// it say why.
func readEquivalents(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	key := ""
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case trimmed != strings.TrimRight(line, "\n"):
			if key == "" {
				return nil, fmt.Errorf("%s: %q says why, and stands below nothing", file, trimmed)
			}
			why[key] = strings.TrimSpace(why[key] + " " + trimmed)
		default:
			if _, twice := why[trimmed]; twice {
				return nil, fmt.Errorf("%s names %q twice", file, trimmed)
			}
			key = trimmed
			why[key] = ""
		}
	}
	for key, reason := range why {
		if reason == "" {
			return nil, fmt.Errorf("%s does not say why %q is equivalent", file, key)
		}
	}
	return why, nil
}

// unknown returns the entries that no mutant of the packages matches.
func unknown(why map[string]string, all []mutant) []string {
	left := map[string]bool{}
	for key := range why {
		left[key] = true
	}
	for _, m := range all {
		delete(left, m.key())
	}
	var names []string
	for key := range left {
		names = append(names, key)
	}
	slices.Sort(names)
	return names
}
