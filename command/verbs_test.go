package command

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/domain"
)

// Each verb of the table is a command, and takes the flag that it is said to need.
func TestEachVerbIsACommand(t *testing.T) {
	root := newRoot("makegood", nil, nil)
	for _, verb := range domain.Verbs() {
		found, _, err := root.Find([]string{string(verb)})
		if err != nil || found.Name() != string(verb) {
			t.Errorf("makegood has no command %s", verb)
			continue
		}
		if err := found.ParseFlags(strings.Fields(domain.VerbOf(string(verb)).Flag)); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
