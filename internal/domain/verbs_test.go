package domain_test

import (
	"testing"

	"github.com/makegood-dev/makegood/internal/domain"
)

// Each verb has a text for its button and a sentence.
func TestEachVerbIsDescribed(t *testing.T) {
	for _, verb := range domain.Verbs() {
		if of := domain.VerbOf(string(verb)); of.Label == "" || of.Says == "" {
			t.Errorf("%s: got %+v, want a label and a sentence", verb, of)
		}
	}
}
