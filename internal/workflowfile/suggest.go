package workflowfile

import (
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood/internal/plain"
)

// suggest names the most likely one of names, or all.
func suggest(name string, names []string) string {
	if meant := near(name, names); meant != "" {
		return meant
	}
	return ": known are " + strings.Join(names, ", ")
}

// near names the one of names that was probably meant; empty: none is near.
func near(name string, names []string) string {
	if best := plain.Nearest(name, names); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}
