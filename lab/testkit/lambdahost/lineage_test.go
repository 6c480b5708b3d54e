//go:build linux

package lambdahost

import (
	"strings"
	"testing"
)

// Each function counts by itself, and what else is in the header stays.
func TestAChainCountsEachFunction(t *testing.T) {
	header := "Root=1-2-3;Parent=4;Sampled=1"
	for want := 1; want <= 20; want++ {
		for _, function := range []string{"scheduler", "agent"} {
			var hops int
			if header, hops = extend(header, function); hops != want {
				t.Fatalf("got hop %d of the %s, want %d: %s", hops, function, want, header)
			}
		}
	}
	if !strings.HasPrefix(header, "Root=1-2-3;Parent=4;Sampled=1;Lineage=") {
		t.Errorf("got the header %s, want what it began with", header)
	}
	if _, hops := extend("", "agent"); hops != 1 {
		t.Errorf("got hop %d of a new chain, want 1", hops)
	}
}
