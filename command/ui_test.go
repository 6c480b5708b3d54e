package command

import (
	"strings"
	"testing"
)

// Whoever reaches the page of a stack acts with the credentials of who serves it.
func TestThePageOfAStackIsServedOnLoopbackAlone(t *testing.T) {
	t.Setenv("MAKEGOOD_STACK", "")
	for want, args := range map[string][]string{
		"--stack is missing":      {"ui"},
		"want a loopback address": {"ui", "--stack", "shop", "--addr", "0.0.0.0:0"},
	} {
		if code, _, stderr := ask(t, args...); code != codeUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: got %d, %s, want %d, saying %q", args, code, stderr, codeUsage, want)
		}
	}
}
