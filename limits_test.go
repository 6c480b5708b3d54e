package makegood_test

import (
	"strings"
	"testing"

	"github.com/makegood-dev/makegood"
)

func TestAJobIDIsWhatCanStandInAKeyALogAndAPath(t *testing.T) {
	for _, id := range []string{"a", "order-536365", "2026-11-20T10:00:00Z", "A.b_c:d-e", strings.Repeat("x", makegood.MaxJobIDBytes), "..."} {
		if err := makegood.CheckJobID(id); err != nil {
			t.Errorf("%q: got %v, want it taken", id, err)
		}
	}
	for _, id := range []string{"", ".", "..", "a b", "a/b", "a\n", "ä", "a#b", strings.Repeat("x", makegood.MaxJobIDBytes+1)} {
		if err := makegood.CheckJobID(id); err == nil {
			t.Errorf("%q: was taken", id)
		}
	}
}
