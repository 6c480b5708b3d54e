package page

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/domain"
)

// Each verb of the table has a text for its button.
func TestEachVerbHasAButton(t *testing.T) {
	for _, verb := range domain.Verbs() {
		if labels[string(verb)] == "" {
			t.Errorf("the button of %s has no text", verb)
		}
	}
}
