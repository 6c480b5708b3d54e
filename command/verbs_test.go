package command

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/domain"
)

// Each verb of the table is a command.
func TestEachVerbIsACommand(t *testing.T) {
	root := newRoot("makegood", nil, nil)
	for _, verb := range domain.Verbs() {
		if found, _, err := root.Find([]string{string(verb)}); err != nil || found.Name() != string(verb) {
			t.Errorf("makegood has no command %s", verb)
		}
	}
}
