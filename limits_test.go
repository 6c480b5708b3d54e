package makegood_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/makegood-dev/makegood"
)

func TestAClippedTextIsWithinTheLimitAndStillText(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", 5000), strings.Repeat("ä€", 1000), "\xff" + strings.Repeat("y", 2000)} {
		got := makegood.Clip(text)
		if len(got) > makegood.MaxReasonBytes || !utf8.ValidString(got) {
			t.Errorf("%.10q...: got %d bytes, valid %v", text, len(got), utf8.ValidString(got))
		}
	}
	if got := makegood.Clip("short"); got != "short" {
		t.Errorf("got %q, want it unchanged", got)
	}
}

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
