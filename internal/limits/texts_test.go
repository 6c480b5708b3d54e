package limits_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/makegood-dev/makegood/internal/limits"
)

func TestAClippedTextIsWithinTheLimitAndStillText(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", 5000), strings.Repeat("ä€", 1000), "\xff" + strings.Repeat("y", 2000)} {
		got := limits.Clip(text)
		if len(got) > limits.MaxReasonBytes || !utf8.ValidString(got) {
			t.Errorf("%.10q...: got %d bytes, valid %v", text, len(got), utf8.ValidString(got))
		}
	}
	if got := limits.Clip("short"); got != "short" {
		t.Errorf("got %q, want it unchanged", got)
	}
}

func TestTheTypeOfAPayloadIsAMediaType(t *testing.T) {
	for text, right := range map[string]bool{
		"": true, "application/pdf": true, "text/plain; charset=utf-8": true, "application/vnd.api+json": true,
		"pdf": false, "/": false, "a/": false, "/b": false, "text/plain\n": false, "a b/c": false, "a/<b>": false,
		"a/" + strings.Repeat("b", limits.MaxPayloadTypeBytes): false,
	} {
		if err := limits.CheckPayloadType(text); (err == nil) != right {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
